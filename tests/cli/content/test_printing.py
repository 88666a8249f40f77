from __future__ import annotations

import pytest
import typer

from linnet.cli.content.printing import MatchPrinter, groups_text, match_line
from linnet.cli.exits import ExitCode, Failure
from linnet.node.content_types import ContentItemView, InGroupsView, MatchView, OverflowView
from linnet.node.control_types import EndedView, HeartbeatView, SubscribedView

MATCH = MatchView(1, "le1x", "lp1x", "a=1/b", 0.0, 2, b"two\nlines", "two\nlines")


class Consumer:
    """Counts what is acknowledged."""

    def __init__(self) -> None:
        self.items = 0

    def consumed(self, subscription: int, items: int) -> None:
        assert subscription == 7
        self.items += items


def test_matches_go_to_standard_output_and_the_rest_beside_it(capsys: pytest.CaptureFixture[str]) -> None:
    items: list[ContentItemView] = [SubscribedView(7, True), MATCH, HeartbeatView(), MATCH]
    consumer = Consumer()
    MatchPrinter(False, None, consumer).run(iter(items))
    printed = capsys.readouterr()
    assert printed.out == "a=1/b\ttwo\\nlines\n" * 2
    assert printed.err == "resumed\n"
    assert consumer.items == 2


def test_what_was_lost_makes_the_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as caught:
        MatchPrinter(True).run(iter([OverflowView(1, 4, "queue_full")]))
    assert caught.value.exit_code == ExitCode.FAILED
    assert '"count":4' in capsys.readouterr().err


def test_an_end_that_nobody_asked_for_is_an_error() -> None:
    with pytest.raises(Failure, match="it ended: shutdown") as caught:
        MatchPrinter(False).run(iter([EndedView("shutdown")]))
    assert caught.value.code is ExitCode.NO_NODE


def test_a_line_shows_attributes_and_what_of_the_body_is_text() -> None:
    assert match_line(MatchView(1, "", "", "a", 0.0, 0, b"", "")) == "a"
    assert match_line(MatchView(1, "", "", "a", 0.0, 0, b"\xff\x00", None)) == "a\t2 bytes"
    assert match_line(MatchView(1, "", "", "a", 0.0, 0, b"\x1b[2J", "\x1b[2J")) == "a\t\\x1b[2J"


def test_who_is_in_no_group_is_told_so_and_what_comes_of_it() -> None:
    assert groups_text(InGroupsView(0, 0, 0, 60.0)) == (
        "in no group: nobody serves one for it; "
        "who opens one later is found and joined: this node looks again every 60 s"
    )
    assert groups_text(InGroupsView(2, 1, 1, 900.0)) == (
        "in 2 groups; 1 group did not take it; 1 board did not answer; "
        "who opens more later is found and joined: this node looks again every 900 s"
    )
