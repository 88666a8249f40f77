"""Commands of a stream's owner: who may publish, who may read, how its nodes are linked."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.exits import Failure
from linnet.cli.moments import clock_text
from linnet.cli.options import Options, StreamArgument, with_examples
from linnet.cli.output import counted, plain, say, say_json, say_table, warn
from linnet.cli.running_node import Session
from linnet.identity.text import person_text

if TYPE_CHECKING:
    from linnet.streams.commands import DisallowReader, ReadersAre


@dataclass(frozen=True)
class PolicyOptions(Options):
    """The options of a stream's policy."""

    publisher: Annotated[
        list[str] | None,
        typer.Option(
            "--publisher", metavar="PERSON", help="May publish besides you; once for each. Default: everyone."
        ),
    ] = None
    only_me: Annotated[bool, typer.Option("--only-me", help="Nobody but you may publish.")] = False
    sealed: Annotated[
        bool,
        typer.Option(
            "--sealed", help="Only readers whom you admit can read it; for good. Implies --only-me."
        ),
    ] = False
    degree: Annotated[int | None, typer.Option("--degree", min=2, max=64, help="Neighbours of a node.")] = (
        None
    )
    near: Annotated[bool, typer.Option("--near", help="Choose half of the neighbours near by.")] = False
    tracker: Annotated[
        list[str] | None,
        typer.Option(
            "--tracker", metavar="KEY@HOST:PORT", help="The stream's own tracker, then its standbys."
        ),
    ] = None
    storage: Annotated[
        list[str] | None,
        typer.Option(
            "--storage",
            metavar="KEY@HOST:PORT",
            help="Keeps the stream; once for each. Others that offer to are not asked, and do not count.",
        ),
    ] = None


@with_examples(
    "linnet declare me/news --only-me",
    "linnet declare me/news --publisher lp1… --publisher lp1…",
    "linnet declare me/ticker --degree 6 --near",
    "linnet declare me/log --storage ld1…@192.0.2.7:7700 --storage ld1…@192.0.2.8:7700",
    "linnet declare me/diary --sealed",
)
def declare(stream: StreamArgument, options: PolicyOptions, session: Session) -> None:
    """Set the policy of a stream of your own, me/NAME: who may publish in it, and how its nodes are linked.

    You sign the policy, and every node enforces it. Each declaration replaces the one before. A sealed stream
    stays sealed: only this device publishes in it, and linnet stream allow admits readers.
    """
    from linnet.identity.addresses import parse_contact, parse_person
    from linnet.streams.commands import Declare, Policy

    name = session.stream_name(stream)
    named = tuple(map(parse_person, options.publisher or ()))
    allowed = named if options.publisher or options.only_me or options.sealed else None
    trackers = tuple(map(parse_contact, options.tracker or ()))
    storage = tuple(map(parse_contact, options.storage or ()))
    policy = Policy(allowed, options.degree, options.near, trackers, storage=storage)
    reply = session.ask(Declare(name, policy, options.sealed))
    who = "everyone may publish" if allowed is None else f"you and {len(allowed)} others may publish"
    if options.sealed:
        who = "sealed; only this device publishes, and whom you let in reads: linnet stream allow"
    session.say(reply, f"declared {name}: {who}")


class Choice(StrEnum):
    """The overlays that a stream can have."""

    RING = "ring"
    TRACKER = "tracker"
    DEFAULT = "default"


Wanted = Annotated[
    Choice,
    typer.Argument(
        metavar="ring|tracker|default",
        help="ring: nodes find each other, without trackers; default: what linnet.toml says.",
    ),
]


@with_examples(
    "linnet stream overlay weather ring",
    "linnet stream overlay weather tracker",
    "linnet stream overlay weather default",
)
def overlay(stream: StreamArgument, wanted: Wanted, session: Session) -> None:
    """Switch a stream to another overlay at this node, without losing events; kept over restarts.

    The stream stays in the old overlay for ten minutes after it has neighbours in the new one. All its nodes
    have to switch within that time: those that do not are left behind in the old one.
    """
    from linnet.overlay.config import Overlay
    from linnet.streams.commands import SwitchOverlay

    name = session.stream_name(stream)
    chosen = None if wanted is Choice.DEFAULT else Overlay(wanted.value)
    reply = session.ask(SwitchOverlay(name, chosen))
    if reply.overlay is reply.before:
        session.say(reply, f"{name} stays with overlay {reply.overlay}")
    else:
        session.say(reply, f"{name} changes over from overlay {reply.before} to {reply.overlay}")


@with_examples("linnet stream check weather", "linnet stream check weather --json | jq .checks")
def check(stream: StreamArgument, session: Session) -> None:
    """Have the storage nodes of a stream show what they have confirmed of your events.

    Each is asked for two events: the last that it has confirmed, and one by chance. Exits 1 unless at least
    one shows both. A node that signed what is not true counts no more; one that says why it no longer has an
    event (retention, quota, damage) is not proved wrong by that.
    """
    from linnet.cli.status import check_text
    from linnet.streams.commands import CheckStorage, StorageOutcome

    name = session.stream_name(stream)
    reply = session.ask(CheckStorage(name))
    if session.as_json:
        say_json(reply)
    else:
        for each in reply.checks:
            say(check_text(each))
    if not any(each.outcome is StorageOutcome.KEPT for each in reply.checks):
        known = "none showed what it has confirmed" if reply.checks else "no storage node is known"
        raise Failure(f"{name}: {known}; look at: linnet status")


