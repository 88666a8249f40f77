from __future__ import annotations

from tests.cli.place.parlour import Parlour


def test_a_durable_watch_goes_on_after_what_was_printed(parlour: Parlour) -> None:
    place = parlour.hosted("diary")["place"]["place"]
    words = ("place", "watch", "diary", "--name", "reader", "--from", "2", "--count", "1", "--timeout", "20")
    for text in ("one", "two"):
        parlour.ada.ok("place", "announce", place, text)
    assert parlour.ada.ok(*words) == "2 _message one\n"
    assert parlour.ada.ok(*words) == "3 _message two\n"


def test_too_few_and_wrong_directories_are_told(parlour: Parlour) -> None:
    words = ("place", "watch", "tea", "--count", "1")
    assert "0 of 1 message came" in parlour.bea.fails(1, *words, "--timeout", "0.2")
    assert "is no directory" in parlour.bea.fails(2, *words, "--save-to", "/nowhere")
