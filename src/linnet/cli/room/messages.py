"""Commands about the messages of a room: send, read, redact, share with newcomers; and files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.moments import parse_since, wall_clock
from linnet.cli.options import (
    CountOption,
    DurableOption,
    FromOption,
    LimitOption,
    LinesOption,
    Options,
    PatienceOption,
    TextArgument,
    TimeoutOption,
    with_examples,
)
from linnet.cli.output import counted, say, say_json, size_text
from linnet.cli.room.arguments import (
    EventArgument,
    ReasonOption,
    RoomArgument,
    StateOption,
    event_id,
    find_event,
    find_room,
)
from linnet.cli.running_node import Session
from linnet.cli.status import warn_of_clock
from linnet.identity.text import event_text

if TYPE_CHECKING:
    from linnet.node.client import ControlClient
    from linnet.rooms.commands import RoomStatus, Sent


def say_sent(reply: Sent, words: str, session: Session) -> None:
    """Print the result, and where the event was sent at once."""
    session.say(reply, (words, f"sent to {went_to(reply.neighbors, len(reply.relays))}"))


def went_to(neighbors: int, at_relays: int) -> str:
    """Say where an event was sent at once."""
    members = counted(neighbors, "member") + " online" if neighbors else ""
    relays = counted(at_relays, "relay") if at_relays else ""
    if not members and not relays:
        return "nobody yet: it goes out when a member or relay appears"
    return " and ".join(filter(None, (members, relays)))


Deadline = Annotated[
    float | None,
    typer.Option(
        "--deadline",
        metavar="SECONDS",
        min=0.001,
        help="Report to readers of the room here at whom it has not arrived by then.",
    ),
]


@with_examples(
    'linnet room send tea "Did it arrive?"',
    "linnet room send tea --deadline 60 hello",
    "tail -f log | linnet room send ops - --lines",
)
def send(
    room: RoomArgument,
    text: TextArgument = "-",
    lines: LinesOption = False,
    deadline: Deadline = None,
    *,
    session: Session,
) -> None:
    """Send a text, or all of standard input, to a room.

    It is durable at the node when this returns. See which members it has reached with: linnet room ledger
    """
    from linnet.cli.stream.events import read_batches
    from linnet.rooms.commands import SendToRoom

    batches = read_batches(text, lines)
    said = 0
    reply: Sent | None = None
    with session.open_node() as node:
        found = find_room(node, room).room
        for bodies in batches:
            reply = node.ask(SendToRoom(found, tuple(bodies), deadline=deadline))
            said += len(reply.ids)
            if session.as_json:
                say_json(reply)
    if session.as_json:
        return
    if reply is None:
        say("nothing to send: standard input was empty")
        return
    last = event_text(reply.ids[-1])
    words = f"event   {last}" if said == 1 else f"events  {said}, the last is {last}"
    say_sent(reply, words, session)


@dataclass(frozen=True)
class ReadOptions(Options):
    """From when on a room is read, for how long, and by which subscription."""

    since: FromOption = "now"
    count: CountOption = None
    name: DurableOption = None
    state: StateOption = True
    timeout: TimeoutOption = None


@with_examples(
    "linnet room read tea",
    "linnet room read tea --from beginning --count 10",
    "linnet room read tea --name archiver --no-state >> tea.txt",
    "linnet room read tea --from 15m --json | jq -r .text",
)
def read(room: RoomArgument, options: ReadOptions, session: Session) -> None:
    """Print the events of a room, one per line, until Ctrl-C or until there are enough.

    Your own events are among them. A deadline that has passed is reported on standard error. A question mark
    behind a time says that it is doubtful: it was ahead of this node's clock when the event came, or is
    before that of an event that it follows, by more than five minutes.
    """
    from linnet.api.rooms import ListMembers
    from linnet.cli.printers import EventPrinter
    from linnet.cli.room.words import Names, event_line
    from linnet.rooms.commands import ReadRoom

    begin = parse_since(options.since, wall_clock())
    is_durable = options.name is not None
    with session.open_node() as node, session.open_node() as consumer:
        warn_of_clock(node)
        found = find_room(node, room).room
        names = Names(() if session.as_json else node.ask(ListMembers(found)).members)
        command = ReadRoom(0, found, begin, options.name, state=options.state)
        printer = EventPrinter(session.as_json, options.count, consumer if is_durable else None)
        printer.line = lambda event: event_line(event, names)
        printer.run(node.lines(command, manual=is_durable), options.timeout)


@with_examples(
    "linnet room history tea",
    "linnet room history tea --from 2h --limit 100",
    "linnet room history tea --json > tea.jsonl",
)
def history(
    room: RoomArgument,
    since: FromOption = "beginning",
    limit: LimitOption = None,
    state: StateOption = True,
    *,
    session: Session,
) -> None:
    """Print what this node keeps of a room, then end.

    The order is the same for everyone who keeps the same events: an event comes after those that its author
    knew, and otherwise the authors' times decide. An event that arrived later than those below it has a
    mark, ↥. A question mark behind a time says that it is doubtful; see linnet room read --help.
    """
    from linnet.api.rooms import ListMembers
    from linnet.cli.printers import HistoryPrinter
    from linnet.cli.room.words import Names, event_line
    from linnet.rooms.commands import ReadRoom

    moment = wall_clock()
    begin = parse_since(since, moment)
    with session.open_node() as node:
        warn_of_clock(node)
        found = find_room(node, room).room
        names = Names(() if session.as_json else node.ask(ListMembers(found)).members)
        begin = moment if begin is None else begin
        items = node.lines(ReadRoom(0, found, begin, live=False, state=state))
        printer = HistoryPrinter(session.as_json, limit)
        printer.line = lambda event: event_line(event, names)
        printer.run(items)


@with_examples("linnet room redact tea le1…", "linnet room redact tea le1abcdefgh --reason typo")
def redact(
    room: RoomArgument, event: EventArgument, reason: ReasonOption = None, *, session: Session
) -> None:
    """Redact an event: your own, or with enough power that of another.

    Nodes no longer show it. Whoever has read it has read it.
    """
    from linnet.rooms.commands import Redact

    with session.open_node() as node:
        found = find_room(node, room).room
        which = event_id(node, found, event)
        reply = node.ask(Redact(found, which, reason))
    say_sent(reply, f"taken back: {event_text(which)}", session)


Last = Annotated[
    int | None, typer.Option("--last", metavar="N", min=1, max=1_000_000, help="Only the N newest.")
]


@with_examples("linnet room share tea", "linnet room share tea --last 100")
def share(room: RoomArgument, last: Last = None, *, session: Session) -> None:
    """Show the messages that you could read before to everyone who is in an encrypted room now.

    This works only in rooms that were created with --history shared. It cannot be undone.
    """
    from linnet.rooms.commands import ShareHistory

    with session.open_node() as node:
        reply = node.ask(ShareHistory(find_room(node, room).room, last))
    told = "what was said before is shown to the room" if reply.ids else "there is nothing to show yet"
    say_sent(reply, told, session)


Files = Annotated[list[Path], typer.Argument(metavar="FILE...", help="The files.")]


@with_examples("linnet room attach tea cake.jpg", "linnet room attach tea *.pdf")
def attach(room: RoomArgument, files: Files, session: Session) -> None:
    """Attach files to a room. Their pieces are kept here and offered to the room's relays.

    In an encrypted room relays cannot read them.
    """
    with session.open_node() as node:
        found = find_room(node, room)
        for path in files:
            reply, size = _attach(node, found, path, session.as_json)
            where = went_to(reply.neighbors, len(reply.relays))
            sent = f"sent to {where}: {path.name} ({size_text(size)})"
            session.say(reply, (f"event   {event_text(reply.ids[0])}", sent))


def _attach(node: ControlClient, room: RoomStatus, path: Path, quiet: bool) -> tuple[Sent, int]:
    from linnet.cli.output import file_bar
    from linnet.node.file_transfer import OutgoingFile
    from linnet.rooms.attachments import Piece, attachment_body
    from linnet.rooms.commands import KeepChunk, SendToRoom
    from linnet.rooms.event_types import ATTACHMENT

    with OutgoingFile(path, room.encrypted) as file, file_bar(path.name, quiet) as progress:
        done = 0
        while isinstance(step := file.step(), Piece):
            node.ask(KeepChunk(room.room, step.digest, step.data))
            done = min(file.size, done + len(step.data))
            progress(done, file.size)
        return node.ask(SendToRoom(room.room, (attachment_body(step),), ATTACHMENT)), file.size


@dataclass(frozen=True)
class FetchOptions(Options):
    """The options of fetching a file."""

    to: Annotated[Path, typer.Option("--to", metavar="DIR", help="Where to put it.", show_default="here")] = (
        Path(".")
    )
    name: Annotated[str | None, typer.Option("--as", metavar="NAME", help="What to call it.")] = None
    patience: PatienceOption = 20.0


@with_examples("linnet room fetch tea le1…", "linnet room fetch tea le1abcdefgh --to ~/Downloads")
def fetch(room: RoomArgument, event: EventArgument, options: FetchOptions, session: Session) -> None:
    """Fetch the file of an attachment from this node, members or relays, and check each piece.

    Nothing is overwritten, and a file gets its name only when it is whole.
    """
    from linnet.cli.output import file_bar
    from linnet.node.file_transfer import IncomingFile
    from linnet.rooms.attachments import attachment_of
    from linnet.rooms.commands import FetchChunk
    from linnet.rooms.event_types import ATTACHMENT

    if options.name is not None and Path(options.name).name != options.name:
        raise Failure(f"{options.name!r} is no name of a file; --to says where to put it", ExitCode.USAGE)
    with session.open_node() as node:
        found = find_room(node, room).room
        shared = find_event(node, found, event)
        if shared.kind != ATTACHMENT:
            raise Failure(f"{shared.id} is no attachment but a {shared.kind}", ExitCode.USAGE)
        attachment = attachment_of(shared.body)
        with (
            IncomingFile(attachment, options.to, options.name) as file,
            file_bar(file.path.name, session.as_json) as progress,
        ):
            while (digest := file.wanted) is not None:
                file.give(digest, node.ask(FetchChunk(found, digest, options.patience)).data)
                progress(file.done, attachment.size)
            path = file.finish()
    session.say(
        {"path": str(path), "size": attachment.size, "media": attachment.media},
        f"fetched {path} ({size_text(attachment.size)})",
    )
