"""``linnet play``: simulated, and once on real processes."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from tests.cli.shell import Linnet

from linnet.sim.rooms import experiments
from linnet.sim.rooms.experiments import Expectation, names

CHAT = "Timestamp,User,Char Count\n0,a,5\n40,b,7\n41,a,3\n"
LIVE = {
    "relays": 1,
    "messages": [
        {"action": "offline", "user": "peer1", "pauseAfter": "500ms"},
        {"action": "message", "user": "peer0", "content": "later", "pauseAfter": "1s"},
        {"action": "message", "user": "peer1", "content": "from nowhere", "pauseAfter": "0s"},
        {"action": "offline", "user": "peer0", "pauseAfter": "500ms"},
        {"action": "online", "user": "peer1", "pauseAfter": "2s"},
    ],
}


def test_the_experiments_are_listed(shell: Linnet) -> None:
    assert shell.ok("play", "list").split() == names()


def test_an_experiment_prints_its_log_and_its_verdict(shell: Linnet) -> None:
    said = shell.ok("play", "fe1")
    assert "Time [s]" in said
    assert "resync-response" in said
    assert said.count("holds") == 3
    assert "FAILS" not in said


def test_json_has_the_runs_and_what_was_expected(shell: Linnet) -> None:
    found = shell.json("play", "fe5")
    assert (found["experiment"], found["ok"], len(found["runs"])) == ("fe5", True, 2)
    assert all(each["holds"] for each in found["expectations"])
    row = found["runs"][0]["log"][0]
    assert (row["time"], row["user"], row["action"]) == (0.0, "peer0", "offline")
    assert found["runs"] == shell.json("play", "fe5")["runs"]


def test_what_is_not_as_expected_fails(shell: Linnet, monkeypatch: pytest.MonkeyPatch) -> None:
    title, _ = experiments._EXPERIMENTS["fe3"]
    check = (title, lambda runs: [Expectation("the sun rises in the west", False)])
    monkeypatch.setitem(experiments._EXPERIMENTS, "fe3", check)
    assert "fe3 failed: the sun rises in the west" in shell.fails(1, "play", "fe3")


def test_a_file_of_ones_own(shell: Linnet, tmp_path: Path) -> None:
    file, out = tmp_path / "mine.json", tmp_path / "log.csv"
    file.write_text(json.dumps(LIVE))
    said = shell.ok("play", str(file), "--csv", "--out", str(out))
    assert said == out.read_text()
    rows = list(csv.DictReader(said.splitlines()))
    assert [row["User"] for row in rows if row["Action"] == "receive"] == ["relay0", "peer1"]
    shell.ok("play", str(file), "--out", str(tmp_path / "log.json"))
    assert json.loads((tmp_path / "log.json").read_text())[0][0]["action"] == "offline"


def test_a_chat_in_its_own_times(shell: Linnet, tmp_path: Path) -> None:
    file = tmp_path / "chat.csv"
    file.write_text(CHAT)
    words = ("play", str(file), "--margin", "10s")
    times = {}
    for scale in ("", "offset", "stretch"):
        found = shell.json(*words, *(("--scale", scale) if scale else ()))
        (run,) = found["runs"]
        times[scale] = [row["time"] for row in run["log"] if row["action"] == "send"]
    assert times[""] == [0.0, 30.0, 31.0]  # the 20 s from the first going to the next coming took 10
    assert times["offset"] == times["stretch"] == [0.0, 40.0, 41.0]


def test_wrong_input_is_told_in_a_line(shell: Linnet, tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text('{"messages": [{"action": "fly", "user": "peer0"}]}')
    assert "mine.json: messages[0]: action: 'fly'" in shell.fails(2, "play", str(file))
    assert "neither a file nor an experiment" in shell.fails(2, "play", "fe9")
    assert "--scale is for chats" in shell.fails(2, "play", "fe3", "--scale", "offset")
    file.write_text(json.dumps(LIVE))
    assert "cannot be written" in shell.fails(1, "play", str(file), "--out", str(tmp_path / "no" / "log.csv"))
    chat = tmp_path / "chat.csv"
    chat.write_text(CHAT)
    assert "is no duration" in shell.fails(2, "play", str(chat), "--margin", "long")
    assert "--margin is above 0" in shell.fails(2, "play", str(chat), "--margin", "0s")


def test_real_nodes_do_the_same(shell: Linnet, tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(LIVE))
    keep = tmp_path / "kept"
    live = shell.json("play", str(file), "--live", "--keep", str(keep))["runs"][0]
    assert {path.name for path in (keep / "run1").iterdir()} == {"peer0", "peer1", "relay0"}
    simulated = shell.json("play", str(file))["runs"][0]
    assert live["outcomes"][2]["refused"] == simulated["outcomes"][2]["refused"] == "crashed"
    assert actions(live, 1) == actions(simulated, 1)
    assert actions(live, 1) == [
        ("peer0", "send"),
        ("relay0", "receive"),
        ("relay0", "cache-event"),
        ("peer1", "receive"),
    ]
    done = [row["action"] for row in live["log"] if row["user"] == "peer1"]
    assert done[0] == "offline"
    assert done[done.index("online") + 1] == "resync"


def actions(run: dict[str, list[dict[str, object]]], event: int) -> list[tuple[object, object]]:
    return [(row["user"], row["action"]) for row in run["log"] if row["event"] == event]
