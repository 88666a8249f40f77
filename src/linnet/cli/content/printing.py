"""Printing what a subscription to content hands over: matches to standard output, all else beside it."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator
from typing import assert_never

import typer

from linnet.cli.acknowledging import Acknowledging, Consumer
from linnet.cli.exits import ExitCode, Failure
from linnet.cli.output import plain, say, say_json, size_text, warn
from linnet.cli.printing import Expired, time_limit
from linnet.core.reasons import Reason
from linnet.node.content_types import ContentItemView, MatchView, OverflowView
from linnet.node.control_types import EndedView, HeartbeatView, SubscribedView


class MatchPrinter:
    """Prints until the source ends, enough is printed, or the time is over."""

    def __init__(self, as_json: bool, count: int | None = None, consumer: Consumer | None = None) -> None:
        """With a `consumer`, what was printed is acknowledged."""
        self._as_json = as_json
        self._count = count
        self._consumer = consumer
        self._acknowledging: Acknowledging | None = None
        self._printed = 0
        self._lost = 0

    def run(self, items: Iterator[ContentItemView], timeout: float | None = None) -> None:
        """Print, then end the command: `typer.Exit` with 1 if something was lost or is wanting."""
        expired = False
        with contextlib.ExitStack() as stack:
            if isinstance(items, Generator):
                stack.callback(items.close)
            stack.callback(self._acknowledge)
            try:
                with time_limit(timeout):
                    self._print_all(items)
            except Expired:
                expired = True
            except KeyboardInterrupt:
                pass  # The way to end what has no count.
        if expired and self._count is not None:
            raise Failure(f"{self._printed} of {self._count} matches came in {timeout:g} s")
        if self._lost:
            raise typer.Exit(ExitCode.FAILED)

    def _print_all(self, items: Iterator[ContentItemView]) -> None:
        for item in items:
            self._print(item)
            if self._acknowledging is not None and not isinstance(item, SubscribedView | HeartbeatView):
                self._acknowledging.handled()
            if self._count is not None and self._printed >= self._count:
                return

    def _print(self, item: ContentItemView) -> None:
        match item:
            case MatchView():
                self._printed += 1
                if self._as_json:
                    say_json(item)
                else:
                    say(match_line(item))
            case OverflowView(_, count, reason):
                self._lost += count
                self._beside(item, f"lost: {count} that came while too much was unread: {reason}")
            case SubscribedView(number, resumed):
                self._beside(item, "resumed" if resumed else "subscribed")
                if self._consumer is not None:
                    self._acknowledging = Acknowledging(self._consumer, number)
            case EndedView(reason):
                if reason is not None:
                    code = ExitCode.NO_NODE if reason == Reason.SHUTDOWN else ExitCode.FAILED
                    raise Failure(f"it ended: {reason}; look at: linnet content list", code)
            case HeartbeatView():
                pass
            case _:
                assert_never(item)

    def _beside(self, item: ContentItemView, words: str) -> None:
        if self._as_json:
            import msgspec

            warn(msgspec.json.encode(item).decode())
        else:
            warn(words)

    def _acknowledge(self) -> None:
        if self._acknowledging is not None:
            self._acknowledging.finish()


def match_line(match: MatchView) -> str:
    """A match on one line: its attributes, and its body as far as that is text."""
    body = size_text(len(match.body)) if match.text is None else plain(match.text).replace("\n", " ")
    return f"{plain(match.attributes)}\t{body}" if match.body else plain(match.attributes)
