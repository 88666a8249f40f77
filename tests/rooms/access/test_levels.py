from __future__ import annotations

import pytest
from tests.rooms.access.states import CREATE_FACT, Here, who

from linnet.rooms.access.levels import INFINITE, Levels, Rank, Version, levels_in
from linnet.rooms.content import LEVEL_MOST, Power


@pytest.mark.parametrize(
    ("version", "power", "name", "level"),
    [
        (Version.V12, None, "creator", INFINITE),
        (Version.V12, None, "second", INFINITE),
        (Version.V12, None, "alice", 0),
        (Version.V12, Power(users_default=7), "creator", INFINITE),
        (Version.V12, Power(users={who("alice"): 30}), "alice", 30),
        (Version.V12, Power(users={who("alice"): 0}, users_default=7), "alice", 0),
        (Version.V12, Power(users={who("alice"): -5}, users_default=7), "alice", -5),
        (Version.V12, Power(users_default=7), "alice", 7),
        (Version.V12, Power(), "alice", 0),
        (Version.V11, None, "creator", 100),
        (Version.V11, None, "second", 0),
        (Version.V11, None, "alice", 0),
        (Version.V11, Power(), "creator", 0),
        (Version.V11, Power(users={who("creator"): 100}), "creator", 100),
    ],
)
def test_the_level_of_a_person(version: Version, power: Power | None, name: str, level: Rank) -> None:
    assert Levels(CREATE_FACT, power, version).of(who(name)) == level


def test_a_creator_is_above_every_number() -> None:
    assert Levels(CREATE_FACT, None).of(who("creator")) > LEVEL_MOST
    assert LEVEL_MOST < INFINITE


@pytest.mark.parametrize(
    ("power", "kind", "is_state", "level"),
    [
        (None, "message", False, 0),
        (None, "name", True, 50),
        (Power(), "message", False, 0),
        (Power(), "name", True, 50),
        (Power(events_default=10), "message", False, 10),
        (Power(state_default=0), "name", True, 0),
        (Power(events={"name": 5}, state_default=70), "name", True, 5),
        (Power(events={"message": 5}, events_default=70), "message", False, 5),
        (Power(events={"name": 0}), "name", True, 0),
    ],
)
def test_the_level_that_a_kind_asks_for(power: Power | None, kind: str, is_state: bool, level: int) -> None:
    assert Levels(CREATE_FACT, power).required(kind, is_state) == level


@pytest.mark.parametrize("power", [None, Power()])
def test_named_levels_have_matrix_defaults(power: Power | None) -> None:
    levels = Levels(CREATE_FACT, power)
    assert (levels.invite, levels.kick, levels.ban, levels.redact) == (0, 50, 50, 50)


def test_named_levels_as_they_were_set() -> None:
    levels = Levels(CREATE_FACT, Power(invite=1, kick=0, ban=3, redact=4))
    assert (levels.invite, levels.kick, levels.ban, levels.redact) == (1, 0, 3, 4)


def test_the_levels_of_a_state() -> None:
    power = Power(users={who("alice"): 30})
    assert levels_in(Here(power=power)) == Levels(CREATE_FACT, power)
    assert levels_in(Here(), Version.V11) == Levels(CREATE_FACT, None, Version.V11)
