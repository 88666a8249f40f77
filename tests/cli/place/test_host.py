from __future__ import annotations

from tests.cli.place.parlour import Parlour


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
