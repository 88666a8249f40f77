"""The door: who enters, waits, is let in, turned away or put out."""

from __future__ import annotations

import json
import subprocess

from tests.cli.place.parlour import Parlour
from tests.cli.shell import LINNET


def test_who_knocks_is_let_in(parlour: Parlour) -> None:
    address = parlour.hosted("club", "--policy", "closed")["address"]
    command = [*LINNET, "place", "enter", address, "--say", "it is me", "--home", str(parlour.bea.home)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as entering:
        while not (waiting := parlour.ada.json("place", "guests", "club")["waiting"]):
            pass
        assert waiting == [parlour.people["bea"]]
        assert "is nobody" in parlour.ada.fails(2, "place", "admit", "club", "lp1zzzz")
        assert parlour.ada.ok("place", "admit", "club", waiting[0][:12]) == f"admitted {waiting[0]}\n"
        assert entering.communicate()[0].startswith("entered club lt1")
    assert entering.returncode == 0


def test_a_guest_is_put_out(parlour: Parlour) -> None:
    parlour.bea.ok("place", "enter", parlour.hosted("inn")["address"])
    bea = parlour.people["bea"]
    assert parlour.ada.ok("place", "eject", "inn", bea[:14]) == f"ejected {bea}\n"
    assert parlour.ada.json("place", "guests", "inn")["guests"] == []
    assert "who are in: nobody" in parlour.ada.fails(2, "place", "eject", "inn", "lp1a")


def test_by_an_address_typed_or_read(parlour: Parlour) -> None:
    address = parlour.hosted("attic")["address"]
    said = parlour.bea.ok("place", "enter", "-", given=address[:40] + "\n" + address[40:] + "\n")
    assert said.splitlines()[0].startswith("entered attic lt1")
    assert parlour.bea.json("place", "enter", address)["place"]["role"] == "guest"


def test_what_is_wrong_is_told_with_the_next_step(parlour: Parlour) -> None:
    assert "cut short" in parlour.bea.fails(2, "place", "enter", parlour.address[:-10])
    assert "is no address la1" in parlour.bea.fails(2, "place", "enter", "tea")
    assert "leads nowhere" in parlour.bea.fails(1, "place", "enter", "music.nobody")
    assert "nobody to ask" in parlour.bea.fails(1, "place", "enter", parlour.hosted("shed")["place"]["place"])


def test_who_is_in(parlour: Parlour) -> None:
    assert [each["person"] for each in parlour.ada.json("place", "guests", "tea")["guests"]] == [
        parlour.people["bea"]
    ]
    assert parlour.people["bea"] in parlour.ada.ok("place", "guests", "tea")
    parlour.hosted("void")
    assert "nobody is in yet" in parlour.ada.ok("place", "guests", "void")


def test_who_is_turned_away_is_told_why(parlour: Parlour) -> None:
    address = parlour.hosted("bar", "--policy", "private")["address"]
    command = [*LINNET, "place", "enter", address, "--home", str(parlour.bea.home)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as entering:
        while not (waiting := parlour.ada.json("place", "guests", "bar")["waiting"]):
            pass
        assert "is no address" in parlour.ada.fails(
            2, "place", "reject", "bar", waiting[0], "--elsewhere", "x"
        )
        parlour.ada.ok("place", "reject", "bar", waiting[0], "--say", "members only")
        told = entering.communicate()[1]
        assert "the host decides who comes in" in told.splitlines()[0]
        assert "turned us away: members only" in told
    assert entering.returncode == 1


def test_who_is_sent_elsewhere_is_told_where_in_words_and_as_json(parlour: Parlour) -> None:
    lobby = parlour.hosted("lobby")["address"]
    address = parlour.hosted("snug", "--policy", "closed")["address"]
    command = [
        *LINNET,
        "place",
        "enter",
        address,
        "--say",
        "it is me",
        "--json",
        "--home",
        str(parlour.bea.home),
    ]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as entering:  # type: ignore[call-overload]
        while not (guests := parlour.ada.json("place", "guests", "snug"))["waiting"]:
            pass
        assert guests["said"] == ["it is me"]
        assert "it is me" in parlour.ada.ok("place", "guests", "snug")
        parlour.ada.ok("place", "reject", "snug", guests["waiting"][0], "--elsewhere", lobby)
        told, words = entering.communicate()
    assert json.loads(told)["elsewhere"] == lobby
    assert f"linnet place enter {lobby}" in words
    parlour.bea.ok("place", "enter", lobby)
