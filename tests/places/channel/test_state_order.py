"""State messages are applied in the order of the voice, whatever order they come in."""

from __future__ import annotations

import hashlib
from random import Random

import pytest
from hypothesis import given
from msgspec import msgpack
from tests.places.channel.lines import PLACE, delta_for, fresh, line, offer, seeds

from linnet.core.errors import Refused
from linnet.core.ids import TopicId
from linnet.core.reasons import Reason
from linnet.places.channel.packet import Ignored, Modifier
from linnet.places.channel.state import State
from linnet.places.channel.state_order import (
    MESSAGE_BYTES,
    Applied,
    Forked,
    Held,
    Meta,
    NotTaken,
    Outcome,
    Past,
    Rebuilt,
    StateLog,
    StateOrder,
    Step,
)
from linnet.places.config import PlacesConfig
from linnet.store.memory import MemoryStore


def _set(name: str, value: bytes) -> tuple[Modifier, ...]:
    return (Modifier("=", name, value),)


def _applied(outcomes: list[Outcome]) -> list[int]:
    return [outcome.message for outcome in outcomes if isinstance(outcome, Applied)]


def _view(order: StateOrder) -> tuple[object, ...]:
    signed = order.signed_state()
    return (
        order.state.variables,
        order.applied,
        order.base,
        order.signed,
        None if signed is None else signed.variables,
        order.forked,
        order.missing,
        order.steps,
    )


def test_e6_a_lost_predecessor_is_asked_for_and_then_all_apply_in_order() -> None:
    order = fresh()
    order.offered(2, 0, _set("_a", b"2"))
    assert order.offered(6, 1, _set("_a", b"6")) == [Held(6, 5)]
    assert order.offered(10, 4, _set("_a", b"10")) == [Held(10, 6)]
    assert (order.missing, order.state.variables, order.applied) == ((5,), {"_a": b"2"}, 2)
    assert _applied(order.offered(5, 3, _set("_b", b"5"))) == [5, 6, 10]
    assert (order.missing, order.state.variables) == ((), {"_a": b"10", "_b": b"5"})
    assert order.applied == 10


def test_a_message_is_refused_until_its_predecessor_is_applied_and_only_current_values_change() -> None:
    order = fresh()
    sha = order.digest_with(_set("_a", b"1"))
    order.offered(1, 0, _set("_a", b"1"), sha)
    assert order.offered(9, 3, _set("_a", b"9")) == [Held(9, 6)]
    order.offered(4, 3, _set("_a", b"4"))
    signed = order.signed_state()
    assert signed is not None
    assert (order.signed, signed.variables, order.state.variables) == (1, {"_a": b"1"}, {"_a": b"4"})


def test_a_reset_is_delta_0_needs_no_predecessor_and_clears() -> None:
    order = fresh()
    order.offered(2, 0, _set("_a", b"1"))
    order.offered(7, 2, _set("_b", b"lost"))
    outcomes = order.offered(10, 0, _set("_c", b"3"))
    assert outcomes == [Applied(10, True, {"_a": None, "_c": b"3"}, ()), Past(7)]
    assert (order.state.variables, order.missing) == ({"_c": b"3"}, ())
    assert order.offered(5, 3, _set("_z", b"late")) == [Past(5)]


@given(seeds)
def test_any_order_with_duplicates_ends_in_the_same_state_and_hash(seed: int) -> None:
    luck = Random(seed)
    voice, guest = fresh(), fresh()
    steps = line(luck, luck.randint(1, 12), voice)
    shuffled = steps + luck.choices(steps, k=3)
    luck.shuffle(shuffled)
    outcomes = [outcome for step in shuffled for outcome in offer(guest, step)]
    assert not [outcome for outcome in outcomes if isinstance(outcome, Forked | NotTaken)]
    assert guest.state.digest() == voice.state.digest()
    assert (guest.applied, guest.missing) == (voice.applied, ())


