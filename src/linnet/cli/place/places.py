"""Commands about the places of a node: host, list, show, leave."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from linnet.cli.options import Options, with_examples
from linnet.cli.output import fact_lines, plain
from linnet.cli.running_node import Session
from linnet.core.errors import BadText
from linnet.identity.lookup import Candidate, find_meant, is_whole, list_candidates
from linnet.identity.text import Sort, device_text, from_text, person_text, topic_text

if TYPE_CHECKING:
    from linnet.api.places import PlaceReport
    from linnet.core.ids import AuthorId, TopicId
    from linnet.node.client import ControlClient
    from linnet.places.commands import PlaceIs

PlaceArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="PLACE", help="The place's name, its id lt1…, or a beginning of it.")
]
PersonArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="PERSON", help="A person's id lp1…, or a beginning of it.")
]


def find_place(node: ControlClient, text: str) -> TopicId:
    """Return the place that is meant; `BadText` lists the candidates."""
    from linnet.core.ids import TopicId
    from linnet.node.places import choose_place
    from linnet.places.address import is_address, parse_address
    from linnet.places.commands import ListPlaces

    if is_address(text):
        return parse_address(text).place
    if is_whole(Sort.TOPIC, text):
        return TopicId(from_text(Sort.TOPIC, text))
    return choose_place(text, node.ask(ListPlaces()).places).place


def choose_person(text: str, people: Sequence[AuthorId], where: str) -> AuthorId:
    """Return the person that is meant: any whole id, or one of these people, who are `where`."""
    from linnet.core.ids import AuthorId

    if is_whole(Sort.PERSON, text):
        return AuthorId(from_text(Sort.PERSON, text))
    candidates = [Candidate(person, person_text(person)) for person in people]
    found = find_meant(text, Sort.PERSON, candidates)
    if len(found) == 1:
        return found[0].thing
    listed = list_candidates(found or candidates)
    raise BadText(f"{text[:80]!r} is nobody, or several, of those {where}: {listed or 'nobody'}")


class Policy(StrEnum):
    """Who may enter, and which past messages are open to them."""

    ANONYMOUS = "anonymous"
    PUBLIC = "public"
    CLOSED = "closed"
    PRIVATE = "private"


Name = Annotated[str | None, typer.Argument(metavar="[NAME]", help="What it is called.")]


@dataclass(frozen=True)
class DeedOptions(Options):
    """The properties of a place that are fixed when it is founded."""

    policy: Annotated[
        Policy,
        typer.Option(
            "--policy",
            help="Everyone, all history (anonymous) or from their entry on (public); "
            "whom you admit, all history (closed) or from their entry on (private).",
        ),
    ] = Policy.PUBLIC
    cohost: Annotated[
        list[str] | None,
        typer.Option(
            "--cohost", metavar="PERSON", help="May speak while you are away; once for each, by rank."
        ),
    ] = None
    keeper: Annotated[
        list[str] | None,
        typer.Option("--keeper", metavar="KEY@HOST:PORT", help="A relay that keeps what is said."),
    ] = None


@with_examples(
    "linnet place host tea",
    "linnet place host club --policy closed",
    "linnet place host news --cohost lp1… --keeper ld1…@192.0.2.7:7700",
)
def host(name: Name = None, *, options: DeedOptions, session: Session) -> None:
    """Found a place of which you are the host, and print the address by which others enter it."""
    from linnet.api.places import OpenPlace
    from linnet.core.ids import AuthorId
    from linnet.identity.addresses import parse_contact
    from linnet.places import deed

    cohosts = tuple(AuthorId(from_text(Sort.PERSON, person)) for person in options.cohost or ())
    keepers = tuple(map(parse_contact, options.keeper or ()))
    reply = session.ask(OpenPlace(deed.Policy(options.policy), name, cohosts, keepers))
    place = topic_text(reply.place.place)
    next_step = f"linnet place announce {shlex.quote(name or place)} hello"
    facts = {"place": place, "address": reply.address.text, "next": next_step}
    session.say(reply, fact_lines(facts.items(), 8))


COLUMNS = ("name", "place", "you", "policy", "guests ", "messages ", "missing ", "objects ")
NO_PLACES = "no places: found one with linnet place host, or enter one with linnet place enter"


@with_examples("linnet place list", "linnet place list --json | jq '.places[].name'")
def list_places(session: Session) -> None:
    """List every place that this node hosts or visits."""
    from linnet.places.commands import ListPlaces

    reply = session.ask(ListPlaces())
    session.say_table(reply, COLUMNS, [_place_row(each) for each in reply.places], NO_PLACES)


def _place_row(place: PlaceIs) -> tuple[object, ...]:
    return (
        None if place.name is None else plain(place.name),
        topic_text(place.place),
        place.role if place.turned is None else "rejected",
        place.deed.policy.value,
        place.guests,
        place.message,
        place.missing,
        place.variables,
    )


@with_examples("linnet place status tea", "linnet place status tea --json | jq -r .address")
def show_place(place: PlaceArgument, session: Session) -> None:
    """Show how a place stands at this node, and the address by which others enter it."""
    from linnet.api.places import ExaminePlace

    with session.open_node() as node:
        reply = node.ask(ExaminePlace(find_place(node, place)))
    session.say(reply, _place_lines(reply))


def _place_lines(reply: PlaceReport) -> list[str]:
    from linnet.api.errors import TurnedAway

    told = reply.place
    voice = "-" if told.voice is None else device_text(told.voice)
    facts = {
        "name": plain(told.name or "-"),
        "place": topic_text(told.place),
        "you are": told.role,
        "policy": told.deed.policy.value,
        "host": person_text(told.deed.host),
        "voice": f"{voice} (term {told.term})",
        "messages": f"{told.message}; {told.missing} fragments are missing",
        "guests": f"{told.guests}; generation {told.generation}",
        "links": f"{len(told.upstreams)} up, {len(told.downstreams)} down",
        "objects": f"{told.variables} as of message {told.state}, hash {told.state_hash.hex()[:16]}",
        "address": reply.address.text,
    }
    if told.turned is not None:
        turned = TurnedAway(told.turned)
        facts["rejected"] = plain(turned.detail)
        if turned.elsewhere is not None:
            facts["next"] = f"linnet place enter {turned.elsewhere.text}"
    return fact_lines(facts.items(), 9)


ForNow = Annotated[bool, typer.Option("--for-now", help="Only disconnect: you are still a guest.")]


@with_examples("linnet place leave tea", "linnet place leave tea --for-now")
def leave(place: PlaceArgument, for_now: ForNow = False, *, session: Session) -> None:
    """Stop being a guest of a place: the host tells everyone. What is kept of it here stays."""
    from linnet.places.commands import LeavePlace

    with session.open_node() as node:
        found = find_place(node, place)
        node.ask(LeavePlace(found, not for_now))
    left = topic_text(found)
    words = f"{'disconnected from' if for_now else 'left'} {left}"
    session.say({"place": left, "left": not for_now}, words)
