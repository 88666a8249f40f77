from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.cli.shell import LINNET, Linnet
from tests.cli.village import Tea, hasten

from linnet.net.clock import Clock


def test_a_new_room_says_what_comes_next(tea: Tea) -> None:
    said = tea.ada.ok("room", "create", "books", "--rule", "public")
    assert said.startswith("room    lt1")
    assert "next    linnet room invite books" in said
    assert tea.ada.json("room", "state", "books")["rule"] == "public"


def test_a_second_creator_has_all_power(tea: Tea) -> None:
    tea.ada.ok("room", "create", "shared", "--creator", tea.people["bea"])
    created = tea.ada.json("room", "state", "shared")["entries"][0]["event"]["content"]
    assert created["creators"] == [tea.people["bea"]]


def test_wrong_words(tea: Tea) -> None:
    assert "person id" in tea.ada.fails(2, "room", "create", "x", "--creator", "lp1")
    tea.ada.fails(2, "room", "create", "x", "--rule", "nobody")


def test_a_name_with_spaces_can_be_pasted_into_the_next_command(tea: Tea) -> None:
    said = tea.ada.ok("room", "create", "tea at five", "--rule", "public")
    assert "next    linnet room invite 'tea at five'" in said


def test_a_name_that_is_too_long_is_told_in_words(tea: Tea) -> None:
    said = tea.ada.fails(2, "room", "create", "x" * 201)
    assert "the name is too long: at most 200 characters" in said


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


LIMIT = 60.0


def test_who_leaves_is_gone(tea: Tea) -> None:
    room = tea.another("farewell")
    assert tea.bea.ok("room", "leave", "farewell") == f"left    {room}\n"

    def left() -> bool:
        members = tea.ada.json("room", "members", "farewell")["members"]
        return any(each["membership"] == "leave" for each in members)

    tea.until(left)
    told = {"members": 0, "neighbors": 0, "relays": [], "until": None, "reason": None}
    assert tea.ada.json("room", "leave", "farewell") == {"room": room, "left": True, **told}


class Fragile:
    """A node that is killed and started again."""

    def __init__(self, home: Path) -> None:
        self.shell = Linnet(home)
        self.shell.ok("init", "--label", home.name)
        hasten(self.shell)
        self.start()

    def start(self) -> None:
        command = [*LINNET, "up", "--home", str(self.shell.home), "--json"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.shell.address = json.loads(self._process.stdout.readline())["address"]

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()


def test_who_leaves_while_nobody_is_in_reach_is_gone_when_somebody_is(tmp_path: Path) -> None:
    """Also if the node of whoever leaves is killed at once, and again."""
    nodes = ada, bea = Fragile(tmp_path / "ada"), Fragile(tmp_path / "bea")
    try:
        room = ada.shell.json("room", "create", "tea")["room"]
        bea.shell.ok("room", "join", ada.shell.ok("room", "invite", "tea").strip())
        ada.kill()
        while bea.shell.json("room", "list")["rooms"][0]["online"]:
            pass
        said = bea.shell.ok("room", "leave", "tea")
        bea.kill()
        promise = "1 member will hear of it when one of them, or a relay, is in reach (until "
        assert said.startswith(f"left    {room}\nnobody is in reach; {promise}")
        bea.start()
        listed = bea.shell.json("room", "list")
        assert listed["rooms"] == []
        assert [each["room"] for each in listed["departures"]] == [room]
        assert f"left tea; {promise}" in bea.shell.ok("status")
        assert f"left tea; {promise}" in bea.shell.ok("room", "list")
        assert "left room tea: 1 member" in bea.shell.ok("doctor")
        bea.kill()
        bea.start()
        ada.start()
        clock, me = Clock(), bea.shell.json("status")["person"]
        end = clock.now() + LIMIT
        known: list[str] = []
        while known != ["leave"]:  # Ada may have been killed before she had the join; then she hears of both.
            assert clock.now() < end
            members = ada.shell.json("room", "members", "tea", "--all")["members"]
            known = [each["membership"] for each in members if each["person"] == me]
        while bea.shell.json("room", "list")["departures"]:
            assert clock.now() < end
    finally:
        for node in nodes:
            node.kill()