@given(seeds)
def test_a_restart_at_any_point_changes_nothing(seed: int) -> None:
    luck = Random(seed)
    steps = line(luck, luck.randint(1, 10))
    if luck.random() < 0.3:
        steps[-1] = type(steps[-1])(
            steps[-1].message, steps[-1].delta, steps[-1].modifiers, b"wrong" * 6 + b"!!"
        )
    luck.shuffle(steps)
    cells = MemoryStore().cells
    steady, restarted = fresh(), StateOrder(PLACE, cells)
    for step in steps:
        if luck.random() < 0.15:
            cut = luck.randint(0, 20)
            assert steady.rollback(cut) == restarted.rollback(cut)
        assert offer(steady, step) == offer(restarted, step)
        restarted = StateOrder(PLACE, cells)
        assert _view(steady) == _view(restarted)


@given(seeds)
def test_a_rollback_gives_the_state_that_was_at_that_message(seed: int) -> None:
    luck = Random(seed)
    voice = fresh()
    steps = line(luck, luck.randint(1, 10), voice)
    before = voice.state.variables
    cut = luck.randint(0, steps[-1].message)
    expected = fresh()
    for step in steps:
        if step.message <= cut:
            offer(expected, step)
    [outcome] = voice.rollback(cut)
    assert isinstance(outcome, Rebuilt)
    assert _view(voice) == _view(expected)
    told = State(variables=before)
    told.change(outcome.changes)
    assert (told.variables, outcome.message, outcome.lost) == (voice.state.variables, expected.applied, False)
    again = line(luck, 3, voice, after=cut)  # the next term goes on under the same numbers
    for step in again:
        offer(expected, step)
    assert _view(voice) == _view(expected)


def test_a_rollback_forgets_what_waited_behind_the_cut() -> None:
    order = fresh()
    order.offered(1, 0, _set("_a", b"1"))
    order.offered(5, 2, _set("_a", b"5"))
    order.offered(9, 4, _set("_a", b"9"))
    order.rollback(6)
    assert order.missing == (3,)
    order.rollback(4)
    assert list(order.missing) == []


def test_a_rollback_behind_the_base_loses_the_state_and_says_so() -> None:
    order = fresh()
    data = State(variables={"_a": b"1"})
    order.full(50, data.encode(), data.digest())
    assert order.rollback(49) == [Rebuilt(0, {"_a": None}, lost=True)]
    assert order.is_lost, "which is not the same as a state without anything in it"
    assert (order.applied, order.signed, order.state.variables) == (0, 0, {})


def test_a_right_hash_signs_the_state_and_a_wrong_one_leaves_the_signed_state_alone() -> None:
    order = fresh()
    order.offered(1, 0, _set("_a", b"1"), order.digest_with(_set("_a", b"1")))
    outcomes = order.offered(2, 1, _set("_a", b"2"), b"x" * 32)
    assert outcomes == [Applied(2, False, {"_a": b"2"}, ()), Forked(2, b"x" * 32, order.state.digest())]
    signed = order.signed_state()
    assert signed is not None
    assert (order.signed, signed.variables, order.forked) == (1, {"_a": b"1"}, 2)
    order.offered(3, 1, (), order.digest_with(()))
    assert (order.signed, order.forked, order.hash_of(3)) == (3, 0, order.state.digest())


def test_the_hash_covers_the_modifiers_of_its_own_message() -> None:
    voice, guest = fresh(), fresh()
    sha = voice.digest_with(_set("_a", b"1"))
    assert sha == State(variables={"_a": b"1"}).digest()
    assert _applied(guest.offered(1, 0, _set("_a", b"1"), sha)) == [1]
    assert guest.signed == 1


