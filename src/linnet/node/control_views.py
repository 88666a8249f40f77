"""From what the machines say to what the control API says: ids become text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from msgspec.structs import replace

from linnet.core.ids import PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.items import CaughtUp, Ended, Inserted, Item, Missed, Overdue, Unreadable
from linnet.event.event import Event
from linnet.identity.text import Sort, to_text
from linnet.node.control_types import (
    CaughtUpView,
    ChainView,
    EdgeView,
    EndedView,
    EventView,
    FateView,
    GraphReply,
    InsertedView,
    ItemView,
    MissedView,
    OverdueView,
    PublishReply,
    RelayView,
    RoomView,
    RttView,
    StreamView,
)
from linnet.node.status_types import ContentView, HashTableView, PeerView, StatusReply
from linnet.overlay.config import Overlay
from linnet.overlay.tracked import Graph
from linnet.peer.interface import ContentStatus, HashTableStatus, NodeStatus, PeerStatus
from linnet.rooms.results import RelayStatus, RoomStatus
from linnet.streams.commands import Published, StreamStatus

_PURPOSE_LETTERS = 16
"""Letters of a topic in what a link is needed for, at least."""


def device_text(peer: PeerId) -> str:
    """A device id."""
    return to_text(Sort.DEVICE, peer)


def topic_text(topic: bytes) -> str:
    """A topic id."""
    return to_text(Sort.TOPIC, topic)


def item_view(item: Item) -> ItemView:
    """One line of a subscription."""
    match item:
        case Event():
            return event_view(item)
        case Unreadable(event, reason, by):
            taken_back = None if by is None else to_text(Sort.PERSON, by)
            return replace(event_view(event), text=None, unreadable=reason.value, redacted_by=taken_back)
        case Missed():
            return MissedView(
                topic_text(item.topic),
                to_text(Sort.PERSON, item.author),
                item.device.hex(),
                item.first,
                item.last,
                item.reason.value,
            )
        case CaughtUp(begins_at, evicted, reason):
            return CaughtUpView(begins_at, evicted, _reason(reason))
        case Inserted(_, event, before):
            return InsertedView(to_text(Sort.EVENT, event), to_text(Sort.EVENT, before))
        case Overdue(_, event, people):
            names = tuple(to_text(Sort.PERSON, person) for person in people)
            return OverdueView(to_text(Sort.EVENT, event), names)
        case Ended(reason):
            return EndedView(_reason(reason))
        case _:
            assert_never(item)


def publish_view(stream: str, published: Published) -> PublishReply:
    """The outcome of a publish."""
    return PublishReply(
        stream,
        topic_text(published.topic),
        published.first,
        tuple(to_text(Sort.EVENT, event) for event in published.ids),
        published.neighbors,
        tuple(
            FateView(device_text(fate.receiver), fate.storage, fate.delivered_at) for fate in published.fates
        ),
        _reason(published.unsent),
        _reason(published.unconfirmed),
    )


def status_view(
    status: NodeStatus,
    label: str,
    contact: str,
    version: str,
    now: float,
    overlay: Overlay = Overlay.TRACKER,
) -> StatusReply:
    """How things stand."""
    return StatusReply(
        version=version,
        device=device_text(status.peer),
        person=to_text(Sort.PERSON, status.author),
        label=label,
        contact=contact,
        started_at=status.started_at,
        now=now,
        roles=status.roles,
        listens=status.listens,
        reachable=status.reachable,
        reachable_reason=_reason(status.reachable_reason),
        blocked=tuple(map(device_text, status.blocked)),
        peers=peer_views(status),
        streams=tuple(map(stream_view, status.streams)),
        rooms=tuple(map(room_view, status.rooms)),
        tracked=tuple(topic_text(tracked.topic) for tracked in status.tracked),
        overlay=overlay,
        hash_table=_hash_table_view(status.hash_table),
        content=_content_view(status.content),
    )


def _hash_table_view(table: HashTableStatus | None) -> HashTableView | None:
    return None if table is None else HashTableView(table.known, table.kept, table.placed)


def _content_view(part: ContentStatus | None) -> ContentView | None:
    if part is None:
        return None
    return ContentView(part.subscriptions, part.filters, part.rendezvous, part.arrivals)


def topic_names(status: NodeStatus) -> dict[TopicId, str]:
    """What the streams and rooms of a node are called."""
    streams = {stream.topic: stream.stream for stream in status.streams}
    return streams | {room.room: room.name for room in status.rooms if room.name}


def peer_views(status: NodeStatus, names: Mapping[TopicId, str] | None = None) -> tuple[PeerView, ...]:
    """Every link to another node: one that is its own tracker has a link to itself as well."""
    known = topic_names(status) if names is None else names
    by_start = {topic.hex()[:_PURPOSE_LETTERS]: name for topic, name in known.items()}
    return tuple(_peer_view(peer, by_start) for peer in status.peers if peer.peer != status.peer)


def _named(purpose: str, names: Mapping[str, str]) -> str:
    """What a link is needed for, with the name of the stream, room or place instead of its number."""
    *words, topic = purpose.split(" ")
    name = names.get(topic[:_PURPOSE_LETTERS])
    return purpose if name is None else " ".join((*words, name))


def _peer_view(status: PeerStatus, names: Mapping[str, str]) -> PeerView:
    """One link."""
    return PeerView(
        device_text(status.peer),
        status.up,
        status.dialed,
        status.needed,
        status.wanted,
        status.rtt,
        status.since,
        status.agent,
        status.roles,
        _reason(status.last_failure),
        tuple(_named(purpose, names) for purpose in status.needed),
    )


def stream_view(status: StreamStatus) -> StreamView:
    """One stream."""
    return StreamView(
        stream=status.stream,
        topic=topic_text(status.topic),
        tracker=None if status.tracker is None else device_text(status.tracker),
        neighbors=tuple(map(device_text, status.neighbors)),
        storage_nodes=tuple(map(device_text, status.storage_nodes)),
        stores=status.stores,
        subscriptions=status.subscriptions,
        received=status.received,
        duplicates=status.duplicates,
        rejected=status.rejected,
        gaps_open=status.gaps_open,
        gaps_filled=status.gaps_filled,
        gaps_lost=status.gaps_lost,
        kept_events=status.kept_events,
        kept_bytes=status.kept_bytes,
        chains=tuple(
            ChainView(to_text(Sort.PERSON, chain.author), chain.device.hex(), chain.last, chain.missing)
            for chain in status.chains
        ),
        overlay=status.overlay,
        alone=_reason(status.alone),
    )


def room_view(status: RoomStatus) -> RoomView:
    """One room of this node."""
    return RoomView(
        room=topic_text(status.room),
        name=status.name,
        membership=status.membership,
        relay=status.relay,
        members=status.members,
        online=tuple(map(device_text, status.online)),
        relays=tuple(map(_relay_view, status.relays)),
        events=status.events,
        control_events=status.control_events,
        heads=status.heads,
        waiting=status.waiting,
        missing=status.missing,
        soft_failed=status.soft_failed,
        rejected=status.rejected,
        unsent=status.unsent,
        encrypted=status.encrypted,
    )


def _relay_view(status: RelayStatus) -> RelayView:
    return RelayView(
        device_text(status.relay),
        status.hints,
        status.up,
        status.chosen,
        status.rtt,
        status.load,
        _reason(status.failure),
    )


def graph_view(tracked: Graph) -> GraphReply:
    """The graph of a topic."""
    nodes = tuple(EdgeView(device_text(node), tuple(map(device_text, near))) for node, near in tracked.edges)
    rtts = tuple(RttView(device_text(one), device_text(other), rtt) for one, other, rtt in tracked.rtts)
    return GraphReply(topic_text(tracked.topic), tracked.degree, tracked.near, nodes, rtts)


def event_view(event: Event) -> EventView:
    """An event."""
    try:
        text = event.body.decode()
    except UnicodeDecodeError:
        text = None
    return EventView(
        id=to_text(Sort.EVENT, event.id),
        topic=topic_text(event.topic),
        author=to_text(Sort.PERSON, event.author),
        device=event.device.hex(),
        kind=event.kind,
        time=event.time,
        body=event.body,
        seq=event.seq,
        prev=None if event.prev is None else to_text(Sort.EVENT, event.prev),
        text=text,
        key=event.tail.key,
        height=event.tail.height,
    )


def _reason(reason: Reason | None) -> str | None:
    return None if reason is None else reason.value
