"""Control events that wait for a control head, within the bounds of the barriers."""

from __future__ import annotations

from tests.rooms.bench import Bench

from linnet.core.ids import EventId
from linnet.delivery.causal_barriers import Barriers
from linnet.delivery.causal_graph import Dag
from linnet.delivery.config import BarrierConfig
from linnet.machine.outbox import Outbox
from linnet.rooms.event_checks import Lane
from linnet.rooms.event_positions import Arrival

HEAD, OTHER = EventId(b"h" * 32), EventId(b"o" * 32)


class Scene:
    """A lane, its barriers, and events that wait in both."""

    def __init__(self, events: int = 1000) -> None:
        self.bench = Bench()
        self.dag = Dag()
        config = BarrierConfig(events=events)
        self.order: Barriers[Arrival] = Barriers(self.bench.id, self.dag, config, Outbox())
        self.lane = Lane(self.order)

    def arrival(self, *refs: EventId) -> Arrival:
        arrival = Arrival(self.bench.forge("bob", deps=refs, height=9), None, 0, 0)
        if refs:
            self.order.offer(arrival.event.id, refs, 1, arrival, None, 0.0)
        return arrival


def test_who_waits_for_a_head_is_freed_with_it_in_order() -> None:
    scene = Scene()
    first, second, other = scene.arrival(HEAD), scene.arrival(HEAD, OTHER), scene.arrival(OTHER)
    for arrival, head in ((first, HEAD), (second, HEAD), (other, OTHER)):
        assert scene.lane.wait(arrival, head)
    assert scene.lane.wait(first, HEAD)
    assert scene.lane._size == 3
    assert HEAD in scene.lane
    assert scene.lane.free(HEAD) == [first, second]
    assert scene.lane.free(HEAD) == []
    assert HEAD not in scene.lane
    assert scene.lane._size == 1


def test_what_does_not_wait_in_the_barriers_does_not_wait_here() -> None:
    scene = Scene()
    ready = Arrival(scene.bench.forge("bob"), None, 0, 0)
    assert not scene.lane.wait(ready, HEAD)
    assert scene.lane._size == 0


def test_what_the_barriers_let_go_is_not_freed_and_not_kept() -> None:
    scene = Scene(events=1)
    for number in range(500):
        gone = EventId(number.to_bytes(32, "big"))
        assert scene.lane.wait(scene.arrival(gone), HEAD)
        scene.order.give_up(gone)
    assert scene.lane._size <= 66
    last = scene.arrival(OTHER)
    scene.lane.wait(last, HEAD)
    assert scene.lane.free(HEAD) == [last]
    assert scene.lane._size == 0
