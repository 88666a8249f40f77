from __future__ import annotations

from tests.cli.shell import Linnet


def test_an_owner_decides_about_a_stream(running: Linnet, shell: Linnet) -> None:
    friend = shell.json("init")["person"]
    assert "everyone may publish" in running.ok("declare", "me/open")
    assert "you and 0 others" in running.ok("declare", "me/news", "--only-me")
    assert len(running.json("declare", "me/news", "--publisher", friend)["ids"]) == 1


def test_what_cannot_be_declared_is_told(running: Linnet, shell: Linnet) -> None:
    found = shell.json("init")
    running.fails(1, "declare", f"{found['person']}/news", "--only-me")
    assert "where a person id" in running.fails(2, "declare", "me/news", "--publisher", found["device"])
    assert "write KEY@HOST:PORT" in running.fails(2, "declare", "me/news", "--tracker", "here")
