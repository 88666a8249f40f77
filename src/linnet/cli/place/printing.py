"""Printing what is heard in a place: messages to standard output, all else to standard error."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

import typer

from linnet.cli.acknowledging import Acknowledging, Consumer
from linnet.cli.exits import ExitCode, Failure
from linnet.cli.output import plain, say, say_json, size_text, warn
from linnet.cli.printing import Expired, time_limit
from linnet.core.reasons import Reason
from linnet.node.control_types import EndedView, HeartbeatView, SubscribedView
from linnet.node.place_types import (
    ChangedView,
    KnockedView,
    LostView,
    MessageView,
    PieceView,
    PlaceItemView,
    TakenBackView,
)

if TYPE_CHECKING:
    from linnet.node.client import ControlClient

KEEPALIVE = "_notice_keepalive"
"""What hosts say when there is nothing to say; not for people."""

Saving = Callable[[MessageView], Path]
"""Puts the body of a message into a file."""


class PlacePrinter:
    """Prints until the source ends, enough is printed, or the time is over."""

    def __init__(
        self,
        as_json: bool,
        count: int | None = None,
        consumer: Consumer | None = None,
        saving: Saving | None = None,
    ) -> None:
        """With a `consumer`, what was printed is acknowledged."""
        self._as_json = as_json
        self._count = count
        self._consumer = consumer
        self._saving = saving
        self._acknowledging: Acknowledging | None = None
        self._printed = 0
        self._lost = 0

    def run(self, items: Iterator[PlaceItemView], timeout: float | None = None) -> None:
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
            raise Failure(f"{self._printed} of {self._count} messages came in {timeout:g} s")
        if self._lost:
            raise typer.Exit(ExitCode.FAILED)

    def _print_all(self, items: Iterator[PlaceItemView]) -> None:
        for item in items:
            self._print(item)
            if self._acknowledging is not None and not isinstance(item, SubscribedView | HeartbeatView):
                self._acknowledging.handled()
            if self._count is not None and self._printed >= self._count:
                return

    def _print(self, item: PlaceItemView) -> None:
        match item:
            case MessageView():
                self._message(item)
            case KnockedView(person, _, _, text):
                words = f": {plain(text)}" if text else ""
                self._beside(item, f"{person} knocks{words}; answer with linnet place admit or reject")
            case ChangedView(_, name, value, text):
                self._shown(item, f"{name}\t{'' if value is None else plain(text or size_text(len(value)))}")
            case LostView(first, last, reason):
                if reason != Reason.NOT_ALLOWED:
                    self._lost += last - first + 1
                self._beside(item, f"lost: message {first} to {last}: {reason}")
            case TakenBackView(messages):
                numbers = ", ".join(map(str, messages))
                self._beside(item, f"taken back: message {numbers}; what counts of it is said again")
            case EndedView(reason):
                if reason is not None:
                    code = ExitCode.NO_NODE if reason == Reason.SHUTDOWN else ExitCode.FAILED
                    raise Failure(f"it ended: {reason}; look at: linnet place status", code)
            case SubscribedView(number):
                if self._consumer is not None:
                    self._acknowledging = Acknowledging(self._consumer, number)
            case PieceView() | HeartbeatView():
                pass
            case _:
                assert_never(item)

    def _message(self, message: MessageView) -> None:
        if message.method == KEEPALIVE:
            return
        if self._saving is not None and message.size:
            path = self._saving(message)
            self._beside(message, f"saved message {message.message} as {path} ({size_text(message.size)})")
        self._shown(message, message_line(message))

    def _shown(self, item: PlaceItemView, line: str) -> None:
        self._printed += 1
        if self._as_json:
            say_json(item)
        else:
            say(line)

    def _beside(self, item: PlaceItemView, words: str) -> None:
        if self._as_json and not isinstance(item, MessageView):
            import msgspec

            warn(msgspec.json.encode(item).decode())
        else:
            warn(words)

    def _acknowledge(self) -> None:
        if self._acknowledging is not None:
            self._acknowledging.finish()


def message_line(message: MessageView) -> str:
    """A message as people read it: its number, who said it, the method, the body or its size."""
    who = "" if message.nym is None else f" {message.nym[:10]}…"
    if message.text is not None:
        words = plain(message.text)
    else:
        words = f"({size_text(message.size)}; get it with: linnet place history --save {message.message})"
    given = " ".join(
        f"{each.operator}{each.name}={plain(each.text or '')}" for each in message.variables if each.text
    )
    return " ".join(part for part in (f"{message.message}{who}", message.method, given, words) if part)


def save_body(node: ControlClient, place: str, message: MessageView, target: Path, quiet: bool) -> Path:
    """The body of a message into a file, going on where an earlier try was interrupted."""
    from linnet.cli.room.progress import file_bar
    from linnet.node.part_files import PartFile

    file = PartFile(target, message.size)
    with file, file_bar(target.name, quiet) as progress:
        for item in node.message_body(place, message.message, file.done):
            if isinstance(item, LostView):
                raise Failure(f"message {message.message} cannot be had whole any more: {item.reason}")
            if isinstance(item, PieceView):
                file.add(item.data)
                progress(file.done, message.size)
    return target


def file_name(message: MessageView) -> str:
    """What to call the body of a message, by what its sender called it, without a way out of a directory."""
    given = next((each.text for each in message.variables if each.name == "_file_name"), None)
    name = Path(given or "").name
    safe = "".join(letter for letter in name if letter.isprintable())
    return f"{message.message}-{safe}" if safe.strip(". ") else f"{message.message}"
