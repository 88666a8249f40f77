from __future__ import annotations

from tests.cli.place.parlour import Parlour


def test_for_now_and_for_good(parlour: Parlour) -> None:
    address = parlour.hosted("fair")["address"]
    place = parlour.bea.json("place", "enter", address)["place"]["place"]
    assert parlour.bea.ok("place", "leave", "fair", "--for-now") == f"disconnected from {place}\n"
    assert len(parlour.ada.json("place", "guests", "fair")["guests"]) == 1
    parlour.bea.ok("place", "enter", place)
    assert parlour.bea.ok("place", "leave", place) == f"left {place}\n"
    assert parlour.ada.json("place", "guests", "fair")["guests"] == []