def test_after_a_full_state_older_messages_count_as_applied_and_later_ones_go_on_top() -> None:
    order = fresh()
    order.offered(12, 2, _set("_b", b"12"))
    data = State(variables={"_a": b"1"})
    assert order.full(10, data.encode(), data.digest()) == [
        Rebuilt(10, {"_a": b"1"}),
        Applied(12, False, {"_b": b"12"}, ()),
    ]
    assert order.offered(4, 0, _set("_z", b"")) == [Past(4)]
    assert (order.signed, order.state.variables) == (10, {"_a": b"1", "_b": b"12"})
    assert order.full(10, data.encode(), data.digest()) == [Past(10)]


def test_a_forged_or_broken_full_state_changes_nothing() -> None:
    order = fresh()
    order.offered(2, 0, _set("_a", b"1"))
    forged = State(variables={"_a": b"evil"})
    expected = State(variables={"_a": b"good"}).digest()
    before = _view(order)
    assert order.full(9, forged.encode(), expected) == [
        NotTaken(9, Reason.STATE_MISMATCH, "a state with another hash")
    ]
    [outcome] = order.full(9, b"junk", hashlib.sha256(b"junk").digest())
    assert isinstance(outcome, NotTaken)
    assert (outcome.reason, _view(order)) == (Reason.MALFORMED, before)


def test_a_full_state_mends_a_fork_and_keeps_what_came_since() -> None:
    order = fresh()
    good = State(variables={"_a": b"good"})
    order.offered(1, 0, _set("_a", b"bad"))
    order.offered(2, 1, (), good.digest())
    order.offered(3, 1, _set("_b", b"3"))
    assert order.forked == 2
    assert order.full(2, good.encode(), good.digest()) == [Rebuilt(2, {"_a": b"good"})]
    assert (order.forked, order.applied, order.state.variables) == (0, 3, {"_a": b"good", "_b": b"3"})


@pytest.mark.parametrize(("message", "delta"), [(3, 3), (3, 4), (0, 0), (3, -1)])
def test_deltas_that_name_no_message_are_malformed(message: int, delta: int) -> None:
    [outcome] = fresh().offered(message, delta, ())
    assert isinstance(outcome, NotTaken)
    assert outcome.reason == Reason.MALFORMED


def test_two_changes_under_one_number_or_behind_one_message_are_told_as_equivocation() -> None:
    order = fresh()
    order.offered(1, 0, _set("_a", b"1"))
    order.offered(2, 1, _set("_a", b"2"))
    order.offered(9, 2, _set("_a", b"9"))
    for message, delta in ((2, 1), (9, 2), (3, 2)):
        [outcome] = order.offered(message, delta, _set("_a", b"other"))
        assert isinstance(outcome, NotTaken)
        assert outcome.reason == Reason.EQUIVOCATION
    assert order.state.variables["_a"] == b"2"


def test_what_waits_is_bounded_and_what_is_let_go_is_asked_for_again() -> None:
    order = StateOrder(PLACE, MemoryStore().cells, held=2)
    assert order.offered(4, 1, ()) == [Held(4, 3)]
    assert order.offered(3, 1, ()) == [Held(3, 2)]
    [outcome] = order.offered(5, 1, ())
    assert isinstance(outcome, NotTaken)
    assert (outcome.reason, order.missing) == (Reason.QUEUE_FULL, (2, 5))
    assert _applied(order.offered(1, 0, ())) == [1]
    assert _applied(order.offered(2, 1, ())) == [2, 3, 4]
    assert order.missing == (5,)
    assert _applied(order.offered(5, 1, ())) == [5]
    assert list(order.missing) == []


def test_a_state_that_would_be_too_large_stops_the_line_until_it_begins_anew() -> None:
    order = StateOrder(PLACE, MemoryStore().cells, PlacesConfig(state_bytes=1024))
    order.offered(1, 0, _set("_a", b"1"))
    [outcome] = order.offered(2, 1, _set("_b", b"x" * 1024))
    assert isinstance(outcome, NotTaken)
    assert outcome.reason == Reason.TOO_LARGE
    assert order.offered(3, 1, _set("_c", b"3")) == [Held(3, 2)]
    assert (order.missing, order.state.variables) == ((), {"_a": b"1"})
    assert _applied(order.offered(4, 0, _set("_d", b"4"))) == [4]
    assert order.state.variables == {"_d": b"4"}
    with pytest.raises(Refused):
        order.digest_with(_set("_e", b"x" * 1024))


