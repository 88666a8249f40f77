"""What readers of places and content share: counts, time limits, what was lost, what is acknowledged."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import typer
from msgspec import Struct

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.item_printing import ItemPrinter
from linnet.node.control_types import EndedView, SubscribedView


class Word(Struct):
    text: str
    lost: int = 0


Item = Word | SubscribedView | EndedView


class WordPrinter(ItemPrinter[Item]):
    called = ("word", "words")
    look = "linnet words"

    def _print(self, item: Item) -> None:
        match item:
            case Word(text, lost):
                self._lost += lost
                self._shown(item, text)
            case SubscribedView(number):
                self._began(number)
            case EndedView(reason):
                self._ended(reason)


class Consumed:
    """Remembers what was acknowledged."""

    def __init__(self) -> None:
        self.told: list[tuple[int, int]] = []

    def consumed(self, subscription: int, items: int) -> None:
        self.told.append((subscription, items))


def words(*texts: str) -> Iterator[Item]:
    yield SubscribedView(7, False)
    for text in texts:
        yield Word(text)


def test_as_many_are_printed_and_acknowledged_as_were_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    consumer = Consumed()
    WordPrinter(False, 2, consumer).run(words("a", "b", "c"))
    assert capsys.readouterr().out == "a\nb\n"
    assert sum(items for _, items in consumer.told) == 2
    assert {subscription for subscription, _ in consumer.told} == {7}


def test_what_was_lost_is_the_exit_status() -> None:
    with pytest.raises(typer.Exit) as ended:
        WordPrinter(True).run(iter([Word("a", lost=3)]))
    assert ended.value.exit_code == ExitCode.FAILED


def test_an_end_with_a_reason_says_where_to_look() -> None:
    WordPrinter(False).run(iter([EndedView(None)]))
    with pytest.raises(Failure, match="it ended: forgotten; look at: linnet words"):
        WordPrinter(False).run(iter([EndedView("forgotten")]))
    with pytest.raises(Failure) as stopped:
        WordPrinter(False).run(iter([EndedView("shutdown")]))
    assert stopped.value.code == ExitCode.NO_NODE
