"""Printing what is heard in a place: messages to standard output, all else to standard error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from linnet.cli.acknowledging import Consumer
from linnet.cli.exits import Failure
from linnet.cli.item_printing import ItemPrinter
from linnet.cli.output import paragraphs, plain, size_text, warn
from linnet.core.reasons import Reason
from linnet.node.control_types import EndedView, HeartbeatView, SubscribedView
from linnet.node.place_types import (
    ChangedView,
    DeedView,
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


class PlacePrinter(ItemPrinter[PlaceItemView]):
    """Prints messages, and saves their bodies if that is asked for."""

    called = ("message", "messages")
    look = "linnet place status"

    def __init__(
        self,
        as_json: bool,
        count: int | None = None,
        consumer: Consumer | None = None,
        saving: Saving | None = None,
        speakers: Mapping[str, str] | None = None,
    ) -> None:
        """See `ItemPrinter`. `speakers`: who speaks to all, where that may be several."""
        super().__init__(as_json, count, consumer)
        self._saving = saving
        self._speakers = speakers

    def _print(self, item: PlaceItemView) -> None:
        match item:
            case MessageView():
                self._message(item)
            case KnockedView(person, _, _, text):
                words = f": {plain(text)}" if text else ""
                self._beside(item, f"{person} knocks{words}; answer with linnet place admit or reject")
            case ChangedView(_, name, value, text):
                self._shown(
                    item, f"{plain(name)}\t{'' if value is None else plain(text or size_text(len(value)))}"
                )
            case LostView(first, last, reason):
                if reason != Reason.NOT_ALLOWED:
                    self._lost += last - first + 1
                self._beside(item, f"lost: message {first} to {last}: {reason}")
            case TakenBackView(messages):
                numbers = ", ".join(map(str, messages))
                self._beside(item, f"taken back: message {numbers}; what counts of it is said again")
            case EndedView(reason):
                self._ended(reason)
            case SubscribedView(number):
                self._began(number)
            case PieceView() | HeartbeatView():
                pass
            case _:
                assert_never(item)

    def _message(self, message: MessageView) -> None:
        if message.method == KEEPALIVE:
            return
        if self._saving is not None and message.size:
            path = self._saving(message)
            warn(f"saved message {message.message} as {path} ({size_text(message.size)})")
        self._shown(message, message_line(message, self._speakers))


def speakers(deed: DeedView) -> dict[str, str] | None:
    """Who may speak to all in a place, and as what; None: the host alone."""
    if not deed.cohosts:
        return None
    return {deed.host: "host", **{person: f"cohost {person[:10]}…" for person in deed.cohosts}}


def message_line(message: MessageView, speakers: Mapping[str, str] | None = None) -> str:
    """A message as people read it: its number, who said it, the method, the body or its size."""
    who = "" if message.nym is None else f" {message.nym[:10]}…"
    if message.nym is None and speakers is not None:
        who = " " + speakers.get(message.author, f"former host {message.author[:10]}…")
    if message.text is not None:
        # What follows a line break is indented, so that nobody can speak as another.
        words = paragraphs(message.text).replace("\n", "\n    ")
    else:
        words = f"({size_text(message.size)}; get it with: linnet place history --save {message.message})"
    given = " ".join(
        f"{each.operator}{plain(each.name)}={plain(each.text or '')}"
        for each in message.variables
        if each.text
    )
    return " ".join(part for part in (f"{message.message}{who}", plain(message.method), given, words) if part)


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
