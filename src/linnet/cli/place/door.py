"""Commands about the door of a place: enter, admit, reject, eject."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.options import Options, PatienceOption, with_examples
from linnet.cli.output import plain, say_json, warn
from linnet.cli.place.places import PersonArgument, PlaceArgument, choose_person, find_place
from linnet.cli.running_node import Session
from linnet.identity.text import person_text, topic_text

if TYPE_CHECKING:
    from linnet.core.ids import AuthorId, TopicId
    from linnet.node.client import ControlClient
    from linnet.places.commands import AtDoor, Entered, GuestsAre, Turned

Where = Annotated[
    str,
    typer.Argument(
        metavar="ADDRESS", help="The text la1…, a name such as music.alice, or an id lt1…; - reads it."
    ),
]


@dataclass(frozen=True)
class EntryOptions(Options):
    """How to ask a place to let us in."""

    at: Annotated[
        list[str] | None,
        typer.Option("--at", metavar="KEY@HOST:PORT", help="Somebody to ask; once for each."),
    ] = None
    words: Annotated[
        str, typer.Option("--say", metavar="TEXT", help="What the host is told at the door.")
    ] = ""
    patience: PatienceOption = 20.0


@with_examples(
    "linnet place enter la1…",
    "linnet place enter - < address.txt",
    "linnet place enter music.alice",
    'linnet place enter la1… --say "It is me, Bea"',
    "linnet place enter lt1… --at ld1…@192.0.2.7:7700",
)
def enter(where: Where, options: EntryOptions, session: Session) -> None:
    """Enter a place by its address. Where the host decides who comes in, this says so and waits for it.

    Once the host was told, the node goes on to wait at the door when this ends, also after a restart, and is
    in when the host admits it; linnet place status shows a rejection. If nobody answers in time the node does
    not go on to knock: enter again later. A guest who only disconnected comes in again without the host's
    decision.
    """
    from msgspec.structs import replace

    from linnet.api.errors import ControlError
    from linnet.api.places import AskToEnter, ExaminePlace
    from linnet.identity.addresses import parse_contact
    from linnet.places.address import is_address, parse_address
    from linnet.places.commands import AtDoor

    text = "".join((sys.stdin.read() if where == "-" else where).split())
    given = parse_address(text).name if is_address(text) else None
    contacts = tuple(map(parse_contact, options.at or ()))
    command = AskToEnter(text, contacts, options.words, options.patience, waits=False)
    answer: Entered | AtDoor | Turned | None = None
    with session.open_node() as node:
        try:
            answer = node.ask(command)
            if isinstance(answer, AtDoor):
                warn("the host decides who comes in, and was told of you: waiting for the answer")
                answer = node.ask(replace(command, waits=True))
            entered = _entered(answer)
        except ControlError as error:
            if session.as_json:
                told = {"reason": error.reason, "detail": error.detail, "elsewhere": _elsewhere(answer)}
                say_json({"entered": False, **told})
            raise
        reply = node.ask(ExaminePlace(entered.place))
    name = plain(reply.place.name or given or "")
    place = topic_text(reply.place.place)
    lines = (f"entered {name} {place}".replace("  ", " "), f"next    linnet place watch {place[:14]}")
    session.say(reply, lines)


def _entered(answer: Entered | AtDoor | Turned) -> Entered:
    """Return the entry if we are in; raise `ControlError` otherwise, as when a node declines."""
    from linnet.api.errors import ControlError, ErrorView, TurnedAway, told
    from linnet.core.errors import Refused
    from linnet.core.reasons import Reason
    from linnet.places.commands import AtDoor, Turned
    from linnet.places.entry import AT_THE_DOOR

    match answer:
        case AtDoor():
            status, reply = told(Refused(Reason.WAITING, AT_THE_DOOR))
            raise ControlError(status, reply.error)
        case Turned():
            turned, named = TurnedAway(answer), _elsewhere(answer)
            hint = (
                f"try there: linnet place enter {named}" if named else "linnet place enter knocks once more"
            )
            raise ControlError(403, ErrorView(turned.reason.value, turned.detail, hint))
    return answer


def _elsewhere(answer: Entered | AtDoor | Turned | None) -> str | None:
    """Return the address of another place that the host named when it turned us away."""
    from linnet.api.errors import TurnedAway
    from linnet.places.commands import Turned

    named = TurnedAway(answer).elsewhere if isinstance(answer, Turned) else None
    return None if named is None else named.text


COLUMNS = ("person", "is", "from message ", "has fragments below ", "said at the door")
NOBODY = "nobody is in yet: hand over the address that linnet place status shows"


@with_examples("linnet place guests tea", "linnet place guests tea --json | jq -r '.waiting[]'")
def guests(place: PlaceArgument, session: Session) -> None:
    """Show who is in a place, from which message on it is open to each, and who waits at the door."""
    from linnet.places.commands import ListGuests

    with session.open_node() as node:
        reply = node.ask(ListGuests(find_place(node, place)))
    session.say_table(reply, COLUMNS, _guest_rows(reply), NOBODY)


def _guest_rows(reply: GuestsAre) -> list[tuple[object, ...]]:
    said = reply.said or ("",) * len(reply.waiting)
    return [
        *((person_text(each.nym), "guest", each.since, each.upto, "") for each in reply.guests),
        *(
            (person_text(person), "waits", 0, None, plain(words))
            for person, words in zip(reply.waiting, said, strict=False)
        ),
    ]


Since = Annotated[
    int | None,
    typer.Option("--since", metavar="N", min=0, help="The first message that is open to them."),
]


@with_examples("linnet place admit club lp1…", "linnet place admit club lp1… --since 1")
def admit(place: PlaceArgument, person: PersonArgument, since: Since = None, *, session: Session) -> None:
    """Admit a person who waits at the door; linnet place guests lists them."""
    from linnet.places.commands import Admit

    with session.open_node() as node:
        found = find_place(node, place)
        whom = _find_waiting(node, found, person)
        reply = node.ask(Admit(found, whom, since))
    session.say(reply, f"admitted {person_text(whom)}")


Why = Annotated[str, typer.Option("--say", metavar="TEXT", help="Why.")]
Elsewhere = Annotated[
    str | None, typer.Option("--elsewhere", metavar="ADDRESS", help="Another place for them.")
]


@with_examples(
    'linnet place reject club lp1… --say "members only"', "linnet place reject club lp1… --elsewhere la1…"
)
def reject(
    place: PlaceArgument,
    person: PersonArgument,
    words: Why = "",
    elsewhere: Elsewhere = None,
    *,
    session: Session,
) -> None:
    """Turn away a person who waits at the door; linnet place guests lists them."""
    from linnet.places.address import parse_address
    from linnet.places.commands import Reject

    other = None if elsewhere is None else parse_address(elsewhere)
    with session.open_node() as node:
        found = find_place(node, place)
        whom = _find_waiting(node, found, person)
        node.ask(Reject(found, whom, text=words, elsewhere=other))
    result = {"place": topic_text(found), "person": person_text(whom), "rejected": True}
    session.say(result, f"rejected {person_text(whom)}")


def _find_waiting(node: ControlClient, place: TopicId, text: str) -> AuthorId:
    """Return the person that is meant, among those who wait at the door of a place."""
    from linnet.places.commands import ListGuests

    return choose_person(text, node.ask(ListGuests(place)).waiting, "who wait at the door")


@with_examples("linnet place eject tea lp1…", "linnet place eject tea lp1abcd")
def eject(place: PlaceArgument, person: PersonArgument, session: Session) -> None:
    """Eject a guest from a place: all are told, and the guest cannot read what is said from then on."""
    from linnet.places.commands import Eject, ListGuests

    with session.open_node() as node:
        found = find_place(node, place)
        people = [each.nym for each in node.ask(ListGuests(found)).guests]
        whom = choose_person(person, people, "who are in")
        reply = node.ask(Eject(found, whom))
    session.say(reply, f"ejected {person_text(whom)}")
