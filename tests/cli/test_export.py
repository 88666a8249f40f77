from __future__ import annotations

from pathlib import Path

from tests.cli.shell import Linnet


def test_a_node_in_a_file_can_be_put_elsewhere(shell: Linnet, tmp_path: Path) -> None:
    made = shell.json("init", "--label", "moving")
    file = tmp_path / "node.linnet"
    told = shell.json("export", str(file))
    assert told["bytes"] == file.stat().st_size
    assert told["sealed"] is False
    other = Linnet(tmp_path / "other")
    found = other.json("import", str(file))
    assert (found["person"], found["device"]) == (made["person"], made["device"])


def test_no_file_is_overwritten(shell: Linnet, tmp_path: Path) -> None:
    shell.ok("init")
    file = tmp_path / "mine"
    file.write_text("precious")
    shell.fails(1, "export", str(file))
    assert file.read_text() == "precious"


def test_a_node_that_runs_is_not_exported(running: Linnet, tmp_path: Path) -> None:
    assert "runs here already" in running.fails(78, "export", str(tmp_path / "busy"))
