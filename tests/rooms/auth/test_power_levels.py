"""Power levels: who has which, and who may change them."""

from __future__ import annotations

import pytest
from tests.rooms.auth.states import CREATE_FACT, Here, fact, who

from linnet.core.ids import AuthorId
from linnet.core.reasons import Reason
from linnet.rooms.auth.event_auth import power_allowed
from linnet.rooms.auth.room_state import INFINITE, Levels, Rank, Version, levels_in
from linnet.rooms.event_types import LEVEL_MOST, POWER, Power


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


ME, PEER, BELOW, ABOVE, NEW = who("me"), who("peer"), who("below"), who("above"), who("new")


USERS = {ME: 50, PEER: 50, BELOW: 40, ABOVE: 60}


OLD = Power(users=USERS, events={"low": 10, "high": 60})


def reason(
    new: Power, old: Power | None = OLD, sender: str = "me", version: Version = Version.V12
) -> Reason | None:
    refusal = power_allowed(fact(sender, POWER, "", new), new, Levels(CREATE_FACT, old, version))
    return None if refusal is None else refusal.reason


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, None),  # 9.8 and 9.9, one by one
        ({NEW: 50}, None),
        ({NEW: 51}, Reason.NO_POWER),
        ({NEW: -5}, None),
        ({BELOW: 50}, None),
        ({BELOW: 51}, Reason.NO_POWER),
        ({BELOW: None}, None),
        ({PEER: 40}, Reason.NO_POWER),
        ({PEER: None}, Reason.NO_POWER),
        ({ABOVE: 50}, Reason.NO_POWER),
        ({ABOVE: None}, Reason.NO_POWER),
        ({ME: 10}, None),
        ({ME: None}, None),
        ({ME: 51}, Reason.NO_POWER),
    ],
)
def test_levels_of_people(changed: dict[AuthorId, int | None], expected: Reason | None) -> None:
    users: dict[AuthorId, int | None] = {**USERS, **changed}
    new = Power(users={one: level for one, level in users.items() if level is not None}, events=OLD.events)
    assert reason(new) is expected


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ({"low": 10, "high": 60}, None),  # 9.6 and 9.7
        ({"low": 50, "high": 60}, None),
        ({"low": 51, "high": 60}, Reason.NO_POWER),
        ({"high": 60}, None),
        ({"low": 10}, Reason.NO_POWER),
        ({"low": 10, "high": 50}, Reason.NO_POWER),
        ({"low": 10, "high": 60, "new": 50}, None),
        ({"low": 10, "high": 60, "new": 51}, Reason.NO_POWER),
    ],
)
def test_levels_of_kinds(events: dict[str, int], expected: Reason | None) -> None:
    assert reason(Power(users=USERS, events=events)) is expected


SCALARS = ["users_default", "events_default", "state_default", "ban", "redact", "kick", "invite"]


@pytest.mark.parametrize("name", SCALARS)
@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (None, None, None),
        (None, 50, None),  # 9.5: added
        (None, 51, Reason.NO_POWER),
        (50, 20, None),  # changed
        (60, 20, Reason.NO_POWER),
        (20, 60, Reason.NO_POWER),
        (60, 60, None),
        (50, None, None),  # removed
        (60, None, Reason.NO_POWER),
    ],
)
def test_single_levels(name: str, before: int | None, after: int | None, expected: Reason | None) -> None:
    old = Power(users=USERS, **{name: before})  # type: ignore[arg-type]
    new = Power(users=USERS, **{name: after})  # type: ignore[arg-type]
    assert reason(new, old) is expected


def test_the_first_levels_are_free() -> None:
    """9.4: nothing is changed where nothing was."""
    assert reason(Power(users={ME: 100}, ban=1000), None) is None


@pytest.mark.parametrize("name", ["creator", "second"])
def test_a_creator_is_not_in_the_list(name: str) -> None:
    """Version 12: their power is not a level, and cannot be taken."""
    new = Power(users={**USERS, who(name): 100})
    assert reason(new, sender="creator") is Reason.NOT_ALLOWED
    assert reason(new, None, sender="creator") is Reason.NOT_ALLOWED


def test_in_version_11_a_creator_is_in_the_list() -> None:
    users = {who("creator"): 100}
    assert reason(Power(users=users), None, "creator", Version.V11) is None
    assert reason(Power(users={}), Power(users=users), "creator", Version.V11) is None
