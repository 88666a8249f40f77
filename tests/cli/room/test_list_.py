from __future__ import annotations

from tests.cli.shell import Linnet
from tests.cli.village import Tea


def test_every_room_here_and_in_the_status(tea: Tea) -> None:
    for said in (tea.bea.ok("room", "list"), tea.bea.ok("status")):
        assert any(line.split()[:3] == ["tea", tea.room, "join"] for line in said.splitlines())
    assert tea.room in [each["room"] for each in tea.bea.json("room", "list")["rooms"]]


def test_no_room_says_what_to_do(running: Linnet) -> None:
    assert "found one with linnet room create" in running.ok("room", "list")


def test_whether_a_room_is_encrypted(tea: Tea) -> None:
    tea.ada.ok("room", "create", "open field", "--public")
    rows = [line.split() for line in tea.ada.ok("room", "list").splitlines()]
    assert ["tea", tea.room, "join", "yes"] in [row[:4] for row in rows]
    assert [row[4] for row in rows if row[:2] == ["open", "field"]] == ["no"]
