"""Presence on local networks: who else is here, without telling those who only listen who we are.

A node announces itself on a network where at least one topic is allowed, and on no other; where none
is, it does not even look at what is said. Those whom it hears are met: a link is opened, on which
both prove the device key behind the key of the network (see docs/design/edge.md). Then
`LanPeer` tells the machine above; `view` is all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import TypeAlias

from linnet.core.effects import Announce, CancelTimer, Meet, SetTimer
from linnet.core.errors import RemoteError
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.inputs import Heard, LocalNetwork, Met, NetworkIs, NotMet
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.edge.announcement import NONCE_BYTES, announce
from linnet.edge.commands import LanStatus, NetworkStatus
from linnet.edge.config import PresenceConfig
from linnet.edge.lan_keys import CORE, lan_key
from linnet.edge.local_view import Entry, LocalView
from linnet.edge.notices import LanGone, LanNotice, LanPeer
from linnet.edge.policy import LanPolicy
from linnet.edge.rates import Bucket
from linnet.edge.refusals import Refusals
from linnet.trace.records import Kind, Record

OWNER = "presence"
_FIRST = (0.3, 0.7, 1.0)
"""Seconds before each of the first announcements."""
_WINDOW = 1.0
"""Seconds in which refusals are counted together."""
_REMEMBERED = 1024
_SOON = 0.05

PresenceEffect: TypeAlias = Announce | Meet | SetTimer[Tick] | CancelTimer[Tick] | Record | LanNotice


class _Here:
    """A network that we are on and show ourselves on."""

    __slots__ = ("announced", "announced_at", "datagram", "lan", "local", "owed", "replies", "view")

    def __init__(
        self, local: LocalNetwork, lan: bytes, datagram: bytes, view: LocalView, replies: Bucket
    ) -> None:
        self.local = local
        self.lan = lan
        self.datagram = datagram
        self.view = view
        self.replies = replies
        self.announced = 0
        self.announced_at = 0.0
        self.owed = 0
        """Announcements out of turn that are still to be made."""


class Presence:
    """The local networks of one node."""

    def __init__(
        self, secret: bytes, policy: LanPolicy, config: PresenceConfig, rng: Random, entropy: Entropy
    ) -> None:
        self._secret = secret
        self.policy = policy
        self._config = config
        self._rng = rng
        self._entropy = entropy
        self._locals: dict[bytes, LocalNetwork] = {}
        self._here: dict[bytes, _Here] = {}
        self._known: dict[bytes, PeerId] = {}
        """Devices that were met, by the key that they announced; the last ones."""
        self._refusals = Refusals()

    # What is asked.

    @property
    def networks(self) -> tuple[bytes, ...]:
        """The networks that we show ourselves on now."""
        return tuple(self._here)

    def view(self, network: bytes) -> tuple[Contact, ...]:
        """Everyone on this network who was met."""
        here = self._here.get(network)
        return () if here is None else _contacts(here.view)

    def allowed(self, network: bytes) -> tuple[TopicId, ...]:
        """The topics that may be spoken of there: nothing else may enter a filter or an intersection."""
        return self.policy.allowed(network)

    @property
    def here(self) -> tuple[bytes, ...]:
        """The networks that this device is on now."""
        return tuple(self._here)

    def networks_of(self, peer: PeerId) -> tuple[bytes, ...]:
        """The networks on which this device is now."""
        return tuple(network for network, here in self._here.items() if _entry_of(here.view, peer))

    def allow(self, topic: TopicId, network: bytes, is_allowed: bool, now: float) -> list[PresenceEffect]:
        """Set a switch; we show ourselves on a network from the first topic on, until the last is denied.

        All who are there are told of again if the topics that may be spoken of with them are others now.
        """
        before = self.policy.allowed(network)
        if is_allowed:
            local = self._locals.get(network)
            self.policy.allow(topic, network, "" if local is None else local.name)
        else:
            self.policy.deny(topic, network)
        effects = self._settle(now)
        if self.policy.allowed(network) != before:
            effects += [LanPeer(contact, network) for contact in self.view(network)]
        return effects

    def status(self) -> LanStatus:
        """How things stand."""
        names = self.policy.networks | {each.network: each.name for each in self._locals.values()}
        return LanStatus(tuple(self._status(network, name) for network, name in names.items()))

    def _status(self, network: bytes, name: str) -> NetworkStatus:
        here = self._here.get(network)
        heard = 0 if here is None else len(here.view.entries)
        topics, is_here = self.policy.allowed(network), network in self._locals
        return NetworkStatus(network, name, is_here, here is not None, topics, heard, self.view(network))

    # What happens.

    def handle(self, event: NetworkIs | Heard | Met | NotMet, now: float) -> list[PresenceEffect]:
        """Apply one input."""
        match event:
            case NetworkIs(networks):
                return self._networks_are(networks, now)
            case Heard():
                return self._heard(event, now)
            case Met(network, lan, peer):
                return self._met(network, lan, peer, now)
            case NotMet(network, lan, reason):
                return self._not_met(network, lan, reason, now)

    def fired(self, tick: Tick, now: float) -> list[PresenceEffect]:
        """A timer has run out."""
        if tick.what == "refusals":
            return [*self._refusals.end()]
        here = self._here.get(tick.key)
        if here is None:
            return []
        match tick.what:
            case "announce":
                return self._announce(here, now)
            case "expire":
                return self._expire(here, now)
            case _:
                return self._meet_due(here, now)

    def _networks_are(self, networks: Iterable[LocalNetwork], now: float) -> list[PresenceEffect]:
        effects: list[PresenceEffect] = []
        self._locals = {}
        for local in networks:
            if len(self._locals) < self._config.networks:
                self._locals[local.network] = local
            else:
                note = f"more than {self._config.networks} networks: {local.name} is left alone"
                effects.append(Record(Kind.DROPPED, reason=Reason.TOO_MANY, note=note))
        return [*effects, *self._settle(now)]

    def _settle(self, now: float) -> list[PresenceEffect]:
        """Show ourselves exactly where we are and where something is allowed."""
        effects: list[PresenceEffect] = []
        wanted = {
            network: local
            for network, local in self._locals.items()
            if network != CORE and self.policy.allowed(network)
        }
        for network in [network for network in self._here if network not in wanted]:
            effects += self._leave(self._here.pop(network))
        for network, local in wanted.items():
            here = self._here.get(network)
            if here is None or here.local != local:
                effects += self._enter(local, here, now)
        return effects

    def _enter(self, local: LocalNetwork, before: _Here | None, now: float) -> list[PresenceEffect]:
        """Begin to announce ourselves; on a new day, or at another port, as somebody new."""
        key = lan_key(self._secret, local.network, local.day)
        datagram = announce(key, local.port, self._entropy(NONCE_BYTES))
        config = self._config
        view = LocalView(config, now) if before is None else before.view
        replies = Bucket(config.replies, 1.0 / config.period, now)
        self._here[local.network] = _Here(local, key.public, datagram, view, replies)
        return [SetTimer(_FIRST[0], Tick(OWNER, "announce", local.network))]

    def _leave(self, here: _Here) -> list[PresenceEffect]:
        network = here.local.network
        timers = [CancelTimer(Tick(OWNER, what, network)) for what in ("announce", "expire", "meet")]
        gone = [LanGone(contact.peer, network) for contact in _contacts(here.view)]
        return [*timers, *gone]

    # Announcing.

    def _announce(self, here: _Here, now: float) -> list[PresenceEffect]:
        here.announced += 1
        here.announced_at = now
        if here.owed and here.announced > len(_FIRST):
            here.owed -= 1
        if here.announced < len(_FIRST):
            delay = _FIRST[here.announced]
        elif here.owed:
            delay = self._config.reply_pause * (1.0 + self._rng.random())
        else:
            delay = self._config.period * (0.8 + 0.4 * self._rng.random())
        network = here.local.network
        return [Announce(network, here.datagram), SetTimer(delay, Tick(OWNER, "announce", network))]

    def _reply(self, here: _Here, now: float) -> list[PresenceEffect]:
        """Somebody is new here, and should hear of us before our turn comes: once for each, within bounds."""
        if not here.replies.spend(now):
            return []
        here.owed += 1
        if here.owed > 1 or here.announced < len(_FIRST):
            return []
        pause = max(0.0, here.announced_at + self._config.reply_pause - now)
        delay = pause + self._config.reply_pause * self._rng.random()
        return [SetTimer(delay, Tick(OWNER, "announce", here.local.network))]

    # Hearing.

    def _heard(self, heard: Heard, now: float) -> list[PresenceEffect]:
        here = self._here.get(heard.network)
        if here is None:
            return []
        first, known = not here.view.entries, here.view.admitted
        try:
            entry = here.view.heard(heard.source, heard.datagram, here.lan, now)
        except RemoteError as error:
            return self._refuse(error.reason, f"announcement from {heard.source}: {error.detail}")
        if entry is None:
            return []
        is_new = here.view.admitted > known
        effects: list[PresenceEffect] = []
        if entry.peer is not None:
            return [LanPeer(entry.contact(entry.peer), heard.network)]
        if first:
            effects.append(self._expiry_timer(here, now))
        peer = self._known.get(entry.lan)
        if peer is not None:
            entry.peer = peer
            effects.append(LanPeer(entry.contact(peer), heard.network))
        else:
            if is_new:
                entry.due = now if here.lan < entry.lan else now + self._config.patience
            effects += self._meet_due(here, now)
        return [*effects, *(self._reply(here, now) if is_new else ())]

    def _refuse(self, reason: Reason, note: str) -> list[PresenceEffect]:
        was_open = self._refusals.is_open
        records: list[PresenceEffect] = [*self._refusals.refused(reason, note)]
        return records if was_open else [*records, SetTimer(_WINDOW, Tick(OWNER, "refusals"))]

    def _expire(self, here: _Here, now: float) -> list[PresenceEffect]:
        gone = (entry.peer for entry in here.view.expire(now))
        # A device may be here under two keys for a while, as a day ends.
        left = dict.fromkeys(peer for peer in gone if peer is not None and _entry_of(here.view, peer) is None)
        effects: list[PresenceEffect] = [LanGone(peer, here.local.network) for peer in left]
        effects += self._look_for(here, now)
        return [*effects, self._expiry_timer(here, now)] if here.view.entries else effects

    def _look_for(self, here: _Here, now: float) -> list[PresenceEffect]:
        """Dial those who fell silent: perhaps only their announcements were lost."""
        doubted = sum(entry.is_doubted for entry in here.view.entries.values())
        effects: list[PresenceEffect] = []
        for entry in here.view.doubtful(now)[: max(0, self._config.meetings - doubted)]:
            entry.is_doubted = True
            effects.append(Meet(here.local.network, entry.lan, here.lan, entry.hints))
        return effects

    def _expiry_timer(self, here: _Here, now: float) -> PresenceEffect:
        look = here.view.next_look(now)
        delay = self._config.expiry if look is None else max(_SOON, look - now)
        return SetTimer(delay, Tick(OWNER, "expire", here.local.network))

    # Meeting.

    def _meet_due(self, here: _Here, now: float) -> list[PresenceEffect]:
        """Meet those whose time has come, so many at once, and look again when the next one's has."""
        network = here.local.network
        unmet = [entry for entry in here.view.entries.values() if entry.peer is None and entry.places]
        free = self._config.meetings - sum(entry.meeting for entry in unmet)
        effects: list[PresenceEffect] = []
        later: float | None = None
        for entry in unmet:
            if entry.meeting:
                continue
            if entry.due > now:
                later = entry.due if later is None else min(later, entry.due)
            elif len(effects) < free:
                entry.meeting = True
                effects.append(Meet(network, entry.lan, here.lan, entry.hints))
        if later is not None:
            effects.append(SetTimer(max(_SOON, later - now), Tick(OWNER, "meet", network)))
        return effects

    def _met(self, network: bytes, lan: bytes, peer: PeerId, now: float) -> list[PresenceEffect]:
        here = self._here.get(network)
        if here is None:
            return []
        effects: list[PresenceEffect] = []
        first = not here.view.entries
        try:
            entry = here.view.met(lan, now)
        except RemoteError as error:
            return self._refuse(error.reason, f"a device that was met: {error.detail}")
        if first:
            effects.append(self._expiry_timer(here, now))
        entry.meeting = False
        entry.failures = 0
        self._remember(lan, peer)
        if entry.peer != peer:
            entry.peer = peer
            effects.append(LanPeer(entry.contact(peer), network))
        return [*effects, *self._meet_due(here, now)]

    def _remember(self, lan: bytes, peer: PeerId) -> None:
        self._known.pop(lan, None)
        self._known[lan] = peer
        if len(self._known) > _REMEMBERED:
            del self._known[next(iter(self._known))]

    def _not_met(self, network: bytes, lan: bytes, reason: Reason, now: float) -> list[PresenceEffect]:
        here = self._here.get(network)
        entry = None if here is None else here.view.entries.get(lan)
        if here is None or entry is None:
            return []
        config = self._config
        entry.meeting = False
        entry.due = now + min(config.retry * 2.0**entry.failures, config.retry_most)
        entry.failures = min(entry.failures + 1, 16)
        record = Record(Kind.CONTROL, reason=reason, note="a node of a local network could not be met")
        return [record, *self._meet_due(here, now)]


def _contacts(view: LocalView) -> tuple[Contact, ...]:
    found: dict[PeerId, Entry] = {}
    for entry in view.entries.values():
        if entry.peer is not None:
            found[entry.peer] = entry
    return tuple(entry.contact(peer) for peer, entry in found.items())


def _entry_of(view: LocalView, peer: PeerId) -> Entry | None:
    return next((entry for entry in view.entries.values() if entry.peer == peer), None)
