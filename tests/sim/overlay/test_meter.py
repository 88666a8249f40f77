"""What the meter counts: hits in time, order, repetition, what is there at the end."""

from __future__ import annotations

from linnet.core.ids import AuthorId, DeviceId, EventId, PeerId, TopicId
from linnet.event.event import MESSAGE, Event, Tail
from linnet.overlay.notices import NeighborDown, NeighborUp
from linnet.sim.overlay.world import WINDOW, OverlayMeter, Published

A, B, C, LIAR = (PeerId(bytes([number]) * 32) for number in (1, 2, 3, 4))
TOPIC = TopicId(bytes(32))


def _event(number: int, *deps: int) -> Event:
    causes = tuple(EventId(bytes([dep]) * 32) for dep in deps) or None
    tail = Tail(causes, None, len(deps), None, MESSAGE, None, 0, None, b"")
    author, device = AuthorId(bytes(32)), DeviceId(bytes(16))
    return Event(EventId(bytes([number]) * 32), TOPIC, author, device, 0, None, tail)


def test_hits_hops_and_delays_are_of_what_was_passed_on_in_time() -> None:
    meter = OverlayMeter([A, B, C])
    one = _event(1)
    meter.handed(A, one, 0, 100.0)
    meter.publish(Published(one, 0, A, 100.0, {B: None, C: None}))
    meter.handed(B, one, 3, 101.0)
    meter.handed(LIAR, one, 3, 101.0)
    meter.handed(C, one, 0, 102.0)
    assert (meter.hit_ratio, meter.handed_over, meter.passed_on) == (0.5, 2, 1)
    assert (meter.hops, meter.max_hops, meter.delay) == (3, 3, 1.0)
    two = _event(2, 1)
    meter.publish(Published(two, 0, A, 100.0, {B: None}))
    meter.handed(B, two, 1, 100.0 + WINDOW + 0.1)
    assert meter.hit_ratio == 1 / 3
    assert meter.repaired([[A, B, C, LIAR]]) == 5 / 6
    assert (meter.causal_violations, meter.repeated) == (0, 0)


def test_order_and_repetition() -> None:
    meter = OverlayMeter([A, B])
    one, two = _event(1), _event(2, 1)
    for event in (one, two):
        meter.publish(Published(event, 0, A, 100.0, {B: None}))
    meter.handed(B, two, 1, 101.0)
    meter.handed(B, one, 1, 101.0)
    meter.handed(B, one, 1, 102.0)
    assert (meter.causal_violations, meter.repeated, meter.handed_over) == (1, 1, 2)


def test_the_first_neighbour_in_a_topic() -> None:
    meter = OverlayMeter([A])
    meter.noticed(A, NeighborDown(TOPIC, B), 1.0)
    meter.noticed(A, NeighborUp(TOPIC, B), 2.0)
    meter.noticed(A, NeighborUp(TOPIC, C), 3.0)
    assert meter.first_up == {(A, TOPIC): 2.0}
    assert (meter.hit_ratio, meter.repaired([])) == (1.0, 1.0)
