"""Commands about the messages of a place: announce, talk, watch, read the history, and see who has one."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.moments import utc_text
from linnet.cli.options import Options, PatienceOption, TimeoutOption, with_examples
from linnet.cli.output import plain, say, say_json, size_text, warn
from linnet.cli.place.door import NOBODY
from linnet.cli.place.places import PlaceArgument, find_place
from linnet.cli.running_node import Session
from linnet.identity.text import device_text, person_text, topic_text

if TYPE_CHECKING:
    from linnet.node.client import ControlClient
    from linnet.places.commands import Announce, Announced

VariableOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--var", metavar="_NAME=VALUE", help="A variable of this message only; once for each."),
]
Prefix = Annotated[str, typer.Argument(metavar="[_NAME]", help="Objects whose names begin so.")]
At = Annotated[
    bool,
    typer.Option("--at", help="The one object that fits the whole name best: it, or a more general one."),
]


@with_examples(
    "linnet place look tea", "linnet place look tea _profile", "linnet place look tea --at _name_full"
)
def look(place: PlaceArgument, prefix: Prefix = "", at: At = False, *, session: Session) -> None:
    """Look at the objects of a place: from this node's own copy, so also when nobody can be reached."""
    from linnet.api.items import text_of
    from linnet.places.commands import Look

    with session.open_node() as node:
        reply = node.ask(Look(find_place(node, place), prefix, at))
    if session.as_json:
        say_json(reply)
        return
    for each in reply.objects:
        text = text_of(each.value)
        value = f"({size_text(len(each.value))})" if text is None else plain(text)
        say(f"{plain(each.name)}\t{value}")
    if not reply.objects:
        warn(f"there is nothing called {prefix}" if prefix else "there is nothing here yet")
        raise typer.Exit(ExitCode.FAILED if prefix else ExitCode.OK)


NUMBERS, LISTS = ("_amount", "_counter"), "_list"
"""Types of objects to which one can add and from which one can subtract, by their first keyword."""


def changes(given: Sequence[str] | None) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """Parse the objects to set, add to and subtract from, as they are typed.

    ``_topic=tea``, ``_list_guests+=bea``, ``_amount_cups-=2``
    """
    assigned = [each for each in given or () if each.partition("=")[0][-1:] not in ("+", "-")]
    found: dict[str, dict[str, str]] = {"+": {}, "-": {}}
    for each in given or ():
        name, _, value = each.partition("=")
        if name[-1:] in found:
            name, operator = name[:-1], name[-1:]
            operand, earlier = _operand(name, value, each), found[operator].get(name)
            found[operator][name] = operand if earlier is None else _both(earlier, operand)
    return values(assigned), found["+"], found["-"]


def _operand(name: str, value: str, typed: str) -> str:
    from linnet.places.channel.packet import covers

    if covers(LISTS, name):
        return value if value.startswith("|") else f"|{value}"
    if not any(covers(each, name) for each in NUMBERS):
        told = "is no list and no number: += and -= are for _list…, _amount… and _counter…"
        raise Failure(f"{typed[:80]!r} {told}", ExitCode.USAGE)
    if not value.removeprefix("-").isdecimal():
        raise Failure(f"{typed[:80]!r}: {value[:40]!r} is no whole number", ExitCode.USAGE)
    return value


def _both(one: str, other: str) -> str:
    """Combine two operands for one object."""
    return one + other if other.startswith("|") else str(int(one) + int(other))


def values(given: Sequence[str] | None) -> dict[str, str]:
    """Parse names and values as they are typed, ``_topic=tea``."""
    found: dict[str, str] = {}
    for each in given or ():
        name, sign, value = each.partition("=")
        if not sign or not name.startswith("_"):
            raise Failure(f"{each[:80]!r} is no _NAME=VALUE, such as _topic=tea", ExitCode.USAGE)
        found[name] = value
    return found


CHUNK_BYTES = 480 * 1024
"""Bytes of a file that are read and given to the node at once."""


@dataclass(frozen=True)
class Announcement(Options):
    """The contents of an announcement: a text or a file, and the objects that come with it."""

    text: Annotated[
        str | None, typer.Argument(metavar="[TEXT]", help="What to say; - reads it from standard input.")
    ] = None
    method: Annotated[str, typer.Option("--method", metavar="_NAME", help="What sort of message it is.")] = (
        "_message"
    )
    state: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="_NAME=VALUE",
            help="An object of the place; an empty value removes it. += and -= change lists and numbers.",
        ),
    ] = None
    variable: VariableOption = None
    file: Annotated[Path | None, typer.Option("--file", metavar="FILE", help="Send a file of any size.")] = (
        None
    )
    resume: Annotated[
        int | None,
        typer.Option("--resume", metavar="N", min=1, help="Go on with message N, which was interrupted."),
    ] = None
    reset: Annotated[bool, typer.Option("--reset", help="Objects that are not set here go.")] = False

    def check(self) -> None:
        """Raise `Failure` if there is nothing to announce, or both a text and a file."""
        if self.file is not None and self.text is not None:
            raise Failure("give a text or --file, one of them", ExitCode.USAGE)
        if self.resume is not None and self.file is None:
            raise Failure("--resume goes on with a file: name it with --file", ExitCode.USAGE)
        if self.text is None and self.file is None and not self.state and not self.reset:
            raise Failure("nothing to say: give a text, --set or --file", ExitCode.USAGE)


