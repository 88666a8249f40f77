"""What is counted on the way into the trace."""

from __future__ import annotations

from linnet.core.effects import Deliver
from linnet.core.ids import EventId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.items import Ended
from linnet.event.event import Spot, Verified
from linnet.event.signing import message_tail, sign_unit
from linnet.sim.streams.world import Meter
from linnet.testing.identities import known_identity
from linnet.testing.networks import RowTrace, named_peer
from linnet.trace.records import Kind, Record

A, B, C = (named_peer(name) for name in "abc")
EVENT = EventId(bytes(32))


def unit() -> Verified:
    identity = known_identity("ada")
    tails = [message_tail(b"hello", 0)]
    topic = TopicId(bytes(32))
    return sign_unit(identity.device, Spot(topic, identity.author, identity.card.device, 0, None), tails)


def test_records_are_counted_and_passed_on() -> None:
    trace = RowTrace()
    meter = Meter(trace)
    records = [
        Record(Kind.PUBLISHED, event=EVENT),
        Record(Kind.SENT, event=EVENT, peer=B),
        Record(Kind.SENT, event=EVENT, peer=C, events=2),
        Record(Kind.DELIVERED, event=EVENT),
        Record(Kind.REJECTED, reason=Reason.STALE),
        Record(Kind.REJECTED, reason=Reason.MALFORMED),
    ]
    for record in records:
        meter.write(A, record, 10.0)
    meter.write(B, Record(Kind.RECEIVED, event=EVENT, hops=2), 10.5)
    meter.write(C, Record(Kind.RECEIVED, event=EventId(b"?" * 32)), 11.0)
    meter.write(B, Record(Kind.DUPLICATE, event=EVENT), 11.0)
    meter.write(B, Record(Kind.OVERLAY), 12.0)
    assert (meter.sent, meter.duplicates, meter.stale) == (3, 1, 1)
    assert (meter.delays, meter.hops) == ([0.5], {2: 1})
    assert (meter.publishers, meter.changed_at) == ({A: 1}, 12.0)
    assert len(trace.rows) == len(records) + 4


def test_a_delivery_counts_once_and_not_at_its_publisher() -> None:
    meter = Meter(RowTrace())
    (event,) = unit().events
    meter.write(A, Record(Kind.PUBLISHED, event=event.id), 10.0)
    for node in (A, B, B, C):
        meter.deliver(node, Deliver(1, (event, Ended(None))), 11.0)
    assert meter.reached() == 2


def test_beginning_anew_forgets_messages_but_not_the_overlay() -> None:
    meter = Meter(RowTrace())
    meter.write(A, Record(Kind.SENT), 10.0)
    meter.write(A, Record(Kind.OVERLAY), 10.0)
    meter.began()
    assert (meter.sent, meter.changed_at) == (0, 10.0)
