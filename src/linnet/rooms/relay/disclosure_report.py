"""All that a relay knows of a room and its people, so that its owner and they can see it."""

from __future__ import annotations

from linnet.core.ids import AuthorId, DeviceId, TopicId
from linnet.core.stores import EventLog
from linnet.rooms.access.control_dag import ControlDag
from linnet.rooms.relay.event_cache import EventCache
from linnet.rooms.relay.stored_receipts import StoredReceipts
from linnet.rooms.results import RelayKnowledge, RelayRoomReport


def disclose_room(
    room: TopicId,
    log: EventLog,
    dag: ControlDag,
    cache: EventCache,
    receipts: StoredReceipts,
    chunk_bytes: int,
    seen: dict[AuthorId, float],
) -> RelayRoomReport:
    """What is known of one room."""
    control: dict[AuthorId, int] = {}
    devices: dict[AuthorId, dict[DeviceId, None]] = {}
    for event in cache.control:
        fact = dag.fact(event)
        control[fact.sender] = control.get(fact.sender, 0) + 1
        devices.setdefault(fact.sender, {})[fact.device] = None
    for topic in (*cache.topics, *cache.group_topics):
        for head in log.heads(topic):
            devices.setdefault(head.author, {})[head.device] = None
    view = dag.view()
    usage, keys = cache.usage, cache.shelf.usage
    members = (person for person, _ in view.members())
    known = dict.fromkeys((*members, *control, *usage.shares, *keys.shares, *seen))
    people = tuple(
        RelayKnowledge(
            person,
            view.membership(person),
            control.get(person, 0),
            usage.share_of(person).events + keys.share_of(person).events,
            usage.share_of(person).bytes + keys.share_of(person).bytes,
            len(devices.get(person, ())),
            max(usage.share_of(person).last_ms or 0, keys.share_of(person).last_ms or 0) or None,
            seen.get(person),
            receipts.count_of(person),
            cache.devices.count_of(person),
        )
        for person in sorted(known)
    )
    return RelayRoomReport(
        room,
        len(dag),
        usage.events + keys.events,
        usage.bytes + keys.bytes,
        chunk_bytes,
        cache.oldest,
        cache.expired,
        cache.evicted,
        usage.states,
        people,
        keys.events,
        keys.bytes,
    )
