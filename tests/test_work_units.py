"""Tests that share Spark or nodes are given to one worker, and what takes long is begun first."""

from __future__ import annotations

from tests.work_units import rank_of, unit_of

LAB = ("tests/lab/audit/test_audit.py::test_a", "tests/cli/lab/test_watch.py::test_b[tests/wire]")
ROOM = ("tests/cli/room/test_members.py::test_a", "tests/cli/room/test_messages.py::test_b")
OTHERS = (
    "tests/cli/test_up.py::test_a",
    "tests/node/test_room.py::test_a",
    "tests/rooms/test_join.py::test_a",
)


def test_what_shares_spark_or_nodes_is_one_unit() -> None:
    assert {unit_of(each) for each in LAB} == {"lab"}
    assert {unit_of(each) for each in ROOM} == {"tests/cli/room"}
    assert [unit_of(each) for each in OTHERS] == [
        "tests/cli",
        "tests/node/test_room.py",
        "tests/rooms/test_join.py",
    ]


def test_what_takes_long_comes_first() -> None:
    ranked = (*LAB, "tests/node/test_room_crashes.py::test_a", *ROOM, *OTHERS)
    assert sorted(ranked, key=rank_of) == list(ranked)
    assert rank_of(LAB[0]) < rank_of("tests/node/test_open_world.py::test_a") < rank_of(OTHERS[1])
    assert rank_of(OTHERS[1]) < rank_of(OTHERS[2])
