"""Printers for subscriptions: requested items go to standard output, everything else to standard error."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator
from types import FrameType
from typing import Generic, Protocol, TypeVar, assert_never

import msgspec
import typer

from linnet.api.content import ContentItemView, InGroupsView, MatchView, OverflowView
from linnet.api.items import (
    CaughtUpView,
    CutOffView,
    EndedView,
    EventView,
    ForkedView,
    HeartbeatView,
    InsertedView,
    ItemView,
    MissedView,
    OverdueView,
    RelayFaultyView,
    StorageDiffersView,
    SubscribedView,
    WarningView,
)
from linnet.cli.exits import ExitCode, Failure
from linnet.cli.moments import clock_text
from linnet.cli.output import counted, json_text, plain, say, say_json, say_raw, size_text, warn
from linnet.cli.room.words import warning_text
from linnet.core.errors import LinnetError
from linnet.core.reasons import Reason
from linnet.delivery.commands import Consumed


class Consumer(Protocol):
    """The receiver of acknowledgements; `linnet.api.client.Remote` is one."""

    def ask(self, command: Consumed, /) -> object:
        """Acknowledge items; return when that is durable."""


class Acknowledger:
    """Reports handled items to the node without waiting for each report.

    A thread does it: items that are handled during one request are reported with the next.
    """

    def __init__(self, control: Consumer, subscription: int) -> None:
        self._control = control
        self._subscription = subscription
        self._handled = 0
        self._is_over = False
        self._changed = threading.Condition()
        self._error: LinnetError | None = None
        self._thread = threading.Thread(target=self._run, name="acknowledge", daemon=True)
        self._thread.start()

    def handled(self) -> None:
        """Note that one more item was handled; raise the error of an earlier report."""
        with self._changed:
            if self._error is not None:
                raise self._error
            self._handled += 1
            self._changed.notify()

    def finish(self) -> None:
        """Wait until all handled items are acknowledged; raises if that failed."""
        with self._changed:
            self._is_over = True
            self._changed.notify()
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._handled or self._is_over)
                handled, self._handled = self._handled, 0
            if not handled:
                return
            try:
                self._control.ask(Consumed(self._subscription, handled))
            except LinnetError as error:
                with self._changed:
                    self._error = error
                return


NO_ITEMS = (SubscribedView, HeartbeatView, InGroupsView, WarningView)
"""Lines that the node does not count as consumed items."""

Item = TypeVar("Item", bound=msgspec.Struct)


class Expired(Exception):
    """The time limit of the command is over."""


class ItemPrinter(ABC, Generic[Item]):
    """Prints items until the source ends, enough are printed, or the time is over."""

    called: tuple[str, str]
    """The name of the printed items, singular and plural."""
    subject = "it"
    """The subject of messages about the end."""
    look: str
    """The command that shows more about the source."""

    def __init__(self, as_json: bool, count: int | None = None, consumer: Consumer | None = None) -> None:
        """With a `consumer`, printed items are acknowledged."""
        self._as_json = as_json
        self._count = count
        self._consumer = consumer
        self._acknowledger: Acknowledger | None = None
        self._printed = 0
        self._lost = 0

    def run(self, items: Iterator[Item], timeout: float | None = None) -> None:
        """Print, then end the command: raises `typer.Exit` with 1 if items were lost or are missing."""
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
            except BrokenPipeError:
                _forget_output()
        if expired and self._count is not None:
            raise Failure(f"{self._printed:,} of {counted(self._count, *self.called)} came in {timeout:g} s")
        if not self._is_whole():
            raise typer.Exit(ExitCode.FAILED)

    @abstractmethod
    def _print(self, item: Item) -> None:
        """Print one item."""

    def _print_all(self, items: Iterator[Item]) -> None:
        for item in items:
            self._print(item)
            if self._acknowledger is not None and not isinstance(item, NO_ITEMS):
                self._acknowledger.handled()
            if self._is_enough():
                return

    def _is_enough(self) -> bool:
        return self._count is not None and self._printed >= self._count

    def _is_whole(self) -> bool:
        return not self._lost

    def _shown(self, item: Item, line: str) -> None:
        self._printed += 1
        if self._as_json:
            say_json(item)
        else:
            say(line)

    def _beside(self, item: Item, words: str) -> None:
        warn(json_text(item) if self._as_json else words)

    def _began(self, subscription: int) -> None:
        if self._consumer is not None:
            self._acknowledger = Acknowledger(self._consumer, subscription)

    def _ended(self, reason: str | None) -> None:
        if reason is not None:
            code = ExitCode.NO_NODE if reason == Reason.SHUTDOWN else ExitCode.FAILED
            raise Failure(f"{self.subject} ended: {reason}; look at: {self.look}", code)

    def _acknowledge(self) -> None:
        if self._acknowledger is not None:
            self._acknowledger.finish()


UNREADABLE = {
    "not_a_member": "cannot be read: you are not let in; look at: linnet stream request",
    "before_joining": "cannot be read: it was said before you were let in",
    "damaged": "cannot be read: the disk of this node has damaged it",
    "key_missing": "cannot be read yet: its key is on the way",
    "key_spent": "cannot be read: its key was deleted",
    "desynced": "cannot be read: keys were missed for good; ask anew with: linnet stream request",
    "undecryptable": "cannot be read: it does not fit its key",
}
"""Why an event of a sealed stream cannot be read, in words for users."""

MAX_UNREAD = 65_536
"""The most events that are remembered as unread; the exit status needs only one of them."""

LATE = "↥"
"""The mark of an event that arrived late."""


class EventPrinter(ItemPrinter[ItemView]):
    """Prints the events of a stream or a room."""

    called = ("event", "events")
    subject = "the subscription"
    look = "linnet status"
    line: Callable[[EventView], str] | None = None
    """Formats an event, including an unreadable one; None: print its body if it can be read."""
    is_raw = False
    """Whether bodies are printed as raw bytes."""

    def __init__(self, as_json: bool, count: int | None = None, consumer: Consumer | None = None) -> None:
        super().__init__(as_json, count, consumer)
        self._late: str | None = None
        """The id of the next event if it arrived late."""
        self._unread: set[str] = set()
        """Events of a sealed stream that could not be read and have not been handed over since."""

    def _print(self, item: ItemView) -> None:
        match item:
            case EventView():
                self._print_event(item)
            case MissedView():
                self._print_missed(item)
            case ForkedView() | StorageDiffersView() | CutOffView():
                self._beside(item, untruth_text(item))
            case CaughtUpView():
                self._print_history_end(item)
            case InsertedView(event):
                self._late = event
            case OverdueView(event, people):
                missing = f"{counted(len(people), 'member')}: {', '.join(people)}"
                self._beside(item, f"{event} has not arrived at {missing}")
            case EndedView(reason):
                self._ended(reason)
            case SubscribedView(number, resumed):
                self._began(number)
                if self._consumer is not None:
                    self._beside(item, "resumed" if resumed else "new durable subscription")
            case WarningView() | RelayFaultyView():
                self._beside(item, warning_text(item))
            case HeartbeatView():
                pass
            case _:
                assert_never(item)

    def _print_missed(self, item: MissedView) -> None:
        many = f"{item.first} to {item.last}" if item.last > item.first else f"{item.first}"
        if item.claimed_by:
            who = "1 peer claims" if item.claimed_by == 1 else f"{item.claimed_by} peers claim"
            self._beside(item, f"may lack number {many} of {item.author}: {who} so, and nobody has it")
            return
        self._lost += item.last - item.first + 1
        self._beside(item, f"missed: number {many} of {item.author}: {item.reason}")

    def _print_event(self, event: EventView) -> None:
        if event.unreadable is not None and self.line is None:
            if len(self._unread) < MAX_UNREAD:
                self._unread.add(event.id)
            reason = UNREADABLE.get(event.unreadable, f"cannot be read: {event.unreadable}")
            self._beside(event, f"number {event.seq} of {event.author}: {reason}")
            return
        self._unread.discard(event.id)
        if self._as_json:
            self._shown(event, "")
        elif self.is_raw:
            self._printed += 1
            say_raw(event.body)
        else:
            line = plain(event.body) if self.line is None else self.line(event)
            self._shown(event, f"{LATE} {line}" if self._late == event.id else line)

    def _print_history_end(self, item: CaughtUpView) -> None:
        if item.reason is not None:
            self._beside(item, f"history is {_alone(item.reason)}")

    def _is_whole(self) -> bool:
        return super()._is_whole() and not self._unread


class HistoryPrinter(EventPrinter):
    """Prints the history of a stream: the first `count` events, and where it begins."""

    _hidden = 0

    def _is_enough(self) -> bool:
        return False  # What is kept is read to its end, to tell how much is not shown.

    def _print_event(self, event: EventView) -> None:
        is_readable = event.unreadable is None or self.line is not None
        if is_readable and super()._is_enough():
            self._unread.discard(event.id)
            self._hidden += 1
        else:
            super()._print_event(event)

    def _print_history_end(self, item: CaughtUpView) -> None:
        self._beside(item, history_text(item, self._printed, self._hidden))
        if item.reason == Reason.TIMEOUT:
            raise Failure(f"this history is {_alone(item.reason)}; try again, or look at: linnet status")


def untruth_text(item: ForkedView | StorageDiffersView | CutOffView) -> str:
    """Say who says different things about a chain, or claims what nobody hands over."""
    if isinstance(item, CutOffView):
        return _cut_off_text(item)
    if isinstance(item, ForkedView):
        said_twice = f"two events as number {item.number}: others may have read another one than you"
        return f"forked: {item.author} signed {said_twice}"
    said = [
        f"{each.node} has nothing" if each.last is None else f"{each.node} says up to {each.last}"
        for each in item.told
    ]
    shown = "none was shown" if item.last is None else f"up to {item.last} were shown"
    more = f"; they differ about {counted(item.others, 'further chain')}" if item.others else ""
    return f"storage nodes differ about the events of {item.author}: {', '.join(said)}; {shown}{more}"


def _cut_off_text(item: CutOffView) -> str:
    if not item.events:
        return "cut off no longer: what others claimed to have is here"
    claims = "claims" if item.claimants == 1 else "claim"
    who, what = counted(item.claimants, "node"), counted(item.events, "event")
    return f"this node may be cut off: {who} {claims} to have {what} that nobody hands over"


def history_text(item: CaughtUpView, printed: int, hidden: int) -> str:
    """Say where a history begins, and what is missing from it."""
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
    """Say that the history lacks the storage nodes' part, and why."""
    why = {
        Reason.NO_STORAGE.value: "no storage node is known",
        Reason.TIMEOUT.value: "storage nodes are known, and none answered",
    }.get(reason, reason)
    return f"only what this node keeps: {why}"


