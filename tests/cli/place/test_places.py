"""The places of a node: founded, listed, looked at, left."""

from __future__ import annotations

from tests.cli.place.parlour import Parlour
from tests.cli.shell import Linnet


def test_the_place_its_address_and_the_next_step(parlour: Parlour) -> None:
    first, second, third = parlour.ada.ok("place", "host", "garden").splitlines()
    assert first.startswith("place   lt1")
    assert second.startswith("address la1")
    assert third == "next    linnet place announce garden hello"


def test_policy_and_cohosts(parlour: Parlour) -> None:
    made = parlour.hosted("cellar", "--policy", "private", "--cohost", parlour.people["bea"])
    assert made["place"]["deed"]["policy"] == "private"
    assert made["place"]["deed"]["cohosts"] == [parlour.people["bea"]]
    assert made["place"]["role"] == "host"
    assert "person id" in parlour.ada.fails(2, "place", "host", "x", "--cohost", "bea")
    assert "has no address" in parlour.ada.fails(2, "place", "host", "x", "--keeper", "ld1")


def test_for_now_and_for_good(parlour: Parlour) -> None:
    address = parlour.hosted("fair")["address"]
    place = parlour.bea.json("place", "enter", address)["place"]["place"]
    assert parlour.bea.ok("place", "leave", "fair", "--for-now") == f"disconnected from {place}\n"
    assert len(parlour.ada.json("place", "guests", "fair")["guests"]) == 1
    parlour.bea.ok("place", "enter", place)
    assert parlour.bea.ok("place", "leave", place) == f"left {place}\n"
    assert parlour.ada.json("place", "guests", "fair")["guests"] == []


def test_every_place_with_our_part_in_it(parlour: Parlour) -> None:
    rows = [line.split()[:4] for line in parlour.bea.ok("place", "list").splitlines()]
    assert ["tea", parlour.place, "guest", "public"] in rows


def test_no_place_says_what_to_do(running: Linnet) -> None:
    assert "found one with linnet place host" in running.ok("place", "list")


def test_how_it_stands_and_its_address(parlour: Parlour) -> None:
    told = dict(line.split(maxsplit=1) for line in parlour.ada.ok("place", "status", "tea").splitlines())
    assert told["place"] == parlour.place
    assert told["you"] == "are host" or told["you"].endswith("host")
    assert told["address"].startswith("la1")
    assert parlour.bea.json("place", "status", "tea")["place"]["role"] == "guest"
    assert "not in that place" in parlour.bea.fails(
        1, "place", "status", parlour.hosted("tower")["place"]["place"]
    )
