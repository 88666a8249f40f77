from __future__ import annotations

from tests.cli.place.parlour import Parlour


def test_who_is_in(parlour: Parlour) -> None:
    assert [each["person"] for each in parlour.ada.json("place", "guests", "tea")["guests"]] == [
        parlour.people["bea"]
    ]
    assert parlour.people["bea"] in parlour.ada.ok("place", "guests", "tea")
    parlour.hosted("void")
    assert "nobody is in yet" in parlour.ada.ok("place", "guests", "void")
