from __future__ import annotations

from tests.cli.place.parlour import Parlour
from tests.cli.shell import Linnet


def test_every_place_with_our_part_in_it(parlour: Parlour) -> None:
    rows = [line.split()[:4] for line in parlour.bea.ok("place", "list").splitlines()]
    assert ["tea", parlour.place, "guest", "public"] in rows


def test_no_place_says_what_to_do(running: Linnet) -> None:
    assert "found one with linnet place host" in running.ok("place", "list")
