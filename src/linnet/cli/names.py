"""``linnet name``: resolution of addresses, your petnames, and the records of your zone."""

from __future__ import annotations

import getpass
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.moments import clock_text, parse_duration
from linnet.cli.options import Options, with_examples
from linnet.cli.output import counted, plain, say, say_json, say_table, warn
from linnet.cli.running_node import Session
from linnet.core.errors import BadText
from linnet.identity.text import Sort, from_text, person_text, topic_text

if TYPE_CHECKING:
    from linnet.core.ids import AuthorId, Contact, TopicId
    from linnet.names.commands import NameStatus, NotResolved, Published, Resolved, Step
    from linnet.node.client import ControlClient

LabelArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="LABEL", help="A label of your zone, such as music; + is where you are contacted."
    ),
]
AddressArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="ADDRESS", help="Such as music.alice, music.alice.bob, lp1… or music.lp1…; .gnu may follow."
    ),
]
_STANDARD_INPUT = Path("-")
_MOST = 4096


@dataclass(frozen=True)
class PasswordOptions(Options):
    """The source of a password: a hidden prompt or a file, but never an argument that others could see."""

    password: Annotated[
        bool, typer.Option("--password", help="The label has a password; it is asked for, and not shown.")
    ] = False
    password_file: Annotated[
        Path | None,
        typer.Option(
            "--password-file", metavar="FILE", help="Its first line is the password; - reads standard input."
        ),
    ] = None

    def read(self, twice: bool = False) -> str | None:
        """Return the given password; None if none was given. A new one is typed twice."""
        if self.password_file is not None:
            return _first_line(self.password_file)
        if not self.password:
            return None
        if not sys.stdin.isatty():
            raise Failure(
                "there is no terminal to ask for the password at: give it by --password-file FILE",
                ExitCode.USAGE,
            )
        password = getpass.getpass("password: ")
        if twice and getpass.getpass("again: ") != password:
            raise Failure("these are two passwords; nothing was done", ExitCode.USAGE)
        return _checked(password)


def _first_line(file: Path) -> str:
    try:
        text = sys.stdin.read(_MOST) if file == _STANDARD_INPUT else file.read_text()[:_MOST]
    except (OSError, UnicodeDecodeError) as error:
        # The error of failed decoding would repeat a part of it.
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise Failure(f"{file}: cannot be read: {why}", ExitCode.USAGE) from None
    return _checked(text.splitlines()[0] if text else "")


def _checked(password: str) -> str:
    if not password:
        raise Failure("the password is empty", ExitCode.USAGE)
    return password


HINTS = {
    "unknown": "look at its spelling; if it has a password, add --password",
    "unanswered": "no node that keeps records has a link to yours: name one under [names] stores",
    "expired": "ask whoever published it to do so again",
    "removed": "ask whoever published it where it is now",
    "forged": "somebody else put records under this name; ask its owner to publish it again",
    "replayed": "somebody shows you old records; try again with other nodes, or ask its owner",
    "looping": "somebody on this path delegates back to it; use a shorter address",
    "too_deep": "use a shorter address",
    "not_a_zone": "leave out what stands before that label",
}
"""Advice for each fault."""


def path_lines(reply: Resolved | NotResolved) -> list[str]:
    """Return a line for each step of the path of trust: what it leads to, and by whose record."""
    lines: list[str] = []
    known = ""
    for step in reply.path:
        line, known = _step_line(step, known)
        lines.append(line)
    return lines


def fault_text(reply: NotResolved) -> str:
    """Say why an address leads nowhere, and what to do about it."""
    words = f"{plain(reply.address)}: {reply.fault.replace('_', ' ')}: {plain(reply.detail)}"
    return f"{words}; {HINTS[reply.fault]}"


def leads_to_text(name: NameStatus) -> str:
    """Say what a label of this node's zone leads to."""
    if name.removed:
        return "removed"
    parts = [] if name.place is None else [topic_text(name.place)]
    return " and ".join([*parts, *([] if name.zone is None else [f"the zone of {person_text(name.zone)}"])])


def _step_line(step: Step, known: str) -> tuple[str, str]:
    """Return the line of a step, and the address of what it leads to."""
    whose = "" if step.zone is None else person_text(step.zone)
    match step.via:
        case "petname":
            return f"{step.name}: you call {whose} so", step.name
        case "key":
            return f"{whose}: you gave this key", f"{whose[:10]}…"
        case "own":
            return f"{whose}: your own zone", ""
    now = f"{step.name}.{known}" if known else step.name
    who = f"{known} says that" if known else "you say that"
    what = f"it is the zone of {whose}" if step.place is None else f"it is the place {topic_text(step.place)}"
    until = "" if step.expires is None else f", until {clock_text(step.expires)}"
    return f"{now}: {who} {what}{until}", now