@with_examples(
    'linnet place announce tea "The kettle is on"',
    "linnet place announce tea --set _topic=cake --set _time=16:00",
    "linnet place announce tea --set _list_cakes+=scone --set _amount_cups-=2",
    "linnet place announce tea --file film.mp4",
    "linnet place announce tea --file film.mp4 --resume 17",
    "date | linnet place announce tea - --method _notice_time",
)
def announce(place: PlaceArgument, said: Announcement, session: Session) -> None:
    """Say something to all guests of a place, and decorate it with objects that everyone can look at.

    It is durable at the node when this returns. A file is sent while it is read, other messages in between.
    """
    from linnet.places.commands import Announce

    said.check()
    file = said.file
    (objects, added, taken), variables = changes(said.state), values(said.variable)
    if file is not None:
        variables = {"_file_name": file.name, **variables}
    body = b"" if file is not None else _body(said.text)
    with session.open_node() as node:
        command = Announce(
            find_place(node, place),
            said.method,
            body=body,
            reset=said.reset,
            more=file is not None,
            state=objects,
            added=added,
            taken=taken,
            variables=variables,
        )
        if file is None:
            reply = node.ask(command)
        else:
            reply = _send(node, command, file, said.resume, session.as_json)
    session.say(reply, f"message {reply.message} ({size_text(reply.size)})")


def _body(text: str | None) -> bytes:
    if text == "-":
        return sys.stdin.buffer.read()
    return (text or "").encode("utf-8", "surrogateescape")


def _send(node: ControlClient, command: Announce, file: Path, resume: int | None, quiet: bool) -> Announced:
    from linnet.cli.output import file_bar
    from linnet.places.commands import AnnounceMore

    place = command.place
    try:
        size, source = file.stat().st_size, file.open("rb")
    except OSError as error:
        raise Failure(f"{file}: {error.strerror or error}", ExitCode.USAGE) from error
    with source, file_bar(file.name, quiet) as progress:
        opened = node.ask(command if resume is None else AnnounceMore(place, resume))
        done = opened.size
        source.seek(done)
        try:
            while chunk := source.read(CHUNK_BYTES):
                done = node.ask(AnnounceMore(place, opened.message, chunk)).size
                progress(done, size)
            return node.ask(AnnounceMore(place, opened.message, more=False))
        except KeyboardInterrupt:
            raise Failure(
                f"message {opened.message} has {done} of {size} bytes; go on with: "
                f"linnet place announce {topic_text(place)[:14]} --file {file} --resume {opened.message}",
                ExitCode.INTERRUPTED,
            ) from None


@dataclass(frozen=True)
class Request(Options):
    """A message to the host, and how long to wait for its answer."""

    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="What to say; - reads it from standard input.")
    ] = "-"
    method: Annotated[str, typer.Option("--method", metavar="_NAME", help="What sort of request it is.")] = (
        "_request"
    )
    variable: VariableOption = None
    patience: PatienceOption = 20.0


@with_examples(
    'linnet place talk tea "One sugar, please"',
    "linnet place talk tea --method _request_tea --var _sugar=1 please",
)
def talk(place: PlaceArgument, said: Request, session: Session) -> None:
    """Say something to the host of a place, and to nobody else. Ends when the host's device has it."""
    from linnet.places.commands import TalkTo

    body, variables = _body(said.text), values(said.variable)
    with session.open_node() as node:
        found = find_place(node, place)
        reply = node.ask(TalkTo(found, said.method, (), body, said.patience, variables=variables))
    session.say(reply, f"told    {device_text(reply.voice)}")


@dataclass(frozen=True)
class WatchOptions(Options):
    """The messages to watch, how many, and where to save their bodies."""

    since: Annotated[
        int | None,
        typer.Option("--from", metavar="N", min=1, help="Begin with message N.", show_default="now"),
    ] = None
    count: Annotated[int | None, typer.Option("--count", metavar="N", min=1, help="End after N.")] = None
    name: Annotated[
        str | None,
        typer.Option(
            "--name", metavar="NAME", help="Durable: go on after the last message that was printed."
        ),
    ] = None
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            metavar="_NAME",
            help="Share the place with other programs: what no other one names more exactly; once for each.",
        ),
    ] = None
    objects: Annotated[
        str | None,
        typer.Option("--objects", metavar="_NAME", help="Changes of objects whose names begin so, too."),
    ] = None
    save_to: Annotated[
        Path | None, typer.Option("--save-to", metavar="DIR", help="Put each body into a file there.")
    ] = None
    timeout: TimeoutOption = None


