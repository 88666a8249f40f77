from __future__ import annotations

from tests.cli.place.parlour import Parlour


def test_a_range_in_order_and_what_is_not_there(parlour: Parlour) -> None:
    parlour.hosted("chronicle")
    for text in ("one", "two", "three"):
        parlour.ada.ok("place", "announce", "chronicle", text)
    told = parlour.ada.ok("place", "history", "chronicle", "--first", "2", "--last", "3")
    assert told == "2 _message one\n3 _message two\n"
    assert "say which with --save" in parlour.ada.fails(2, "place", "history", "chronicle", "--to", "x")
    assert "no message 99" in parlour.ada.fails(1, "place", "history", "chronicle", "--save", "99")
