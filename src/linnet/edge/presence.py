"""Presence on local networks: finds the nodes there, without telling mere listeners who we are.

A node announces itself on a network where at least one topic is allowed, and on no other; where none is, it
does not even read announcements. It meets the nodes that it hears: a link is opened, on which both prove the
device key behind the key of the network (see docs/design/edge.md). Each device that was met is reported as
`LanPeer`. The local view is the set of nodes on one network whose announcements were heard lately.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

from msgspec import Struct

from linnet.core.allowances import Allowances
from linnet.core.effects import Announce, Meet
from linnet.core.errors import RemoteError
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.inputs import Heard, LocalNetwork, Met, NetworkIs, NotMet
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.edge.announcement import (
    CORE,
    NONCE_BYTES,
    Announcement,
    check_announcement,
    lan_hint,
    lan_key,
    make_announcement,
    read_announcement,
)
from linnet.edge.commands import LanStatus, MetPeer, NetworkStatus
from linnet.edge.config import PresenceConfig
from linnet.edge.lan_policy import LanPolicy
from linnet.edge.notices import LanChange, LanGone, LanPeer
from linnet.machine.outbox import Outbox
from linnet.trace.records import Kind, Record

_PLACES = 4
"""The most addresses kept of one node: it may use IPv4 and IPv6, on two interfaces."""


class LanNode(Struct, eq=False):
    """One node of the network, under the key that it announces."""

    lan: bytes
    heard_at: float
    due: float
    """When to meet it."""
    port: int = 0
    nonce: bytes = b""
    datagram: bytes = b""
    """Its last announcement with a valid signature."""
    places: dict[str, float] = {}
    """The addresses that it announced itself from, and when it last did so."""
    peer: PeerId | None = None
    """The device behind the key, once met."""
    meeting: bool = False
    failures: int = 0
    is_doubted: bool = False
    """Whether it was silent for so long that it is being dialled."""

    @property
    def hints(self) -> tuple[str, ...]:
        """The addresses at which it may be dialled."""
        return tuple(lan_hint(self.lan, place, self.port) for place in self.places)

    def contact(self, peer: PeerId) -> Contact:
        """Return the device with these addresses."""
        return Contact(peer, self.hints)


class LocalView:
    """The nodes of one network."""

    def __init__(self, config: PresenceConfig, now: float) -> None:
        self._config = config
        self._rates = Allowances(config.burst, config.rate, config.sources)
        self._total = Allowances(config.total_rate, config.total_rate)
        self.entries: dict[bytes, LanNode] = {}
        """The nodes by key; those heard first come first."""
        self.admitted = 0
        """The number of entries ever made for announcements."""
        self.checked = 0
        """The number of signatures checked."""

    def handle_announcement(self, source: str, datagram: bytes, ours: bytes, now: float) -> LanNode | None:
        """Return the node that sent this announcement, if anything about it is new.

        Returns None if it is our own or says nothing new; raises `RemoteError` if it is refused.
        """
        if not self._total.spend(None, now):
            raise RemoteError(Reason.FLOODING, "too many announcements on this network")
        if not self._rates.spend(source, now):
            raise RemoteError(Reason.FLOODING, f"too many announcements from {source}")
        said = read_announcement(datagram)
        if said.lan == ours:
            return None
        entry = self.entries.get(said.lan)
        if entry is None or entry.datagram != datagram:
            return self._take_news(entry, said, source, datagram, now)
        entry.heard_at, entry.is_doubted = now, False
        return entry if self._note_place(entry, source, now) else None

    def _take_news(
        self, entry: LanNode | None, said: Announcement, source: str, datagram: bytes, now: float
    ) -> LanNode:
        if entry is not None and entry.nonce == said.nonce:
            raise RemoteError(Reason.REPEATED_NONCE, f"another announcement of the same nonce from {source}")
        self.checked += 1
        check_announcement(datagram, said.lan)
        if entry is None:
            entry = self._admit_node(said.lan, source, now)
        entry.datagram, entry.port, entry.nonce = datagram, said.port, said.nonce
        entry.heard_at, entry.is_doubted = now, False
        entry.places.clear()
        self._note_place(entry, source, now)
        return entry

    def _admit_node(self, lan: bytes, source: str, now: float) -> LanNode:
        config = self._config
        if sum(source in entry.places for entry in self.entries.values()) >= config.source_entries:
            raise RemoteError(Reason.TOO_MANY, f"{config.source_entries} nodes are at {source} already")
        self._make_room(lambda entry: entry.failures > 0)
        self.admitted += 1
        entry = self.entries[lan] = LanNode(lan, heard_at=now, due=now)
        return entry

    def _make_room(self, may_go: Callable[[LanNode], bool]) -> None:
        """Drop a node that was not met if the view is full; nodes that were met stay."""
        most = self._config.entries
        if len(self.entries) < most:
            return
        ghosts = (each.lan for each in self.entries.values() if each.peer is None and may_go(each))
        ghost = next(ghosts, None)
        if ghost is None:
            raise RemoteError(Reason.TOO_MANY, f"{most} nodes are on this network already")
        del self.entries[ghost]

    def _note_place(self, entry: LanNode, source: str, now: float) -> bool:
        """Note the address from which a node was heard; return whether it is new."""
        is_new = source not in entry.places
        if is_new and len(entry.places) >= _PLACES:
            raise RemoteError(Reason.TOO_MANY, f"a node at more than {_PLACES} addresses, now {source}")
        entry.places[source] = now
        return is_new

    def note_met(self, lan: bytes, now: float) -> LanNode:
        """Return the node that has proved this key; add it if it was not heard yet."""
        entry = self.entries.get(lan)
        if entry is None:
            self._make_room(lambda entry: True)
            entry = self.entries[lan] = LanNode(lan, heard_at=now, due=now)
        entry.heard_at, entry.is_doubted = now, False
        return entry

    def find_silent(self, now: float) -> list[LanNode]:
        """Return the met nodes that are silent for too long and are not being dialled yet."""
        before = now - self._config.doubt
        return [
            entry
            for entry in self.entries.values()
            if entry.heard_at <= before and entry.peer is not None and entry.places and not entry.is_doubted
        ]

    def drop_expired(self, now: float) -> list[LanNode]:
        """Forget the nodes that were not heard for too long, and return them."""
        before = now - self._config.expiry
        gone = [entry for entry in self.entries.values() if entry.heard_at <= before]
        for entry in gone:
            del self.entries[entry.lan]
        for entry in self.entries.values():
            fresh = {place: at for place, at in entry.places.items() if at > before}
            # A node that was met lately but not heard keeps its last addresses.
            entry.places = fresh or entry.places
        return gone

    def next_look_at(self, now: float) -> float | None:
        """Return when the next node is to be doubted or forgotten, if nothing more is heard of it."""
        if self.find_silent(now):
            return now
        return min((self._look_at(entry, now) for entry in self.entries.values()), default=None)

    def _look_at(self, entry: LanNode, now: float) -> float:
        doubt = entry.heard_at + self._config.doubt
        return doubt if doubt > now else entry.heard_at + self._config.expiry


_FIRST = (0.3, 0.7, 1.0)
"""Seconds before each of the first announcements."""
_WINDOW = 1.0
"""Seconds in which refusals are counted together."""
_REMEMBERED = 1024
_SOON = 0.05


class AnnounceDue(Timer, frozen=True):
    """Time to announce ourselves on a network."""

    network: bytes


class ExpireDue(Timer, frozen=True):
    """A node on a network may have been silent for too long."""

    network: bytes


class MeetDue(Timer, frozen=True):
    """Time to meet a node on a network."""

    network: bytes


class RefusalsDue(Timer, frozen=True):
    """The window in which refusals are counted is over."""


class _Network(Struct, eq=False):
    """A network that we are on and announce ourselves on."""

    local: LocalNetwork
    lan: bytes
    datagram: bytes
    view: LocalView
    replies: Allowances
    announced: int = 0
    announced_at: float = 0.0
    owed: int = 0
    """Announcements out of turn that are still to be made."""


class Presence:
    """The local networks of one node. Methods return the changes to the caller."""

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
        self._here: dict[bytes, _Network] = {}
        self._known: dict[bytes, PeerId] = {}
        """The devices met last, by the key that they announced."""
        self.refusals = Refusals(out)

    # Queries.

    @property
    def networks(self) -> tuple[bytes, ...]:
        """The networks on which we announce ourselves now."""
        return tuple(self._here)

    def contacts_on(self, network: bytes) -> tuple[Contact, ...]:
        """Return the contacts of all devices that were met on this network."""
        here = self._here.get(network)
        return () if here is None else _contacts(here.view)

    def networks_of(self, peer: PeerId) -> tuple[bytes, ...]:
        """Return the networks on which this device is now."""
        return tuple(network for network, here in self._here.items() if _entry_of(here.view, peer))

    def set_switch(self, topic: TopicId, network: bytes, is_allowed: bool, now: float) -> list[LanChange]:
        """Allow or deny a topic on a network; we announce ourselves where at least one topic is allowed.

        All devices there are reported again if the allowed topics have changed.
        """
        before = self.policy.allowed_topics(network)
        if is_allowed:
            local = self._locals.get(network)
            self.policy.allow_topic(topic, network, "" if local is None else local.name)
        else:
            self.policy.deny_topic(topic, network)
        changes = self._settle_networks(now)
        if self.policy.allowed_topics(network) != before:
            changes += [LanPeer(contact, network) for contact in self.contacts_on(network)]
        return changes

    def status(self) -> LanStatus:
        """Describe the networks."""
        names = self.policy.networks | {each.network: each.name for each in self._locals.values()}
        return LanStatus(tuple(self._network_status(network, name) for network, name in names.items()))

    def _network_status(self, network: bytes, name: str) -> NetworkStatus:
        here = self._here.get(network)
        heard = 0 if here is None else len(here.view.entries)
        topics, is_here = self.policy.allowed_topics(network), network in self._locals
        met = tuple(MetPeer(each.peer, each.hints) for each in self.contacts_on(network))
        return NetworkStatus(network, name, is_here, here is not None, topics, heard, met)

    # Inputs.

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
        """Announce ourselves exactly on our networks where a topic is allowed."""
        changes: list[LanChange] = []
        wanted = {
            network: local
            for network, local in self._locals.items()
            if network != CORE and self.policy.allowed_topics(network)
        }
        for network in [network for network in self._here if network not in wanted]:
            changes += self._leave_network(self._here.pop(network))
        for network, local in wanted.items():
            here = self._here.get(network)
            if here is None or here.local != local:
                self._enter_network(local, here, now)
        return changes

    def _enter_network(self, local: LocalNetwork, before: _Network | None, now: float) -> None:
        """Begin to announce ourselves; on a new day or at another port, under a new key."""
        key = lan_key(self._secret, local.network, local.day)
        datagram = make_announcement(key, local.port, self._entropy(NONCE_BYTES))
        config = self._config
        view = LocalView(config, now) if before is None else before.view
        replies = Allowances(config.replies, 1.0 / config.period)
        self._here[local.network] = _Network(local, key.public, datagram, view, replies)
        self._out.set_timer(_FIRST[0], AnnounceDue(local.network))

    def _leave_network(self, here: _Network) -> list[LanChange]:
        network = here.local.network
        for timer in (AnnounceDue(network), ExpireDue(network), MeetDue(network)):
            self._out.cancel_timer(timer)
        return [LanGone(contact.peer, network) for contact in _contacts(here.view)]

    # Announcing.

    def announce_node(self, network: bytes, now: float) -> bool:
        """Announce ourselves on a network; return whether we are still on it."""
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

    def _greet_newcomer(self, here: _Network, now: float) -> None:
        """Announce ourselves to a new node before our turn: once for each, and within bounds."""
        if not here.replies.spend(None, now):
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
            entry = here.view.handle_announcement(heard.source, heard.datagram, here.lan, now)
        except RemoteError as error:
            self.refusals.note_refusal(error.reason, f"announcement from {heard.source}: {error.detail}")
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

    def drop_expired(self, network: bytes, now: float) -> list[LanChange]:
        """Forget the nodes on a network that are silent for too long, and dial those that may be gone."""
        here = self._here.get(network)
        if here is None:
            return []
        gone = (entry.peer for entry in here.view.drop_expired(now))
        # A device may be here under two keys for a while, as a day ends.
        left = dict.fromkeys(peer for peer in gone if peer is not None and _entry_of(here.view, peer) is None)
        self._look_for_silent(here, now)
        if here.view.entries:
            self._set_expiry_timer(here, now)
        return [LanGone(peer, network) for peer in left]

    def _look_for_silent(self, here: _Network, now: float) -> None:
        """Dial nodes that fell silent: perhaps only their announcements were lost."""
        doubted = sum(entry.is_doubted for entry in here.view.entries.values())
        for entry in here.view.find_silent(now)[: max(0, self._config.meetings - doubted)]:
            entry.is_doubted = True
            self._out.add(Meet(here.local.network, entry.lan, here.lan, entry.hints))

    def _set_expiry_timer(self, here: _Network, now: float) -> None:
        look = here.view.next_look_at(now)
        delay = self._config.expiry if look is None else max(_SOON, look - now)
        self._out.set_timer(delay, ExpireDue(here.local.network))

    # Meeting.

    def meet_nodes(self, network: bytes, now: float) -> None:
        """Meet the nodes of a network whose time has come."""
        here = self._here.get(network)
        if here is not None:
            self._meet_due(here, now)

    def _meet_due(self, here: _Network, now: float) -> None:
        """Meet nodes whose time has come, a limited number at once, and set the timer for the next."""
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
            entry = here.view.note_met(lan, now)
        except RemoteError as error:
            self.refusals.note_refusal(error.reason, f"a device that was met: {error.detail}")
            return []
        if first:
            self._set_expiry_timer(here, now)
        entry.meeting = False
        entry.failures = 0
        self._remember_device(lan, peer)
        changes: list[LanChange] = []
        if entry.peer != peer:
            entry.peer = peer
            changes.append(LanPeer(entry.contact(peer), network))
        self._meet_due(here, now)
        return changes

    def _remember_device(self, lan: bytes, peer: PeerId) -> None:
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
    found: dict[PeerId, LanNode] = {}
    for entry in view.entries.values():
        if entry.peer is not None:
            found[entry.peer] = entry
    return tuple(entry.contact(peer) for peer, entry in found.items())


def _entry_of(view: LocalView, peer: PeerId) -> LanNode | None:
    return next((entry for entry in view.entries.values() if entry.peer == peer), None)


class Refusals:
    """Counts refusals, since anyone on a local network can send anything at any rate.

    The first refusal for a reason is recorded at once; those that follow within the window are recorded
    together, with their number.
    """

    def __init__(self, out: Outbox) -> None:
        self._out = out
        self._more: dict[Reason, int] = {}

    def note_refusal(self, reason: Reason, note: str) -> None:
        """Count a refusal, and record it if it is the first for this reason in this window."""
        if reason in self._more:
            self._more[reason] += 1
            return
        self._out.record(Record(Kind.REJECTED, reason=reason, note=note[:200]))
        if not self._more:
            self._out.set_timer(_WINDOW, RefusalsDue())
        self._more[reason] = 0

    def end_window(self) -> None:
        """Record the refusals that were only counted in the window, which is over."""
        more, self._more = self._more, {}
        note = "more announcements, refused for the same reason"
        for reason, count in more.items():
            if count:
                self._out.record(Record(Kind.REJECTED, events=count, reason=reason, note=note))
