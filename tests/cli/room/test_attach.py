from __future__ import annotations

from pathlib import Path

from tests.cli.village import Tea


def test_several_files_at_once(tea: Tea, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "b.txt").touch()
    said = tea.ada.ok("room", "attach", "tea", str(tmp_path / "a.txt"), str(tmp_path / "b.txt"))
    assert said.count("event   le1") == 2
    assert "a.txt (1 byte)" in said
    assert "attached a.txt (1 byte), to be fetched by le1" in tea.ada.ok("room", "history", "tea")


def test_what_is_no_file(tea: Tea, tmp_path: Path) -> None:
    assert "cannot be read" in tea.ada.fails(1, "room", "attach", "tea", str(tmp_path / "none"))
    assert "no file" in tea.ada.fails(1, "room", "attach", "tea", "/dev/null")
