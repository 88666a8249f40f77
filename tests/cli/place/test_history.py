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


def test_what_was_before_the_entry_into_a_public_place_is_not_told_as_lost(
    parlour: Parlour,
) -> None:
    address = parlour.hosted("annals")["address"]
    for text in ("one", "two"):
        parlour.ada.ok("place", "announce", "annals", text)
    parlour.bea.ok("place", "enter", address)
    parlour.ada.ok("place", "announce", "annals", "three")
    parlour.bea.ok("place", "watch", "annals", "--from", "5", "--count", "1")
    done = parlour.bea.run("place", "history", "annals")
    assert done.exit_code == 0
    assert "lost" not in done.stderr
    assert parlour.people["bea"] in done.stdout.splitlines()[0], "its entry, by the id that it has"
    assert done.stdout.splitlines()[-1] == "5 _message three"
    asked = parlour.bea.run("place", "history", "annals", "--first", "1")
    assert "lost: message 1" in asked.stderr, "who asks for it is told"
