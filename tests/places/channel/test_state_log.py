"""What is kept of the state line is there again after a restart."""

from __future__ import annotations

from msgspec import msgpack

from linnet.core.ids import TopicId
from linnet.places.channel.packet import Modifier
from linnet.places.channel.state_log import MESSAGE_BYTES, Meta, StateLog, Step
from linnet.places.config import PlacesConfig
from linnet.store.memory import MemoryStore

PLACE, OTHER = TopicId(b"p" * 32), TopicId(b"q" * 32)
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
