"""``linnet sim history``."""

from __future__ import annotations

from pathlib import Path

import msgspec
from tests.cli.shell import Linnet
from tests.sim.rooms.test_history_replay import drawn_history


def test_a_history_is_replayed_and_reported(tmp_path: Path) -> None:
    linnet = Linnet(tmp_path)
    path = tmp_path / "below" / "small.json"
    path.parent.mkdir()
    path.write_bytes(msgspec.json.encode(drawn_history(1, 2, 30)))
    assert linnet.json("sim", "history", str(path), "--replicas", "2")["distinct_states"] == 1
    printed = linnet.ok("sim", "history", "small.json", "--replicas", "2", "--data", str(tmp_path))
    assert "causal violations" in printed


def test_a_missing_file_names_the_public_source(tmp_path: Path) -> None:
    result = Linnet(tmp_path).run("sim", "history", "nowhere.json")
    assert result.exit_code == 2
    assert "editing-traces" in result.stderr