@contextlib.contextmanager
def time_limit(seconds: float | None) -> Generator[None]:
    """Raise `Expired` in the block after this many seconds, whatever it waits for."""
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


def _forget_output() -> None:
    """Discard buffered output, since its reader is gone, so that the exit does not complain."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class MatchPrinter(ItemPrinter[ContentItemView]):
    """Prints the matches of a content subscription."""

    called = ("match", "matches")
    look = "linnet content list"

    def _print(self, item: ContentItemView) -> None:
        match item:
            case MatchView():
                self._shown(item, match_line(item))
            case OverflowView(_, count, reason):
                self._lost += count
                self._beside(item, f"lost: {count} that came while too much was unread: {reason}")
            case SubscribedView(number, resumed):
                self._beside(item, "resumed" if resumed else "subscribed")
                self._began(number)
            case InGroupsView():
                self._beside(item, groups_text(item))
            case EndedView(reason):
                self._ended(reason)
            case HeartbeatView():
                pass
            case _:
                assert_never(item)


def groups_text(item: InGroupsView) -> str:
    """Say in how many groups a subscription is, and that later groups are joined as well."""
    found = f"in {counted(item.joined, 'group')}" if item.joined else "in no group: nobody serves one for it"
    refused = f"; {counted(item.refused, 'group')} did not take it" if item.refused else ""
    silent = f"; {counted(item.unanswered, 'board')} did not answer" if item.unanswered else ""
    others = "more" if item.joined else "one"
    again = f"who opens {others} later is found and joined: this node looks again every {item.look_again:g} s"
    return f"{found}{refused}{silent}; {again}"


def match_line(match: MatchView) -> str:
    """Return a match as one line: its attributes, and its body if that is text."""
    body = size_text(len(match.body)) if match.text is None else plain(match.text)
    return f"{plain(match.attributes)}\t{body}" if match.body else plain(match.attributes)
