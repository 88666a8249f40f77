from __future__ import annotations

import json

import pytest
from tests.cli.shell import Linnet


@pytest.mark.parametrize("way", ["streams", "rooms", "places", "content"])
def test_one_seed_is_told_with_its_faults(shell: Linnet, way: str) -> None:
    ran = shell.run("sim", way, "--nemesis", "newcomer,change,kill", "--seed", "1", "--json")
    report = json.loads(ran.stdout)
    assert (report["way"], report["seed"]) == (way, 1)
    assert ran.exit_code == bool(report["complaints"]) == 0, report["complaints"]
    assert report["coverage"]["KILL"] == 1
    assert len(report["faults"]) == sum(report["coverage"].values())
    assert 0 < report["worst_dials"] <= 10
    assert report["spent"].keys() == {"busy", "quiet", "away", "alone", "restarted"}
    assert all(report["spent"][each]["messages"] > 0 for each in ("busy", "quiet", "away"))
    assert all(most["steps"] > most["messages"] for most in report["spent"].values())


def test_many_seeds_are_told_as_a_table(shell: Linnet) -> None:
    said = shell.ok("sim", "streams", "--nemesis", "kill,pause,newcomer", "--seeds", "3")
    assert "seeds that failed" in said
    assert [line.split() for line in said.splitlines() if line.startswith("kill")] == [["kill", "3"]]
    assert "dials a minute in vain, at most" in said
    assert "messages a minute of a node, quiet" in said
    assert "steps a minute of a node, away" in said


def test_many_seeds_tell_the_most_that_was_spent(shell: Linnet) -> None:
    ran = shell.run("sim", "streams", "--nemesis", "kill", "--seeds", "2", "--json")
    runs = json.loads(ran.stdout)
    assert 0 < runs["spent"]["quiet"]["messages"] < runs["spent"]["busy"]["messages"]
    assert 0 < runs["worst_dials"] <= 10


def test_a_fault_that_there_is_not_is_wrong_usage(shell: Linnet) -> None:
    assert "thunder: no fault of the nemesis" in shell.fails(2, "sim", "rooms", "--nemesis", "thunder")
