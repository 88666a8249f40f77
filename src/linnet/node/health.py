"""What a running node knows of its own health, for `linnet doctor`, with advice.

This includes rooms, places, streams and content that reach nobody, and since when.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

from msgspec import Struct

from linnet.api.node_commands import Check
from linnet.core.counts import counted
from linnet.core.errors import StoreError
from linnet.core.ids import PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.spaces import count_by_words
from linnet.core.stores import CellDamage, Damage
from linnet.identity.addresses import parse_contact
from linnet.identity.text import Sort, short, to_text
from linnet.net.clock import STEP_SECONDS
from linnet.node.config import NodeConfig
from linnet.node.doctor import CLOCKS_APART, MENDING, advise_on_cells, named
from linnet.node.home import shown
from linnet.overlay.config import Overlay
from linnet.overlay.gossip.commands import TrackerlessStatus
from linnet.peer.interface import NodeStatus, Unanswered
from linnet.places.commands import PlaceIs
from linnet.rooms.commands import Departure, RoomStatus
from linnet.rooms.event_types import Membership
from linnet.streams.commands import StreamStatus

BEGIN = (
    "name one or two nodes that are up: linnet up --bootstrap KEY@HOST:PORT (linnet up prints that address); "
    "the first node of a network waits for the others"
)

ALONE = (
    "each that is known is tried again, more rarely the longer it is silent; see that one of them is up, "
    "or name another: linnet up --bootstrap KEY@HOST:PORT"
)

TWIN = (
    "stop the other one: a copy of a home must not run beside it, or both say other things under the same "
    "numbers; a second device has a home of its own: linnet id ask --home NEW"
)

REVOKED = (
    "for ever; to go on here be a new device: linnet id ask --home NEW, and linnet id link on a device that "
    "holds your key"
)


class NodeFacts(Struct, frozen=True):
    """What a running node knows about itself, for its health checks."""

    status: NodeStatus
    config: NodeConfig
    clock_offset: float
    """Seconds by which the wall clock is ahead of the node's own time."""
    store_failed: StoreError | None = None
    trace_lost: int = 0
    """Rows of the trace that could not be written."""
    ring: TrackerlessStatus | None = None
    """The state of a node that finds others without trackers."""
    damaged: tuple[Damage, ...] = ()
    damaged_cells: tuple[CellDamage, ...] = ()
    revoked: bool = False
    """Whether the person's revocation of this device is known here."""


def node_checks(facts: NodeFacts) -> Iterator[Check]:
    """Check a running node by what it knows about itself."""
    status, config = facts.status, facts.config
    if facts.revoked or any(room.revoked for room in status.rooms):
        yield Check("device", False, "its person revoked this device: others take nothing from it", REVOKED)
    yield from _twins(status)
    stepped = abs(facts.clock_offset) > STEP_SECONDS
    detail = f"the wall clock is {facts.clock_offset:+.3f} s from the node's own time"
    yield Check(
        "clock", not stepped, detail, "the clock was set while the node ran; restart it" if stepped else ""
    )
    if status.clocks:
        yield _clocks(status.clocks)
    failed = "" if facts.store_failed is None else str(facts.store_failed)
    yield Check(
        "store", not failed, failed or "written and read", "free space, then restart" if failed else ""
    )
    if facts.damaged:
        detail = f"{_damage_text(len(facts.damaged), 'unit')}: {named(facts.damaged)}"
        yield Check("stored events", False, detail, MENDING)
    if facts.damaged_cells:
        spaces = [each.space for each in facts.damaged_cells]
        detail = f"{_damage_text(len(spaces), 'value')}: {count_by_words(spaces)}"
        yield Check("stored values", False, detail, advise_on_cells(spaces))
    if facts.trace_lost:
        yield Check(
            "trace",
            False,
            f"{counted(facts.trace_lost, 'row')} could not be written",
            "free space on the disk",
        )
    listens = ", ".join(status.listens)
    yield Check("listening", True, listens or "nowhere: this node only dials")
    yield _reachability(status, config)
    yield from _trackers(status, config)
    if facts.ring is not None:
        yield from ring_checks(status, config, facts.ring)
    lost = sum(stream.gaps_lost for stream in status.streams)
    waiting = sum(stream.gaps_open for stream in status.streams)
    yield Check(
        "streams",
        lost == 0,
        f"{len(status.streams)} joined, {counted(waiting, 'gap')} open, {counted(lost, 'event')} lost",
        "a storage node keeps what late and returning nodes need: [[storage]]" if lost else "",
    )


