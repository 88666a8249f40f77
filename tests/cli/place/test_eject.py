from __future__ import annotations

from tests.cli.place.parlour import Parlour


def test_a_guest_is_put_out(parlour: Parlour) -> None:
    parlour.bea.ok("place", "enter", parlour.hosted("inn")["address"])
    bea = parlour.people["bea"]
    assert parlour.ada.ok("place", "eject", "inn", bea[:14]) == f"ejected {bea}\n"
    assert parlour.ada.json("place", "guests", "inn")["guests"] == []
    assert "who are in: nobody" in parlour.ada.fails(2, "place", "eject", "inn", "lp1a")
