from __future__ import annotations

from tests.cli.place.parlour import Parlour


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