def test_old_steps_become_the_base_and_the_signed_state_stays() -> None:
    cells = MemoryStore().cells
    order = StateOrder(PLACE, cells, kept=3)
    for message in range(1, 9):
        modifiers = _set(f"_v_{message % 3}", b"%d" % message)
        sha = order.digest_with(modifiers) if message == 5 else None
        order.offered(message, delta_for(order, message), modifiers, sha)
    signed = order.signed_state()
    assert signed is not None
    assert (order.base, [step.message for step in order.steps], order.signed) == (5, [6, 7, 8], 5)
    assert signed.variables == {"_v_0": b"3", "_v_1": b"4", "_v_2": b"5"}
    assert _view(StateOrder(PLACE, cells)) == _view(order)
    order.offered(9, 1, ())
    assert (order.base, order.signed, order.signed_state()) == (6, 0, None)


def test_transient_modifiers_are_no_change_and_senseless_ones_are_told() -> None:
    order = fresh()
    bad = Modifier("+", "_topic", b"x")
    outcomes = order.offered(1, 0, (Modifier(":", "_volume", b"9"), bad))
    assert outcomes == [
        Applied(1, True, {}, (Ignored(bad, Reason.UNSUPPORTED, "+ on a variable of this type"),))
    ]


OTHER = TopicId(b"q" * 32)
_ONE = Step(5, 3, (Modifier("=", "_a", b"1"),), None)
_TWO = Step(300, 295, (), b"h" * 32)


def test_everything_that_was_kept_is_read_again_and_places_stay_apart() -> None:
    cells = MemoryStore().cells
    steps = StateLog(PLACE, cells, PlacesConfig())
    steps.set_meta(Meta(2, True, 7))
    steps.change_base({"_x": b"1", "_y": b"2"})
    steps.change_base({"_y": None})
    steps.apply(_ONE)
    steps.hold(_TWO)
    steps.remember(400)
    again = StateLog(PLACE, cells, PlacesConfig())
    assert (again.meta, again.base.variables) == (Meta(2, True, 7), {"_x": b"1"})
    assert (again.applied, again.held, again.let_go) == ({5: _ONE}, {300: _TWO}, {400: None})
    assert (again.last, again.applied_cost, again.held_cost) == (5, MESSAGE_BYTES + 7, MESSAGE_BYTES)
    assert StateLog(OTHER, cells, PlacesConfig()).last == 0


def test_what_was_taken_back_is_gone_from_the_cells() -> None:
    cells = MemoryStore().cells
    steps = StateLog(PLACE, cells, PlacesConfig())
    steps.change_base({"_x": b"1"})
    steps.apply(_ONE)
    steps.hold(_TWO)
    steps.remember(400)
    steps.change_base({"_x": None})
    assert (steps.take_back(5), steps.release(300)) == (_ONE, _TWO)
    steps.forget(400)
    steps.forget(401)
    assert (steps.applied_cost, steps.held_cost) == (0, 0)
    assert list(cells.scan(f"place state {PLACE.hex()}")) == []


def test_a_step_names_the_one_before_and_what_it_costs() -> None:
    assert (_ONE.before, _TWO.before, _TWO.cost) == (2, 5, MESSAGE_BYTES)


def test_what_was_kept_before_states_could_be_lost_is_read() -> None:
    cells = MemoryStore().cells
    cells.put(f"place state {PLACE.hex()}", b"m", msgpack.encode((2, True, 7)))
    assert StateLog(PLACE, cells, PlacesConfig()).meta == Meta(2, True, 7, lost=False)