@with_examples(
    "linnet place watch tea",
    "linnet place watch tea --from 1 --count 10",
    "linnet place watch tea --method _message --method _notice_time",
    "linnet place watch tea --objects _profile",
    "linnet place watch films --save-to ~/films --name films",
)
def watch(place: PlaceArgument, options: WatchOptions, session: Session) -> None:
    """Print what is said in a place, a message per line, until Ctrl-C or as many as asked for.

    At the host, messages from guests are included; people who knock are reported on standard error.
    """
    from linnet.api.places import INLINE_BYTES, ExaminePlace, ListenToPlace, MessageView
    from linnet.cli.place.printer import PlacePrinter, Saving, file_name, save_body, speakers

    name, save_to = options.name, options.save_to
    if save_to is not None and not save_to.is_dir():
        raise Failure(f"{save_to}: is no directory; make it first", ExitCode.USAGE)
    with session.open_node() as node, session.open_node() as other:
        found = find_place(node, place)
        saving: Saving | None = None
        if save_to is not None:

            def saving(message: MessageView) -> Path:
                return save_body(other, found, message, save_to / file_name(message), session.as_json)

        methods = None if options.method is None else tuple(options.method)
        largest = 0 if save_to is not None else INLINE_BYTES
        command = ListenToPlace(0, found, options.since, name, methods, options.objects, largest)
        said_by = speakers(other.ask(ExaminePlace(found)).place.deed)
        consumer = None if name is None else other
        printer = PlacePrinter(session.as_json, options.count, consumer, saving, said_by)
        printer.run(node.lines(command, manual=name is not None), options.timeout)


@dataclass(frozen=True)
class PastOptions(Options):
    """The past messages to print, or the body to save."""

    first: Annotated[
        int | None,
        typer.Option(
            "--first",
            metavar="N",
            min=1,
            help="The first message.",
            show_default="the first that is open to you",
        ),
    ] = None
    last: Annotated[
        int | None,
        typer.Option("--last", metavar="N", min=1, help="The last one.", show_default="the newest"),
    ] = None
    save: Annotated[
        int | None, typer.Option("--save", metavar="N", min=1, help="Put the body of message N into a file.")
    ] = None
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="FILE", help="Which.", show_default="as its sender called it"),
    ] = None


@with_examples(
    "linnet place history tea",
    "linnet place history tea --first 20 --last 40",
    "linnet place history films --save 17 --to film.mp4",
)
def history(place: PlaceArgument, past: PastOptions, session: Session) -> None:
    """Print past messages in order, then end. Missing messages are requested from others in the place.

    An interrupted file is continued where it ended; it has its name only when it is whole.
    """
    from linnet.api.places import ExaminePlace, ReadPlaceHistory
    from linnet.cli.place.printer import PlacePrinter, speakers

    if past.save is not None:
        _save_message(place, past.save, past.to, session)
        return
    if past.to is not None:
        raise Failure("--to names the file of one message: say which with --save N", ExitCode.USAGE)
    with session.open_node() as node:
        found = find_place(node, place)
        said_by = speakers(node.ask(ExaminePlace(found)).place.deed)
        items = node.lines(ReadPlaceHistory(0, found, past.first, past.last))
        PlacePrinter(session.as_json, speakers=said_by).run(items)


def _save_message(place: str, number: int, to: Path | None, session: Session) -> None:
    """Save the body of one message in a file."""
    from linnet.api.places import MessageView, ReadPlaceHistory
    from linnet.cli.place.printer import file_name, save_body

    with session.open_node() as node:
        found = find_place(node, place)
        items = list(node.lines(ReadPlaceHistory(0, found, number, number, 0)))
        message = next((item for item in items if isinstance(item, MessageView)), None)
        if message is None:
            raise Failure(f"there is no message {number} to be had; look at: linnet place history {place}")
        path = save_body(node, found, message, to or Path(file_name(message)), session.as_json)
    result = {"path": str(path), "size": message.size, "message": number}
    session.say(result, f"saved   {path} ({size_text(message.size)})")


Number = Annotated[
    int | None,
    typer.Argument(min=1, help="Its number; the last one if left out.", show_default=False),
]


@with_examples(
    "linnet place receipts tea",
    "linnet place receipts tea 12",
    "linnet place receipts tea --json | jq '[.receipts[] | select(.state == \"pending\")] | length'",
)
def receipts(place: PlaceArgument, message: Number = None, *, session: Session) -> None:
    """Show which guests have a message, by their signed receipts: delivered, pending, or closed to them.

    Guests give receipts every few seconds; for the host and its co-hosts.
    """
    from linnet.api.places import ExaminePlace
    from linnet.places.commands import ListReceipts

    with session.open_node() as node:
        found = find_place(node, place)
        number = message or node.ask(ExaminePlace(found)).place.message
        reply = node.ask(ListReceipts(found, number)) if number > 0 else None
    if reply is None:
        say("nothing was said there yet")
        return
    rows = [(person_text(each.nym), each.state, _when(each.at_ms)) for each in reply.receipts]
    session.say_table(reply, ("person", f"message {reply.message}", "receipt given"), rows, NOBODY)


def _when(at_ms: int | None) -> str:
    return "-" if at_ms is None else utc_text(at_ms / 1000)
