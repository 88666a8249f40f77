"""Prints the items of a place: messages to standard output, all else to standard error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from linnet.api.items import EndedView, HeartbeatView, SubscribedView
from linnet.api.places import (
    ChangedView,
    KnockedView,
    LostView,
    MessageView,
    PieceView,
    PlaceItemView,
    SaidView,
    TakenBackView,
)
from linnet.cli.exits import Failure
from linnet.cli.output import paragraphs, plain, size_text, warn
from linnet.cli.printers import Consumer, ItemPrinter
from linnet.core.reasons import Reason
from linnet.identity.text import person_text

if TYPE_CHECKING:
    from linnet.core.ids import TopicId
    from linnet.node.client import ControlClient
    from linnet.places.deed import Deed

KEEPALIVE = "_notice_keepalive"
"""The method of messages by which hosts only show that they are there; not printed."""

Saving = Callable[[MessageView], Path]
"""Saves the body of a message in a file."""


class PlacePrinter(ItemPrinter[PlaceItemView]):
    """Prints messages, and saves their bodies if requested."""

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
        """See `ItemPrinter`. `speakers`: the people who speak to all, if there are several."""
        super().__init__(as_json, count, consumer)
        self._saving = saving
        self._speakers = speakers

    def _print(self, item: PlaceItemView) -> None:
        match item:
            case MessageView():
                self._message(item)
            case KnockedView(person=person, text=text):
                words = f": {plain(text)}" if text else ""
                self._beside(item, f"{person} knocks{words}; answer with linnet place admit or reject")
            case ChangedView(name=name, value=value, text=text):
                self._shown(
                    item, f"{plain(name)}\t{'' if value is None else plain(text or size_text(len(value)))}"
                )
            case LostView(_, first, last, reason):
                if reason != Reason.NOT_ALLOWED:
                    self._lost += last - first + 1
                self._beside(item, f"lost: message {first} to {last}: {reason}")
            case TakenBackView(_, messages):
                numbers = ", ".join(map(str, messages))
                self._beside(item, f"taken back: message {numbers}; what counts of it is said again")
            case EndedView(reason):
                self._ended(reason)
            case SubscribedView(number):
                self._began(number)
            case SaidView() | PieceView() | HeartbeatView():
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


def speakers(deed: Deed) -> dict[str, str] | None:
    """Return who may speak to all in a place, and in which role; None: the host alone."""
    if not deed.cohosts:
        return None
    cohosts = map(person_text, deed.cohosts)
    return {person_text(deed.host): "host", **{person: f"cohost {person[:10]}…" for person in cohosts}}


def message_line(message: MessageView, speakers: Mapping[str, str] | None = None) -> str:
    """Return a message as a line for people: its number, its author, the method, the body or its size."""
    who = "" if message.nym is None else f" {message.nym[:10]}…"
    if message.nym is None and speakers is not None:
        who = " " + speakers.get(message.author, f"former host {message.author[:10]}…")
    if message.text is not None:
        # Lines after the first are indented, so that nobody can write in another's name.
        words = paragraphs(message.text).replace("\n", "\n    ")
    else:
        words = f"({size_text(message.size)}; get it with: linnet place history --save {message.message})"
    given = " ".join(
        f"{each.operator}{plain(each.name)}={plain(each.text or '')}"
        for each in message.variables
        if each.text
    )
    return " ".join(part for part in (f"{message.message}{who}", plain(message.method), given, words) if part)


def save_body(node: ControlClient, place: TopicId, message: MessageView, target: Path, quiet: bool) -> Path:
    """Save the body of a message in a file, continuing an interrupted try."""
    from linnet.api.places import ReadBody
    from linnet.cli.output import file_bar
    from linnet.node.file_transfer import PartFile

    file = PartFile(target, message.size)
    with file, file_bar(target.name, quiet) as progress:
        for item in node.lines(ReadBody(0, place, message.message, file.done)):
            if isinstance(item, LostView):
                raise Failure(f"message {message.message} cannot be had whole any more: {item.reason}")
            if isinstance(item, PieceView):
                file.add(item.data)
                progress(file.done, message.size)
    return target


def file_name(message: MessageView) -> str:
    """Return a file name for the body of a message: the sender's, but confined to one directory."""
    given = next((each.text for each in message.variables if each.name == "_file_name"), None)
    name = Path(given or "").name
    safe = "".join(letter for letter in name if letter.isprintable())
    return f"{message.message}-{safe}" if safe.strip(". ") else f"{message.message}"
