from __future__ import annotations

import json
import subprocess

from tests.cli.place.parlour import Parlour
from tests.cli.village import LINNET


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
