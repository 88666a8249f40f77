"""Inspection: neighbours that again and again do not send what is held back from them are replaced."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest
from tests.delivery.voices import Voice, asked

from linnet.core.effects import CancelTimer, Send, SetTimer
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.delivery.flood import Flood, Neighbor
from linnet.event.event import Verified
from linnet.machine.outbox import Outbox
from linnet.overlay.notices import ReplaceNeighbor
from linnet.streams.inspection import FAILING, FAILURES, SUSPICION, Inspection, InspectionDue
from linnet.trace.records import Kind

A, B, C = (PeerId(sha256(name.encode()).digest()) for name in "abc")
NOW = 1_000_000.0


class Scene:
    """A node with three neighbours; A brings the units."""

    def __init__(self, *neighbors: PeerId) -> None:
        self.ann = Voice()
        self.flood = Flood(self.ann.topic)
        for peer in neighbors or (A, B, C):
            self.flood.up(peer)
        self.out = Outbox()
        self.inspection = Inspection(self.ann.topic, self.flood, self.out)
        self.now = NOW
        self.due = InspectionDue(self.ann.topic)

    def hold_back(self, source: PeerId = A) -> tuple[Verified, tuple[PeerId, ...], list[Any]]:
        unit = self.ann.say()
        self.out.clear()
        held = self.inspection.hold_back(unit, self.ann.identity.card, source, 2, 0, self.now)
        return unit, held, self.out.take()

    def end(self) -> list[Any]:
        return asked(self.out, self.inspection.end, self.now)

    def fail(self, seconds: float = 2.0) -> tuple[PeerId | None, list[Any]]:
        """Hold back a unit that nobody sends; return from whom, and what comes of it."""
        _, held, _ = self.hold_back()
        self.now += seconds
        ended = self.end()
        self.now += 5.0 - seconds
        return (held[0] if held else None), ended


def test_nothing_is_held_back_while_all_is_well() -> None:
    scene = Scene()
    assert scene.hold_back()[1:] == ((), [])
    scene.inspection.suspect(scene.now)
    assert scene.hold_back()[1] == (B,)
    scene.now += SUSPICION + 10.0
    scene.end()
    assert scene.hold_back()[1] == ()


def test_each_neighbour_has_its_turn_but_not_who_sent_the_unit() -> None:
    scene = Scene()
    scene.inspection.suspect(scene.now)
    assert [scene.fail()[0] for _ in range(4)] == [B, C, B, C]


def test_one_unit_at_a_time_is_held_back_and_not_often() -> None:
    scene = Scene()
    scene.inspection.suspect(scene.now)
    assert scene.hold_back()[1:] == ((B,), [SetTimer(2.0, scene.due)])
    assert scene.hold_back()[1] == (), "one is held back"
    scene.now += 2.0
    scene.end()
    assert scene.hold_back()[1] == (), "it is not five seconds ago"
    scene.now += 3.0
    assert scene.hold_back()[1] == (C,)


def test_who_does_not_send_it_in_time_is_sent_it() -> None:
    scene = Scene()
    scene.inspection.suspect(scene.now)
    unit, _, _ = scene.hold_back()
    scene.now += 2.0
    sends = [each for each in scene.end() if isinstance(each, Send)]
    assert [(each.peer, each.message.unit, each.message.hops) for each in sends] == [(B, unit.unit, 2)]
    assert sends[0].message.age_us == 2_000_000
    assert scene.inspection.failures(B) == 1


def test_who_sends_it_passes() -> None:
    scene = Scene()
    scene.inspection.suspect(scene.now)
    scene.fail()
    assert scene.inspection.failures(B) == 1
    scene.fail()
    unit, held, _ = scene.hold_back()
    assert held == (B,)
    asked_for = asked(scene.out, scene.inspection.note_unit, C, unit.unit, is_new=False)
    assert asked_for == [], "it was held back from another one"
    assert asked(scene.out, scene.inspection.note_unit, B, unit.unit, is_new=False) == [
        CancelTimer(scene.due)
    ]
    assert scene.inspection.failures(B) == 0
    assert scene.end() == [], "nothing is held back any more"


def test_old_units_prove_nothing_and_new_ones_do() -> None:
    scene = Scene()
    scene.inspection.suspect(scene.now)
    scene.fail()
    scene.inspection.note_unit(B, scene.ann.say().unit, is_new=False)
    assert scene.inspection.failures(B) == 1
    scene.inspection.note_unit(B, scene.ann.say().unit, is_new=True)
    assert scene.inspection.failures(B) == 0


def test_who_fails_often_and_for_long_is_replaced_with_a_record() -> None:
    scene = Scene(A, B)
    scene.inspection.suspect(scene.now)
    fails = 0
    while not scene.inspection.replaced:
        scene.inspection.suspect(scene.now)
        began = scene.now
        _, ended = scene.fail()
        fails += 1
        assert fails < 100
    assert began + 2.0 - (NOW + 2.0) >= FAILING
    assert fails >= FAILURES
    records = [each for each in ended if getattr(each, "reason", None) is Reason.SILENT]
    assert [(each.kind, each.peer) for each in records] == [(Kind.OVERLAY, B)]
    assert scene.out.take_notices() == [ReplaceNeighbor(scene.ann.topic, B)]


def test_a_few_failures_replace_nobody_however_long_they_take() -> None:
    scene = Scene(A, B)
    for _ in range(FAILURES - 1):
        scene.inspection.suspect(scene.now)
        scene.fail()
        scene.now += 100.0
    assert scene.inspection.replaced == 0
    scene.inspection.suspect(scene.now)
    scene.fail()
    assert scene.inspection.replaced == 1


def test_our_own_sleep_is_nobodys_failure() -> None:
    scene = Scene(A, B)
    for _ in range(50):
        scene.inspection.suspect(scene.now)
        _, ended = scene.fail(seconds=4.5)
        assert [each.peer for each in ended if isinstance(each, Send)] == [B], "it is sent it all the same"
    assert scene.inspection.failures(B) == 0


@pytest.mark.parametrize("how", ["grafted", "served", "congested"])
def test_some_are_not_inspected(how: str) -> None:
    scene = Scene(A, B)
    if how == "grafted":
        scene.flood.grafted[B] = None
    elif how == "served":
        scene.flood.neighbors[B].is_served = True
    else:
        scene.flood.neighbors[B].congested = True
    scene.inspection.suspect(scene.now)
    assert scene.hold_back()[1] == ()


def test_a_neighbour_that_has_gone_is_forgotten() -> None:
    scene = Scene(A, B)
    scene.inspection.suspect(scene.now)
    scene.fail()
    _, held, _ = scene.hold_back()
    assert held == (B,)
    scene.flood.down(B)
    scene.inspection.handle_neighbor_down(B)
    assert scene.end() == []
    assert scene.inspection.failures(B) == 0
    assert asked(scene.out, scene.inspection.stop) == [CancelTimer(scene.due)]


def test_a_clock_that_is_set_back_saves_nobody_for_long() -> None:
    scene = Scene(A, B)
    scene.inspection.suspect(scene.now)
    scene.fail()
    scene.now -= 3600.0
    fails = 0
    while not scene.inspection.replaced:
        scene.inspection.suspect(scene.now)
        scene.fail()
        fails += 1
        assert fails < 40
    assert scene.now >= NOW - 3600.0 + FAILING


def test_what_is_held_back_from_the_only_neighbour_goes_to_nobody_else() -> None:
    """It is not ours: lazy peers are told of it, not sent it."""
    scene = Scene(B)
    scene.flood.also[C] = Neighbor(0)
    scene.inspection.suspect(scene.now)
    assert scene.hold_back(source=A)[1] == (B,)
    scene.now += 2.0
    assert [each.peer for each in scene.end() if isinstance(each, Send)] == [B]
