"""Which rooms, places, streams and content reach nobody, since when, and what to do, for `linnet doctor`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime

from linnet.core.ids import PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.identity.text import Sort, short
from linnet.node.config import NodeConfig
from linnet.node.control_types import Check
from linnet.overlay.config import Overlay
from linnet.overlay.trackerless.status import TrackerlessStatus
from linnet.peer.interface import NodeStatus, Unanswered
from linnet.places.commands import PlaceIs
from linnet.rooms.content import Membership
from linnet.rooms.results import RoomStatus
from linnet.streams.commands import StreamStatus

STARTING = 30.0
"""Seconds after a start in which it is too early to say that nobody can be reached."""

_SHOWN = 3
"""Devices that are named, of those that do not answer."""
_CONNECT = "linnet connect KEY@HOST:PORT, the address that their linnet up prints"


def reach_checks(
    status: NodeStatus,
    config: NodeConfig,
    places: Iterable[PlaceIs],
    names: Mapping[TopicId, str | None],
    ring: TrackerlessStatus | None,
    now: float,
) -> Iterator[Check]:
    """One for each room, place and stream that reaches nobody; one for rooms, and for places, if all do."""
    sight = _Sight(status, now)
    yield from _summed("rooms", [_room(room, sight) for room in status.rooms if _is_shared(room)])
    yield from _summed(
        "places", [_place(each, names.get(each.deed.place), sight) for each in places if each.role == "guest"]
    )
    lonely = (_stream(each, config, ring, sight) for each in status.streams)
    yield from (check for check in lonely if check is not None)
    yield from _content(status, sight)


def _content(status: NodeStatus, sight: _Sight) -> Iterator[Check]:
    """Subscriptions by content live by any node of the hash table."""
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
    """What is known of links."""

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
        """Who takes part in a topic as far as is known."""
        return self._company.get(topic, ())

    def _failing(self, peer: PeerId) -> Unanswered | None:
        """Since when a peer does not answer: parts let go of such a link between two tries."""
        link = self._links.get(peer)
        if link is None:
            return self._unanswered.get(peer)
        if link.up or link.failing_since is None:
            return None
        return Unanswered(peer, link.failing_since, link.last_failure)

    def alone(self, name: str, whom: str, peers: Iterable[PeerId], advice: str) -> Check:
        """Nobody of these can be reached."""
        failing = [each for each in map(self._failing, peers) if each is not None]
        if not failing and self._now - self._started < STARTING:
            return Check(name, True, f"no link to {whom} yet: this node has just started")
        since = max((each.since for each in failing), default=self._started)
        shown = datetime.fromtimestamp(since, UTC).isoformat(" ", timespec="seconds")
        told = "; ".join(map(_told, failing[:_SHOWN])) or "no address of them is known"
        more = f" and {len(failing) - _SHOWN} more" if len(failing) > _SHOWN else ""
        return Check(name, False, f"no link to {whom} since {shown}: {told}{more}", advice)


def _told(silent: Unanswered) -> str:
    return f"{short(Sort.DEVICE, silent.peer)} {silent.reason or 'no answer'}"


def _plain(name: str | None) -> str:
    """What others called something, as far as a terminal only shows it."""
    return "".join(letter for letter in name or "" if letter.isprintable())[:80].strip()


def _summed(sort: str, checks: list[Check | None]) -> Iterator[Check]:
    alone = [check for check in checks if check is not None]
    yield from alone
    if checks and not alone:
        some = sort[:-1] if len(checks) == 1 else sort
        yield Check(f"{sort} reached", True, f"{len(checks)} {some}, with somebody at the other end of each")


def _is_shared(room: RoomStatus) -> bool:
    """Whether others are in a room of ours: one that we serve as a relay needs nobody to be there."""
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


def _place(place: PlaceIs, name: str | None, sight: _Sight) -> Check | None:
    if place.upstreams or any(map(sight.is_up, place.downstreams)):
        return None
    topic = place.deed.place
    shown = _plain(name) or short(Sort.TOPIC, topic)
    peers = (*sight.of(topic), *(contact.peer for contact in place.contacts))
    advice = f"check that the host's node runs, then {_CONNECT}; or enter again by a new address of the place"
    return sight.alone(f"place {shown}", "the host or another guest", dict.fromkeys(peers), advice)


def _stream(
    stream: StreamStatus, config: NodeConfig, ring: TrackerlessStatus | None, sight: _Sight
) -> Check | None:
    if stream.neighbors:
        return None
    name = f"stream {stream.stream}"
    if stream.overlay is Overlay.RING:
        known = 0 if ring is None else sum(each.known for each in ring.rings if each.topic == stream.topic)
        advice = f"check that others run who subscribe to it, then {_CONNECT}"
        return sight.alone(name, "any of its members", sight.of(stream.topic), advice) if known else None
    if stream.alone is Reason.UNREACHABLE_INBOUND:
        detail = "no neighbour: this node cannot be dialled, and of those who can nobody is there"
        advice = "set listen in linnet.toml here or at another of its nodes, or run a node that listens"
        return Check(name, False, detail, advice)
    trackers = [contact.peer for contact in config.trackers]
    if not trackers or config.tracker.enabled or any(map(sight.is_up, trackers)):
        return None  # Nobody to ask was named, or whoever was asked knows of nobody else.
    advice = f"check that the tracker runs at the address in node.trackers; until then {_CONNECT}"
    return sight.alone(name, "a tracker or a neighbour", trackers, advice)