@with_examples(
    "linnet name resolve music.alice",
    "linnet name resolve music.alice.bob --json | jq -r .place",
    "linnet name resolve club.alice --password",
    "linnet name resolve lp1…",
)
def resolve(address: AddressArgument, secret: PasswordOptions, session: Session) -> None:
    """Print the place that an address leads to, where it is entered, and on whose word each step rests.

    An address is read from the right: first the person whom you call so, then one label after the other. What
    was found before is used while nobody can be asked.
    """
    from linnet.api.name_commands import LookUpAddress
    from linnet.identity.addresses import contact_text
    from linnet.names.commands import NotResolved, Resolved

    reply = session.ask(LookUpAddress(address, secret.read()))
    if session.as_json:
        say_json(reply, Resolved | NotResolved)
        if isinstance(reply, NotResolved):
            raise typer.Exit(ExitCode.FAILED)
        return
    if isinstance(reply, NotResolved):
        for line in path_lines(reply):
            warn(line)
        raise Failure(fault_text(reply))
    entries = [f"enter at {contact_text(contact)}" for contact in reply.contacts]
    for line in (topic_text(reply.place), *entries, *path_lines(reply)):
        say(line)


Name = Annotated[str, typer.Argument(metavar="NAME", help="What you call them.")]
Person = Annotated[
    str, typer.Argument(metavar="PERSON", help="Their person id, lp1…; linnet status shows it.")
]


@with_examples("linnet name petname set alice lp1…")
def set_petname(name: Name, person: Person, session: Session) -> None:
    """Call a person by this name: addresses may end with it. Make sure that the id is theirs."""
    from linnet.identity.addresses import parse_person
    from linnet.names.address import read_name
    from linnet.names.commands import SetPetname

    whom = parse_person(person)
    reply = session.ask(SetPetname(read_name(name), whom))
    names = " or ".join(each.name for each in reply.petnames if each.person == whom)
    session.say(reply, f"you call {person_text(whom)} {names}")


@with_examples("linnet name petname list", "linnet name petname list --json | jq '.petnames[].name'")
def list_petnames(session: Session) -> None:
    """List the people to whom you gave a name."""
    from linnet.names.commands import ListPetnames

    reply = session.ask(ListPetnames())
    rows = [(each.name, person_text(each.person)) for each in reply.petnames]
    otherwise = "you know nobody by a name; linnet name petname set NAME PERSON changes that"
    session.say_table(reply, ("name", "person"), rows, otherwise)


@with_examples("linnet name petname remove alice")
def remove_petname(name: Name, session: Session) -> None:
    """Stop calling anybody by this name."""
    from linnet.names.address import read_name
    from linnet.names.commands import RemovePetname

    session.say(session.ask(RemovePetname(read_name(name))), f"you call nobody {name} any more")


@dataclass(frozen=True)
class RecordOptions(Options):
    """The contents of a record, and how long it is valid."""

    place: Annotated[
        str | None,
        typer.Option(
            "--place",
            metavar="PLACE",
            help="The place: its id lt1…, or a beginning of it, or an address that leads to it already.",
        ),
    ] = None
    at: Annotated[
        list[str] | None,
        typer.Option(
            "--at",
            metavar="KEY@HOST:PORT",
            help="A peer at which it is entered; once for each. Default: this node.",
        ),
    ] = None
    zone: Annotated[
        str | None,
        typer.Option("--zone", metavar="PERSON", help="Whose zone goes on from here: a petname, or lp1…."),
    ] = None
    lasts: Annotated[
        str | None,
        typer.Option(
            "--lasts", metavar="TIME", help="How long it is good: 2h, 7d.", show_default="as configured"
        ),
    ] = None
    once: Annotated[
        bool, typer.Option("--once", help="Let it end; otherwise it is renewed while the node runs.")
    ] = False


@with_examples(
    "linnet name publish music --place lt1…",
    "linnet name publish + --place lt1… --at ld1…@192.0.2.7:7700",
    "linnet name publish alice --zone alice",
    "linnet name publish club --place lt1… --password --lasts 7d --once",
)
def publish(label: LabelArgument, options: RecordOptions, secret: PasswordOptions, session: Session) -> None:
    """Publish under a label of your zone where a place is (--place), whose zone goes on (--zone), or both.

    Nodes that keep the record can read neither the label nor what it leads to. With a password, only those
    who know it can look the label up at all.
    """
    from linnet.api.name_commands import PublishLabel
    from linnet.identity.addresses import parse_contact

    if options.place is None and options.zone is None:
        raise Failure("say what it leads to: --place PLACE or --zone PERSON", ExitCode.USAGE)
    if options.at and options.place is None:
        raise Failure("--at needs --place: one enters places, not zones", ExitCode.USAGE)
    lifetime = None if options.lasts is None else parse_duration(options.lasts)
    password = secret.read(twice=True)
    with session.open_node() as node:
        place, contacts = (None, ()) if options.place is None else _find_place(node, options.place)
        zone = None if options.zone is None else _find_zone(node, options.zone)
        given = tuple(map(parse_contact, options.at)) if options.at else contacts
        reply = node.ask(PublishLabel(label, place, given, zone, lifetime, not options.once, password))
    _say_published(reply, session)


