from __future__ import annotations

from tests.cli.place.parlour import Parlour


def test_how_it_stands_and_its_address(parlour: Parlour) -> None:
    told = dict(line.split(maxsplit=1) for line in parlour.ada.ok("place", "status", "tea").splitlines())
    assert told["place"] == parlour.place
    assert told["you"] == "are host" or told["you"].endswith("host")
    assert told["address"].startswith("la1")
    assert parlour.bea.json("place", "status", "tea")["place"]["role"] == "guest"
    assert "not in that place" in parlour.bea.fails(
        1, "place", "status", parlour.hosted("tower")["place"]["place"]
    )
