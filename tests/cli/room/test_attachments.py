from __future__ import annotations

import os
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


def test_from_another_node_by_the_beginning_of_an_id(tea: Tea, tmp_path: Path) -> None:
    content = os.urandom(200_000)
    (tmp_path / "cat.bin").write_bytes(content)
    event = tea.ada.json("room", "attach", "tea", str(tmp_path / "cat.bin"))["ids"][0]
    tea.until(lambda: event in tea.bea.ok("room", "history", "tea", "--json"))
    target = tmp_path / "in"
    target.mkdir()
    said = tea.bea.ok("room", "fetch", "tea", event[:20], "--to", str(target))
    assert said == f"fetched {target}/cat.bin (200.0 kB)\n"
    assert (target / "cat.bin").read_bytes() == content
    assert "is there already" in tea.bea.fails(1, "room", "fetch", "tea", event, "--to", str(target))
    again = tea.bea.json("room", "fetch", "tea", event, "--to", str(target), "--as", "dog.bin")
    assert again["path"] == str(target / "dog.bin")


def test_what_is_no_attachment(tea: Tea, tmp_path: Path) -> None:
    event = tea.ada.json("room", "send", "tea", "no file")["ids"][0]
    assert "is no attachment but a message" in tea.ada.fails(2, "room", "fetch", "tea", event)
    assert "is no name of a file" in tea.ada.fails(2, "room", "fetch", "tea", event, "--as", "../x")
    assert "there is no event" in tea.ada.fails(2, "room", "fetch", "tea", "le1zzzzzzzz")
    assert "is no event id" in tea.ada.fails(2, "room", "fetch", "tea", "cat.bin")