@with_examples(
    "linnet stream request lp1…/news",
    "linnet stream request lp1…/news | mail -s 'let me in' owner@example.org",
)
def request(stream: StreamArgument, session: Session) -> None:
    """Print a line by which this device asks the owner of a sealed stream to be admitted.

    Send the line to the owner by any means: it holds no secret, but the owner should know that it comes from
    you. It is good for four weeks and for one admission.
    """
    from linnet.streams.commands import AskToRead

    name = session.stream_name(stream)
    reply = session.ask(AskToRead(name))
    session.say(reply, reply.line)
    if not session.as_json:
        own = f"me/{name.partition('/')[2]}"
        warn(f"hand this line to the owner, who types: linnet stream allow {own} LINE")


Line = Annotated[
    str,
    typer.Argument(
        metavar="LINE", help="What linnet stream request printed there; - reads it from standard input."
    ),
]
FromNow = Annotated[
    bool, typer.Option("--from-now", help="It reads no earlier event: a new key is made first.")
]


@with_examples(
    "linnet stream allow me/diary lr1…",
    "linnet stream allow me/diary lr1… --from-now",
    "pbpaste | linnet stream allow me/diary -",
)
def allow(stream: StreamArgument, line: Line, from_now: FromNow = False, *, session: Session) -> None:
    """Let the device that made this line read a sealed stream of yours.

    It reads what is published from now on, and what was published since the present key was made: a day at
    most, or nothing with --from-now. Make sure that the line comes from the person whom you mean.
    """
    from linnet.streams.commands import AllowReader

    name = session.stream_name(stream)
    given = sys.stdin.read() if line == "-" else line
    reply = session.ask(AllowReader(name, given, from_now))
    session.say(reply, _change_lines("let in", name, reply))


def _change_lines(done: str, stream: str, reply: ReadersAre) -> Iterator[str]:
    for reader in reply.changed:
        name = plain(reader.label) or "a device"
        yield f"{done} {name} ({reader.device.hex()}) of {person_text(reader.person)}"
    yield f"{counted(len(reply.readers), 'device')} may read {stream}"


_SHORT_CHARS = 16
Who = Annotated[
    str,
    typer.Argument(
        metavar="PERSON|DEVICE",
        help="lp1… for all devices of a person; ld1… or the 16 letters that linnet stream readers shows.",
    ),
]


@with_examples(
    "linnet stream disallow me/diary lp1…",
    "linnet stream disallow me/diary 5268357e181c9bc5",
    "linnet stream readers me/diary",
)
def disallow(stream: StreamArgument, who: Who, session: Session) -> None:
    """Remove a person or a device from the readers of a sealed stream of yours.

    What is published from now on has a new key, which they do not get. What they could read before they can
    still read.
    """
    name = session.stream_name(stream)
    reply = session.ask(read_disallowed(name, who))
    session.say(reply, _change_lines("put out", name, reply))


def read_disallowed(stream: str, who: str) -> DisallowReader:
    """Return the command that removes the person or device; raises `BadText` if the text is neither."""
    from linnet.core.ids import DeviceId
    from linnet.identity.addresses import parse_person
    from linnet.identity.keys import device_id
    from linnet.identity.text import Sort, from_text
    from linnet.streams.commands import DisallowReader

    given = who.strip().lower()
    if len(given) == _SHORT_CHARS and all(letter in "0123456789abcdef" for letter in given):
        return DisallowReader(stream, device=DeviceId(bytes.fromhex(given)))
    if given.startswith(Sort.DEVICE):
        return DisallowReader(stream, device=device_id(from_text(Sort.DEVICE, given)))
    return DisallowReader(stream, person=parse_person(given))


READER_COLUMNS = ("name", "device", "let in", "from key ", "person")


@with_examples(
    "linnet stream readers me/diary", "linnet stream readers me/diary --json | jq '.readers[].label'"
)
def readers(stream: StreamArgument, session: Session) -> None:
    """List the devices that may read a stream that this device seals."""
    from linnet.streams.commands import ListReaders

    name = session.stream_name(stream)
    reply = session.ask(ListReaders(name))
    session.say(reply, heading(name, reply))
    if reply.readers and not session.as_json:
        say("")
        say_table(READER_COLUMNS, reader_rows(reply))


def heading(stream: str, reply: ReadersAre) -> str:
    """Describe the key of a sealed stream in a line."""
    if reply.since is None:
        return f"{stream} is sealed; nothing was said and nobody let in yet"
    return f"{stream} is sealed; its key is number {reply.epoch}, made {clock_text(reply.since)}"


def reader_rows(reply: ReadersAre) -> list[tuple[object, ...]]:
    """Return the readers as rows of a table."""
    return [
        (
            plain(reader.label) or None,
            reader.device.hex(),
            clock_text(reader.at),
            reader.since,
            person_text(reader.person),
        )
        for reader in reply.readers
    ]
