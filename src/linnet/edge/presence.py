"""Presence on local networks: who else is here, without telling those who only listen who we are.

A node announces itself on a network where at least one topic is allowed, and on no other; where none
is, it does not even look at what is said. Those whom it hears are met: a link is opened, on which
both prove the device key behind the key of the network (see docs/design/edge.md). Then they
are told of as `LanPeer`; `view` is all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from linnet.core.effects import Announce, Meet
from linnet.core.errors import RemoteError
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.inputs import Heard, LocalNetwork, Met, NetworkIs, NotMet
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.edge.announcement import NONCE_BYTES, announce
from linnet.edge.commands import LanStatus, NetworkStatus
from linnet.edge.config import PresenceConfig
from linnet.edge.lan_keys import CORE, lan_key
from linnet.edge.local_view import Entry, LocalView
from linnet.edge.notices import LanChange, LanGone, LanPeer
from linnet.edge.policy import LanPolicy
from linnet.edge.rates import Bucket
from linnet.edge.refusals import Refusals
from linnet.machine.outbox import Outbox
from linnet.trace.records import Kind, Record

_FIRST = (0.3, 0.7, 1.0)
"""Seconds before each of the first announcements."""
_WINDOW = 1.0
"""Seconds in which refusals are counted together."""
_REMEMBERED = 1024
_SOON = 0.05


class AnnounceDue(Timer, frozen=True):
    """It is our turn to announce ourselves on a network."""

    network: bytes


class ExpireDue(Timer, frozen=True):
    """Somebody on a network may have been silent for too long."""

    network: bytes


class MeetDue(Timer, frozen=True):
    """Somebody on a network is to be met."""

    network: bytes


class RefusalsDue(Timer, frozen=True):
    """The window in which refusals are counted together is over."""


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
    """The local networks of one node. What changes there is returned to the caller."""

    def __init__(
        self,
        secret: bytes,
        policy: LanPolicy,
        config: PresenceConfig,
        rng: Random,
        entropy: Entropy,
        out: Outbox,
    ) -> None:
        self._secret = secret
        self.policy = policy
        self._config = config
        self._rng = rng
        self._entropy = entropy
        self._out = out
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

    def allow(self, topic: TopicId, network: bytes, is_allowed: bool, now: float) -> list[LanChange]:
        """Set a switch; we show ourselves on a network from the first topic on, until the last is denied.

        All who are there are told of again if the topics that may be spoken of with them are others now.
        """
        before = self.policy.allowed(network)
        if is_allowed:
            local = self._locals.get(network)
            self.policy.allow(topic, network, "" if local is None else local.name)
        else:
            self.policy.deny(topic, network)
        changes = self._settle_networks(now)
        if self.policy.allowed(network) != before:
            changes += [LanPeer(contact, network) for contact in self.view(network)]
        return changes

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

    def handle(self, event: NetworkIs | Heard | Met | NotMet, now: float) -> list[LanChange]:
        """Apply one input."""
        match event:
            case NetworkIs(networks):
                return self._handle_networks(networks, now)
            case Heard():
                return self._handle_heard(event, now)
            case Met(network, lan, peer):
                return self._handle_met(network, lan, peer, now)
            case NotMet(network, lan, reason):
                self._handle_not_met(network, lan, reason, now)
                return []

    def _handle_networks(self, networks: Iterable[LocalNetwork], now: float) -> list[LanChange]:
        self._locals = {}
        for local in networks:
            if len(self._locals) < self._config.networks:
                self._locals[local.network] = local
            else:
                note = f"more than {self._config.networks} networks: {local.name} is left alone"
                self._out.record(Record(Kind.DROPPED, reason=Reason.TOO_MANY, note=note))
        return self._settle_networks(now)

    def _settle_networks(self, now: float) -> list[LanChange]:
        """Show ourselves exactly where we are and where something is allowed."""
        changes: list[LanChange] = []
        wanted = {
            network: local
            for network, local in self._locals.items()
            if network != CORE and self.policy.allowed(network)
        }
        for network in [network for network in self._here if network not in wanted]:
            changes += self._leave_network(self._here.pop(network))
        for network, local in wanted.items():
            here = self._here.get(network)
            if here is None or here.local != local:
                self._enter_network(local, here, now)
        return changes

    def _enter_network(self, local: LocalNetwork, before: _Here | None, now: float) -> None:
        """Begin to announce ourselves; on a new day, or at another port, as somebody new."""
        key = lan_key(self._secret, local.network, local.day)
        datagram = announce(key, local.port, self._entropy(NONCE_BYTES))
        config = self._config
        view = LocalView(config, now) if before is None else before.view
        replies = Bucket(config.replies, 1.0 / config.period, now)
        self._here[local.network] = _Here(local, key.public, datagram, view, replies)
        self._out.set_timer(_FIRST[0], AnnounceDue(local.network))

    def _leave_network(self, here: _Here) -> list[LanChange]:
        network = here.local.network
        for timer in (AnnounceDue(network), ExpireDue(network), MeetDue(network)):
            self._out.cancel_timer(timer)
        return [LanGone(contact.peer, network) for contact in _contacts(here.view)]

    # Announcing.

    def announce(self, network: bytes, now: float) -> bool:
        """It is our turn on a network; whether we are still on it."""
        here = self._here.get(network)
        if here is None:
            return False
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
        self._out.add(Announce(network, here.datagram))
        self._out.set_timer(delay, AnnounceDue(network))
        return True

    def _greet_newcomer(self, here: _Here, now: float) -> None:
        """Somebody is new here, and should hear of us before our turn comes: once for each, within bounds."""
        if not here.replies.spend(now):
            return
        here.owed += 1
        if here.owed > 1 or here.announced < len(_FIRST):
            return
        pause = max(0.0, here.announced_at + self._config.reply_pause - now)
        delay = pause + self._config.reply_pause * self._rng.random()
        self._out.set_timer(delay, AnnounceDue(here.local.network))

    # Hearing.

    def _handle_heard(self, heard: Heard, now: float) -> list[LanChange]:
        here = self._here.get(heard.network)
        if here is None:
            return []
        first, known = not here.view.entries, here.view.admitted
        try:
            entry = here.view.heard(heard.source, heard.datagram, here.lan, now)
        except RemoteError as error:
            self._refuse(error.reason, f"announcement from {heard.source}: {error.detail}")
            return []
        if entry is None:
            return []
        is_new = here.view.admitted > known
        if entry.peer is not None:
            return [LanPeer(entry.contact(entry.peer), heard.network)]
        if first:
            self._set_expiry_timer(here, now)
        changes: list[LanChange] = []
        peer = self._known.get(entry.lan)
        if peer is not None:
            entry.peer = peer
            changes.append(LanPeer(entry.contact(peer), heard.network))
        else:
            if is_new:
                entry.due = now if here.lan < entry.lan else now + self._config.patience
            self._meet_due(here, now)
        if is_new:
            self._greet_newcomer(here, now)
        return changes

    def _refuse(self, reason: Reason, note: str) -> None:
        was_open = self._refusals.is_open
        for record in self._refusals.refused(reason, note):
            self._out.record(record)
        if not was_open:
            self._out.set_timer(_WINDOW, RefusalsDue())

    def end_refusals(self) -> None:
        """The window is over: record what was only counted in it."""
        for record in self._refusals.end():
            self._out.record(record)

    def expire(self, network: bytes, now: float) -> list[LanChange]:
        """Forget those on a network who are silent for too long, and look for those who may be."""
        here = self._here.get(network)
        if here is None:
            return []
        gone = (entry.peer for entry in here.view.expire(now))
        # A device may be here under two keys for a while, as a day ends.
        left = dict.fromkeys(peer for peer in gone if peer is not None and _entry_of(here.view, peer) is None)
        self._look_for_silent(here, now)
        if here.view.entries:
            self._set_expiry_timer(here, now)
        return [LanGone(peer, network) for peer in left]

    def _look_for_silent(self, here: _Here, now: float) -> None:
        """Dial those who fell silent: perhaps only their announcements were lost."""
        doubted = sum(entry.is_doubted for entry in here.view.entries.values())
        for entry in here.view.doubtful(now)[: max(0, self._config.meetings - doubted)]:
            entry.is_doubted = True
            self._out.add(Meet(here.local.network, entry.lan, here.lan, entry.hints))

    def _set_expiry_timer(self, here: _Here, now: float) -> None:
        look = here.view.next_look(now)
        delay = self._config.expiry if look is None else max(_SOON, look - now)
        self._out.set_timer(delay, ExpireDue(here.local.network))

    # Meeting.

    def meet(self, network: bytes, now: float) -> None:
        """Somebody on a network is to be met."""
        here = self._here.get(network)
        if here is not None:
            self._meet_due(here, now)

    def _meet_due(self, here: _Here, now: float) -> None:
        """Meet those whose time has come, so many at once, and look again when the next one's has."""
        network = here.local.network
        unmet = [entry for entry in here.view.entries.values() if entry.peer is None and entry.places]
        free = self._config.meetings - sum(entry.meeting for entry in unmet)
        later: float | None = None
        for entry in unmet:
            if entry.meeting:
                continue
            if entry.due > now:
                later = entry.due if later is None else min(later, entry.due)
            elif free > 0:
                free -= 1
                entry.meeting = True
                self._out.add(Meet(network, entry.lan, here.lan, entry.hints))
        if later is not None:
            self._out.set_timer(max(_SOON, later - now), MeetDue(network))

    def _handle_met(self, network: bytes, lan: bytes, peer: PeerId, now: float) -> list[LanChange]:
        here = self._here.get(network)
        if here is None:
            return []
        first = not here.view.entries
        try:
            entry = here.view.met(lan, now)
        except RemoteError as error:
            self._refuse(error.reason, f"a device that was met: {error.detail}")
            return []
        if first:
            self._set_expiry_timer(here, now)
        entry.meeting = False
        entry.failures = 0
        self._remember(lan, peer)
        changes: list[LanChange] = []
        if entry.peer != peer:
            entry.peer = peer
            changes.append(LanPeer(entry.contact(peer), network))
        self._meet_due(here, now)
        return changes

    def _remember(self, lan: bytes, peer: PeerId) -> None:
        self._known.pop(lan, None)
        self._known[lan] = peer
        if len(self._known) > _REMEMBERED:
            del self._known[next(iter(self._known))]

    def _handle_not_met(self, network: bytes, lan: bytes, reason: Reason, now: float) -> None:
        here = self._here.get(network)
        entry = None if here is None else here.view.entries.get(lan)
        if here is None or entry is None:
            return
        config = self._config
        entry.meeting = False
        entry.due = now + min(config.retry * 2.0**entry.failures, config.retry_most)
        entry.failures = min(entry.failures + 1, 16)
        self._out.record(
            Record(Kind.CONTROL, reason=reason, note="a node of a local network could not be met")
        )
        self._meet_due(here, now)


def _contacts(view: LocalView) -> tuple[Contact, ...]:
    found: dict[PeerId, Entry] = {}
    for entry in view.entries.values():
        if entry.peer is not None:
            found[entry.peer] = entry
    return tuple(entry.contact(peer) for peer, entry in found.items())


def _entry_of(view: LocalView, peer: PeerId) -> Entry | None:
    return next((entry for entry in view.entries.values() if entry.peer == peer), None)