def _twins(status: NodeStatus) -> Iterator[Check]:
    """Check whether peers prefer other links of this very device: then it also runs elsewhere."""
    links = [peer.peer for peer in status.peers if not peer.up and peer.last_failure is Reason.DUPLICATE_LINK]
    away = [each.peer for each in status.unanswered if each.reason is Reason.DUPLICATE_LINK]
    if peers := dict.fromkeys((*links, *away)):
        told = f"this device also runs elsewhere: {counted(len(peers), 'peer')} had another link of it"
        yield Check("twin", False, f"{told} (duplicate_link)", TWIN)


def _damage_text(count: int, what: str) -> str:
    return f"{counted(count, what)} of the store {'is' if count == 1 else 'are'} damaged"


def _clocks(ahead: tuple[float, ...]) -> Check:
    """Compare our clock with those of peers: if most of them agree on another time, ours is wrong."""
    name, count = "clocks of peers", counted(len(ahead), "peer")
    apart = [each for each in ahead if abs(each) > CLOCKS_APART]
    if 2 * len(apart) <= len(ahead):
        # At least as many clocks agree with ours as do not.
        middle = min(ahead, key=abs) if apart else ahead[len(ahead) // 2]
        others = f"; {len(apart)} of them say another time" if apart else ""
        return Check(name, True, f"{count}: {middle:+.1f} s from ours in the middle{others}")
    middle = apart[len(apart) // 2]
    whose = f"all of {count}" if len(apart) == len(ahead) else f"{len(apart)} of {count}"
    whose = "its only linked peer" if len(ahead) == 1 else whose
    side = "behind" if middle > 0 else "ahead of"
    detail = f"this node's clock is {side} {whose} by {timedelta(seconds=round(abs(middle)))}"
    advice = "set the clock of this machine, or that of the peer" if len(ahead) == 1 else "set the clock"
    return Check(name, False, detail, advice)


def _reachability(status: NodeStatus, config: NodeConfig) -> Check:
    if status.reachable is None and not config.trackers:
        return Check("reachable", True, "not known: there is no tracker that could try")
    if status.reachable is None:
        return Check("reachable", True, "not known yet: no tracker has tried to dial us")
    if status.reachable:
        return Check("reachable", True, "a tracker could dial us")
    why = "" if status.reachable_reason is None else f": {status.reachable_reason}"
    advice = "others cannot dial us, so we dial them; to change it open the port, or set node.advertise"
    return Check("reachable", False, f"unreachable_inbound{why}", advice)


def _trackers(status: NodeStatus, config: NodeConfig) -> Iterator[Check]:
    links = {peer.peer: peer for peer in status.peers}
    contacts = [contact for contact in config.trackers if contact.peer != status.peer]
    if config.tracker.enabled:
        yield Check("tracker", True, f"this node tracks {counted(len(status.tracked), 'topic')}")
    elif not config.trackers and config.node.overlay is Overlay.TRACKER:
        yield Check(
            "trackers",
            True,
            "none configured: nobody is found for streams, not even a peer linked by linnet connect; "
            "name one by linnet up --tracker KEY@HOST:PORT, or do without: linnet up --overlay ring",
        )
    for contact in contacts:
        name = f"tracker {short(Sort.DEVICE, contact.peer)}"
        link = links.get(contact.peer)
        if link is not None and link.up:
            yield Check(name, True, "linked" if link.rtt is None else f"linked, {link.rtt * 1000:.1f} ms")
        elif link is None or link.last_failure is None:
            yield Check(name, True, "no link is needed at the moment")
        else:
            advice = f"linnet doctor {to_text(Sort.DEVICE, contact.peer)}@{','.join(contact.hints)}"
            since = "" if link.failing_since is None else f" since {shown(link.failing_since)}"
            yield Check(name, False, f"not linked{since}: {link.last_failure}", advice)


def ring_checks(status: NodeStatus, config: NodeConfig, ring: TrackerlessStatus) -> Iterator[Check]:
    """Check whether other nodes are known, whether the bootstrap nodes answer, and the state of topics."""
    known = ring.acquaintances
    if known and not ring.sample:
        since = "" if ring.alone_seconds is None else f" for {ring.alone_seconds:.0f} s"
        detail = f"{counted(known, 'node')} known, and none of them in the sample{since}: nobody new is found"
        yield Check("ring", False, detail, ALONE)
        yield from _first(status, config)
    elif known:
        yield Check("ring", True, f"{counted(known, 'node')} known, {len(ring.sample)} of them in the sample")
    else:
        yield Check("ring", False, "no other node is known", BEGIN)
        yield from _first(status, config)
    alone = [topic for topic in ring.rings if not topic.known]
    if ring.rings:
        found = f"{counted(len(ring.rings), 'topic')}, {len(alone)} of them with no other known member"
        yield Check("topics", True, found)
    uncovered = sum(topic.uncovered for topic in ring.rings)
    if uncovered:
        yield Check(
            "links",
            False,
            f"{counted(uncovered, 'neighbour')} without a link: {ring.held} are held, which is the most",
            "raise trackerless.most_links",
        )


def _first(status: NodeStatus, config: NodeConfig) -> Iterator[Check]:
    """Report why the bootstrap nodes cannot be used."""
    links = {peer.peer: peer for peer in status.peers}
    for text in config.node.bootstrap:
        contact = parse_contact(text)
        link = links.get(contact.peer)
        if contact.peer == status.peer or link is None or link.up:
            continue
        name = f"bootstrap {short(Sort.DEVICE, contact.peer)}"
        advice = f"linnet doctor {to_text(Sort.DEVICE, contact.peer)}@{','.join(contact.hints)}"
        yield Check(name, False, f"not linked: {link.last_failure or 'dialling'}", advice)


STARTING = 30.0
"""Seconds after a start in which it is too early to say that nobody can be reached."""

_SHOWN = 3
"""The most silent devices that are named."""
_MORE = "linnet up --bootstrap KEY@HOST:PORT, the address that their linnet up prints"
_CONNECT = "linnet connect KEY@HOST:PORT, the address that their linnet up prints"


def reach_checks(
    facts: NodeFacts, places: Iterable[PlaceIs], now: float, departures: Iterable[Departure] = ()
) -> Iterator[Check]:
    """Check which rooms, places and streams reach nobody.

    Yields one check for each of them. If all rooms reach somebody, they share one check, and so do places.
    """
    status = facts.status
    sight = _Sight(status, now)
    yield from _summed("rooms", [_room(room, sight) for room in status.rooms if _is_shared(room)])
    for room in status.rooms:
        yield from _caught_relays(room)
    yield from map(_departure, departures)
    yield from _summed("places", [_place(each, sight) for each in places if each.role == "guest"])
    lonely = (_stream(each, facts.config, facts.ring, sight) for each in status.streams)
    yield from (check for check in lonely if check is not None)
    yield from _content(status, sight)


def _content(status: NodeStatus, sight: _Sight) -> Iterator[Check]:
    """Check content: its subscriptions need a link to any node of the hash table."""
    peers = dict.fromkeys([link.peer for link in status.peers] + [each.peer for each in status.unanswered])
    if (
        status.content is None
        or not status.content.subscriptions
        or not peers
        or any(map(sight.is_up, peers))
    ):
        return
    yield sight.alone("content", "any other node", peers, f"check that another node runs, then {_CONNECT}")


class _Sight:
    """The known state of links."""

    def __init__(self, status: NodeStatus, now: float) -> None:
        self._links = {link.peer: link for link in status.peers}
        self._unanswered = {each.peer: each for each in status.unanswered}
        self._company = {each.topic: (*each.here, *each.known) for each in status.company}
        self._started = status.started_at
        self._now = now

    def is_up(self, peer: PeerId) -> bool:
        link = self._links.get(peer)
        return link is not None and link.up

    def of(self, topic: TopicId) -> tuple[PeerId, ...]:
        """Return the known members of a topic."""
        return self._company.get(topic, ())

    def failing(self, peer: PeerId) -> Unanswered | None:
        """Return since when a peer does not answer; parts release such a link between two tries."""
        link = self._links.get(peer)
        if link is None:
            return self._unanswered.get(peer)
        if link.up or link.failing_since is None:
            return None
        return Unanswered(peer, link.failing_since, link.last_failure)

    def alone(self, name: str, whom: str, peers: Iterable[PeerId], advice: str) -> Check:
        """Return the check that none of these peers can be reached."""
        failing = [each for each in map(self.failing, peers) if each is not None]
        if not failing and self._now - self._started < STARTING:
            return Check(name, True, f"no link to {whom} yet: this node has just started")
        since = max((each.since for each in failing), default=self._started)
        moment = _moment(since)
        told = "; ".join(map(_told, failing[:_SHOWN])) or "no address of them is known"
        more = f" and {len(failing) - _SHOWN} more" if len(failing) > _SHOWN else ""
        return Check(name, False, f"no link to {whom} since {moment}: {told}{more}", advice)


def _told(silent: Unanswered) -> str:
    return f"{short(Sort.DEVICE, silent.peer)} {silent.reason or 'no answer'}"


def _moment(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).isoformat(" ", timespec="seconds")


def _plain(name: str | None) -> str:
    """Return a name that others chose, without characters that a terminal would not just show."""
    return "".join(letter for letter in name or "" if letter.isprintable())[:80].strip()


def _summed(sort: str, checks: list[Check | None]) -> Iterator[Check]:
    alone = [check for check in checks if check is not None]
    yield from alone
    if checks and not alone:
        some = sort[:-1] if len(checks) == 1 else sort
        yield Check(f"{sort} reached", True, f"{len(checks)} {some}, with somebody at the other end of each")


def _is_shared(room: RoomStatus) -> bool:
    """Return whether a room of ours has other members; one that we only relay needs nobody online."""
    return room.membership is Membership.JOIN and not room.relay and room.members > 1


def _room(room: RoomStatus, sight: _Sight) -> Check | None:
    if room.online or any(relay.up for relay in room.relays):
        return None
    shown = _plain(room.name) or short(Sort.TOPIC, room.room)
    advice = (
        f"check that a member's node runs, then {_CONNECT}; or join again by a new invitation, "
        "which takes in where the others are now"
    )
    if not room.relays:
        advice += f"; a relay is there when members are not: linnet room relays {shown} --add KEY@HOST:PORT"
    peers = (*sight.of(room.room), *(relay.relay for relay in room.relays))
    return sight.alone(f"room {shown}", "any member or relay", dict.fromkeys(peers), advice)


def _caught_relays(room: RoomStatus) -> Iterator[Check]:
    """Yield a failed check for each relay that lies, and one that is told for each that lost events."""
    shown = _plain(room.name) or short(Sort.TOPIC, room.room)
    for relay in room.relays:
        if relay.fault is None:
            continue
        who = short(Sort.DEVICE, relay.relay)
        is_loss = relay.fault is Reason.LOST
        detail = f"{relay.fault.value}, by its own signed statements"
        if is_loss:
            yield Check(
                f"relay {who} of room {shown}", True, f"{detail}; a restored copy of its store does that"
            )
            continue
        advice = f"take another relay: linnet room relays {shown} --move {who} KEY@HOST:PORT"
        yield Check(f"relay {who} of room {shown}", False, detail, advice)


def _departure(departure: Departure) -> Check:
    shown = _plain(departure.name) or short(Sort.TOPIC, departure.room)
    unheard = f"{counted(departure.members, 'member')} have not heard of it"
    detail = f"{unheard}; told when one of them, or a relay, is in reach, until {_moment(departure.until)}"
    return Check(f"left room {shown}", True, detail)


def _place(place: PlaceIs, sight: _Sight) -> Check | None:
    topic = place.place
    shown = _plain(place.name) or short(Sort.TOPIC, topic)
    if place.upstreams or any(map(sight.is_up, place.downstreams)):
        return _host(f"place {shown}", place, sight)
    peers = (*sight.of(topic), *(contact.peer for contact in place.contacts))
    advice = f"check that the host's node runs, then {_CONNECT}; or enter again by a new address of the place"
    return sight.alone(f"place {shown}", "the host or another guest", dict.fromkeys(peers), advice)


def _host(name: str, place: PlaceIs, sight: _Sight) -> Check | None:
    """Check the link to the host or a co-host of a place where other guests are linked."""
    failing = [each for each in map(sight.failing, place.speakers) if each is not None]
    if not failing or any(map(sight.is_up, place.speakers)):
        return None
    since = _moment(max(each.since for each in failing))
    whom = "the host" if len(place.deed.voices) == 1 else "the host or a co-host"
    told = "; ".join(map(_told, failing[:_SHOWN]))
    detail = f"no link to {whom} since {since}: {told}; others are linked, and pass on what they have"
    return Check(name, False, detail, f"check that the host's node runs, then {_CONNECT}")


def _stream(
    stream: StreamStatus, config: NodeConfig, ring: TrackerlessStatus | None, sight: _Sight
) -> Check | None:
    name = f"stream {stream.stream}"
    if stream.is_cut_off:
        detail = "this node may be cut off: others claim to have events that nobody hands over"
        advice = "it draws other members by itself; name a tracker or storage nodes that you trust"
        return Check(name, False, detail, advice)
    if stream.neighbors:
        return None
    if stream.overlay is Overlay.RING:
        known = 0 if ring is None else sum(each.known for each in ring.rings if each.topic == stream.topic)
        advice = f"check that others run who subscribe to it, and are known: {_MORE}"
        return sight.alone(name, "any of its members", sight.of(stream.topic), advice) if known else None
    if stream.alone is Reason.UNREACHABLE_INBOUND:
        detail = "no neighbour: this node cannot be dialled, and of those who can nobody is there"
        advice = "set listen in linnet.toml here or at another of its nodes, or run a node that listens"
        return Check(name, False, detail, advice)
    trackers = [contact.peer for contact in config.trackers]
    if not trackers or config.tracker.enabled or any(map(sight.is_up, trackers)):
        return None  # Nobody to ask was named, or whoever was asked knows of nobody else.
    advice = (
        "check that the tracker runs at the address in node.trackers, or name another: "
        "linnet up --tracker KEY@HOST:PORT"
    )
    return sight.alone(name, "a tracker or a neighbour", trackers, advice)
