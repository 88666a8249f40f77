"""Printing what a subscription hands over: events to standard output, all else to standard error."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from types import FrameType
from typing import assert_never

import typer

from linnet.cli.acknowledging import Acknowledging, Consumer
from linnet.cli.exits import ExitCode, Failure
from linnet.cli.moments import clock_text
from linnet.cli.output import counted, json_text, plain, say, say_json, say_raw, warn
from linnet.cli.room.alarms import alarm_text
from linnet.core.reasons import Reason
from linnet.node.control_types import (
    CaughtUpView,
    EndedView,
    EventView,
    HeartbeatView,
    InsertedView,
    ItemView,
    MissedView,
    OverdueView,
    SubscribedView,
    WarningView,
)

UNREADABLE = {
    "not_a_member": "cannot be read: you are not let in; look at: linnet stream request",
    "before_joining": "cannot be read: it was said before you were let in",
    "key_missing": "cannot be read yet: its key is on the way",
    "key_spent": "cannot be read: its key was deleted",
    "desynced": "cannot be read: keys were missed for good; ask anew with: linnet stream request",
    "undecryptable": "cannot be read: it does not fit its key",
}
"""Why an event of a sealed stream cannot be read, as people are told."""

MAX_UNREAD = 65_536
"""Events that are remembered as unread; the exit status needs one of them."""

LATE = "↥"
"""Before an event that came later than what belongs behind it."""

NO_ITEMS = (SubscribedView, HeartbeatView, WarningView)
"""What the node does not count among what is consumed."""


def _body(event: EventView) -> str:
    return plain(event.body)


class Expired(Exception):
    """The time that the command was given is over."""


class Printer:
    """Prints items until the source ends, enough are printed, or the time is over."""

    def __init__(
        self,
        as_json: bool,
        count: int | None,
        consumer: Consumer | None,
        is_history: bool = False,
        line: Callable[[EventView], str] = _body,
        is_raw: bool = False,
    ) -> None:
        """With a `consumer`, what was printed is acknowledged. `line` is how an event looks; `is_raw`: its
        body is printed as it is."""
        self._is_raw = is_raw
        self._as_json = as_json
        self._count = count
        self._consumer = consumer
        self._is_history = is_history
        self._line = line
        self._acknowledging: Acknowledging | None = None
        self._printed = 0
        self._hidden = 0
        self._missed = 0
        self._late: str | None = None
        """The event that came after what belongs behind it."""
        self._unread: set[str] = set()
        """Events of a sealed stream that could not be read, and were not handed over since."""

    def run(self, items: Iterator[ItemView], timeout: float | None) -> None:
        """Print, then end the command: `typer.Exit` with 1 if something was missed or is wanting."""
        expired = False
        with contextlib.ExitStack() as stack:
            stack.callback(_close, items)
            stack.callback(self._acknowledge)
            try:
                with time_limit(timeout):
                    self._print_all(items)
            except Expired:
                expired = True
            except KeyboardInterrupt:
                pass  # The way to end a subscription that has no count.
            except BrokenPipeError:
                _forget_output()
        if expired and self._count is not None:
            raise Failure(f"{self._printed:,} of {counted(self._count, 'event')} came in {timeout:g} s")
        if self._missed or self._unread:
            raise typer.Exit(ExitCode.FAILED)

    def _print_all(self, items: Iterator[ItemView]) -> None:
        for item in items:
            self._print(item)
            if self._acknowledging is not None and not isinstance(item, NO_ITEMS):
                self._acknowledging.handled()
            if self._count is not None and self._printed >= self._count and not self._is_history:
                return

    def _print(self, item: ItemView) -> None:
        match item:
            case EventView():
                self._event(item)
            case MissedView():
                self._missed += item.last - item.first + 1
                many = f"{item.first} to {item.last}" if item.last > item.first else f"{item.first}"
                self._beside(item, f"missed: number {many} of {item.author}: {item.reason}")
            case CaughtUpView():
                self._caught_up(item)
            case InsertedView(event):
                self._late = event
            case OverdueView(event, people):
                missing = f"{counted(len(people), 'member')}: {', '.join(people)}"
                self._beside(item, f"{event} has not arrived at {missing}")
            case EndedView(reason):
                if reason is not None:
                    code = ExitCode.NO_NODE if reason == Reason.SHUTDOWN else ExitCode.FAILED
                    raise Failure(f"the subscription ended: {reason}; look at: linnet status", code)
            case SubscribedView(number, resumed):
                if self._consumer is not None:
                    self._acknowledging = Acknowledging(self._consumer, number)
                    words = "resumed" if resumed else "new durable subscription"
                    self._beside(item, words)
            case WarningView():
                self._beside(item, alarm_text(item))
            case HeartbeatView():
                pass
            case _:
                assert_never(item)

    def _event(self, event: EventView) -> None:
        if event.unreadable is not None and self._line is _body:
            if len(self._unread) < MAX_UNREAD:
                self._unread.add(event.id)
            reason = UNREADABLE.get(event.unreadable, f"cannot be read: {event.unreadable}")
            self._beside(event, f"number {event.seq} of {event.author}: {reason}")
            return
        self._unread.discard(event.id)
        if self._count is not None and self._printed >= self._count:
            self._hidden += 1
            return
        self._printed += 1
        if self._as_json:
            say_json(event)
        elif self._is_raw:
            say_raw(event.body)
        else:
            line = self._line(event)
            say(f"{LATE} {line}" if self._late == event.id and isinstance(line, str) else line)

    def _caught_up(self, item: CaughtUpView) -> None:
        if not self._is_history:
            if item.reason is not None:
                self._beside(item, f"history is {_alone(item.reason)}")
            return
        self._beside(item, history_text(item, self._printed, self._hidden))
        if item.reason == Reason.TIMEOUT:
            raise Failure(f"this history is {_alone(item.reason)}; try again, or look at: linnet status")

    def _beside(self, item: ItemView, words: str) -> None:
        warn(json_text(item) if self._as_json else words)

    def _acknowledge(self) -> None:
        if self._acknowledging is not None:
            self._acknowledging.finish()


def history_text(item: CaughtUpView, printed: int, hidden: int) -> str:
    """Where a history begins, and what there is no more."""
    if item.begins_at is None:
        words = "nothing is kept"
    else:
        words = f"history begins {clock_text(item.begins_at)}"
        if item.evicted:
            words += "; older events were evicted"
    if item.reason is not None:
        words += f"; this is {_alone(item.reason)}"
    if hidden:
        words += f"; {printed:,} of {counted(printed + hidden, 'event')} are shown"
    return words


def _alone(reason: str) -> str:
    """Whose history it is if storage nodes had no part in it, and why."""
    why = {
        Reason.NO_STORAGE.value: "no storage node is known",
        Reason.TIMEOUT.value: "storage nodes are known, and none answered",
    }.get(reason, reason)
    return f"only what this node keeps: {why}"


@contextlib.contextmanager
def time_limit(seconds: float | None) -> Generator[None]:
    """Raise `Expired` in the block after so many seconds, whatever it waits for."""
    if seconds is None:
        yield
        return

    def expire(number: int, frame: FrameType | None) -> None:
        raise Expired

    before = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _close(items: Iterator[ItemView]) -> None:
    if isinstance(items, Generator):
        items.close()


def _forget_output() -> None:
    """Whoever read us is gone: what is still buffered goes nowhere, without a complaint at the exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