def _say_published(reply: Published, session: Session) -> None:
    """Print what was published, and how many nodes received it at once."""
    until = clock_text(reply.expires)
    if reply.removed:
        lines = [f"removed {reply.label}; who asks is told so until {until}"]
    else:
        lines = [f"published {reply.label}, good until {until}"]
    if reply.handed:
        lines.append(f"handed to {counted(len(reply.handed), 'node')}; linnet name list shows who keeps it")
    session.say(reply, lines)
    if not reply.handed and not session.as_json:
        warn("no node that keeps records has a link to yours: it is found at your own node alone for now")


BEGINNING_CHARS = 32
"""The most characters in the beginning of an id; a longer text is a whole id."""


def _find_place(node: ControlClient, text: str) -> tuple[TopicId, tuple[Contact, ...]]:
    """Return the place that is meant, and the contacts to enter it by if an address gives them."""
    from linnet.api.name_commands import LookUpAddress
    from linnet.cli.place.places import find_place
    from linnet.core.ids import TopicId
    from linnet.names.commands import NotResolved

    if text.strip().lower().startswith(Sort.TOPIC):
        try:
            return TopicId(from_text(Sort.TOPIC, text)), ()
        except BadText:
            # The beginning of an id is short; a long one is meant to be whole, so it is mistyped.
            if len(text.strip()) > BEGINNING_CHARS:
                raise
            return find_place(node, text), ()
    found = node.ask(LookUpAddress(text))
    if isinstance(found, NotResolved):
        raise Failure(fault_text(found))
    return found.place, found.contacts


def _find_zone(node: ControlClient, text: str) -> AuthorId:
    """Return the person that is meant, by a key or by a petname."""
    from linnet.identity.addresses import parse_person
    from linnet.names.address import read_name
    from linnet.names.commands import ListPetnames

    if text.strip().lower().startswith(Sort.PERSON):
        return parse_person(text)
    name = read_name(text)
    for known in node.ask(ListPetnames()).petnames:
        if known.name == name:
            return known.person
    raise BadText(f"you know nobody by the name {name!r}; linnet name petname set {name} lp1… changes that")


@with_examples("linnet name remove music", "linnet name remove club --password-file club.txt")
def remove(label: LabelArgument, secret: PasswordOptions, session: Session) -> None:
    """Withdraw a label of your zone. Lookups are told that it was withdrawn."""
    from linnet.api.name_commands import WithdrawLabel

    reply = session.ask(WithdrawLabel(label, secret.read()))
    _say_published(reply, session)


_COLUMNS = ("label", "leads to", "until", "renewed", "password", "kept by ", "refused by ")


@with_examples("linnet name list", "linnet name list --json | jq '.names[] | {label, told}'")
def list_labels(session: Session) -> None:
    """List the labels of your zone that this device wrote, their ends, and how many nodes keep them.

    Removed labels are shown for as long as others have to be told that they are removed.
    """
    from linnet.names.commands import ListNames

    reply = session.ask(ListNames())
    empty = "it says nothing yet; linnet name publish LABEL --place PLACE changes that"
    session.say(reply, [f"your zone is {person_text(reply.zone)}", "" if reply.names else empty])
    if reply.names and not session.as_json:
        say_table(_COLUMNS, [_row(each) for each in reply.names])


def _row(name: NameStatus) -> tuple[object, ...]:

    kept = sum(each.refusal is None for each in name.told)
    refused = len(name.told) - kept
    until = clock_text(name.expires)
    return (name.label, leads_to_text(name), until, name.renew, name.protected, kept, refused)


File = Annotated[Path, typer.Argument(metavar="FILE", help="The file.")]


@with_examples("linnet name export alice.names")
def export_records(file: File, session: Session) -> None:
    """Write your own records into a file that others can keep; without the names nobody can read them."""
    from linnet.names.commands import ExportNames

    reply = session.ask(ExportNames())
    try:
        with file.open("xb") as out:
            out.write(reply.data)
    except OSError as error:
        raise Failure(f"{file}: cannot be written: {error.strerror}", ExitCode.USAGE) from error
    session.say(
        {"records": reply.records, "file": str(file)}, f"wrote {counted(reply.records, 'record')} to {file}"
    )


@with_examples("linnet name import alice.names")
def import_records(file: File, session: Session) -> None:
    """Keep the records of a file: from now on this node finds them and gives them to others."""
    from linnet.names.commands import TakeInNames

    try:
        data = file.read_bytes()
    except OSError as error:
        raise Failure(f"{file}: cannot be read: {error.strerror}", ExitCode.USAGE) from error
    reply = session.ask(TakeInNames(data))
    session.say(reply, f"keep {counted(reply.kept, 'record')} of {file}")
    for reason in () if session.as_json else dict.fromkeys(reply.refused):
        warn(f"{counted(reply.refused.count(reason), 'record')} not kept: {reason}")
