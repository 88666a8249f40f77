"""``linnet content``: subscribe by predicates, publish with attributes, serve a group."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.options import Options, TimeoutOption, with_examples
from linnet.cli.output import counted, listed, plain, say, say_json, say_table, warn
from linnet.cli.running_node import Session
from linnet.content.commands import Via
from linnet.identity.addresses import contact_text
from linnet.identity.text import device_text, event_text, person_text, topic_text

if TYPE_CHECKING:
    from linnet.api.content import ContentSaid
    from linnet.content.commands import AttributeFate, SubscriptionIs
    from linnet.content.fast.commands import GroupsFound, GroupsStatus

PredicateArgument = Annotated[
    str,
    typer.Argument(metavar="PREDICATE", help="Attributes joined by /: a topic, a range, a text, a box."),
]


@dataclass(frozen=True)
class MatchOptions(Options):
    """The source of matches, and how many are printed."""

    name: Annotated[
        str | None,
        typer.Option(
            "--name", metavar="NAME", help="Keep it under this name: it collects events while nobody reads."
        ),
    ] = None
    count: Annotated[int | None, typer.Option("--count", metavar="N", min=1, help="End after N.")] = None
    detach: Annotated[bool, typer.Option("--detach", help="Only keep it, and return; needs --name.")] = False
    via: Annotated[
        Via | None,
        typer.Option(
            "--via",
            help="scout: from anybody; fast: from groups that publishers serve; auto: from both.",
            show_default="scout",
        ),
    ] = None
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="ADDRESS",
            help="A publisher whose group to be in, also if it is unlisted; by fast, or auto if you say so.",
        ),
    ] = None
    group: Annotated[
        str | None,
        typer.Option(
            "--group", metavar="PREDICATE", help="What that group carries, if it is more than yours."
        ),
    ] = None
    timeout: TimeoutOption = None


@with_examples(
    "linnet content subscribe 'stock/apple/price[10,20]'",
    "linnet content subscribe 'quake/strength[5,)/at{36,-10,44,-6}'",
    """linnet content subscribe 'weather/station="LIS"*' --name lisbon --detach""",
    "linnet content subscribe 'stock/price[10,20]' --via fast",
    "linnet content subscribe 'stock/price[10,20]' --at ld1…@192.0.2.7:7700 --group 'stock/price[0,1000]'",
    "linnet content subscribe weather --count 10 --json | jq -r .text",
)
def subscribe(predicate: PredicateArgument, options: MatchOptions, session: Session) -> None:
    """Print the events that match a predicate, one per line, until Ctrl-C or until there are enough.

    An event matches if it has every attribute, with a value in the range: price[10,20] includes its bounds,
    (10,20) does not, and [10,) has no upper bound.
    """
    from linnet.api.content import ReadContent
    from linnet.cli.printers import MatchPrinter
    from linnet.content.predicate import MOST_ATTRIBUTES, read_predicate
    from linnet.identity.addresses import parse_contact

    read_predicate(predicate, MOST_ATTRIBUTES)
    name, at, via = options.name, options.at, options.via
    if options.detach and (name is None or options.count is not None):
        raise Failure(
            "--detach keeps a subscription for later: it goes with --name, not --count", ExitCode.USAGE
        )
    if options.group is not None and at is None:
        raise Failure("--group names a group of a publisher: say where with --at", ExitCode.USAGE)
    if at is not None and via is Via.SCOUT:
        raise Failure("--at is about groups: take --via fast or auto, or none", ExitCode.USAGE)
    way = via or (Via.SCOUT if at is None else Via.FAST)
    count = 0 if options.detach else options.count
    with session.open_node() as node, session.open_node() as consumer:
        contact = None if at is None else parse_contact(at)
        command = ReadContent(0, predicate, name, way, contact, options.group)
        printer = MatchPrinter(session.as_json, count, None if name is None else consumer)
        printer.run(node.lines(command, manual=name is not None), options.timeout)


COLUMNS = ("name", "predicate", "rendezvous of", "via", "groups ", "read", "waiting ", "lost ")


@with_examples(
    "linnet content list", "linnet content list --json | jq '.subscriptions[] | select(.waiting > 0)'"
)
def list_subscriptions(session: Session) -> None:
    """List the content subscriptions of this node, and the attributes whose rendezvous it is."""
    from linnet.content.commands import ListContent

    reply = session.ask(ListContent())
    rows = [_subscription_row(each) for each in reply.subscriptions]
    session.say_table(reply, COLUMNS, rows, "no subscriptions: make one with linnet content subscribe")
    if session.as_json:
        return
    held = ", ".join(map(plain, reply.rendezvous)) or "nothing"
    say(f"this node is the rendezvous of {held}, and carries filters of {counted(reply.routes, 'route')}")


def _subscription_row(each: SubscriptionIs) -> tuple[object, ...]:
    return (
        None if each.name is None else plain(each.name),
        plain(each.predicate),
        plain(each.attribute),
        each.via.value,
        each.groups,
        each.read,
        each.waiting,
        each.lost,
    )


NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="What it was called by --name.")]


@with_examples("linnet content unsubscribe lisbon")
def unsubscribe(name: NameArgument, session: Session) -> None:
    """End a subscription that was kept under a name, and drop its events. Others end with their readers."""
    from linnet.content.commands import ForgetContent

    session.ask(ForgetContent(name))
    session.say({"unsubscribed": name}, f"unsubscribed {name}")


AttributesArgument = Annotated[
    str,
    typer.Argument(metavar="ATTRIBUTES", help="Topics and values joined by /: stock/apple/price=12.5."),
]
Body = Annotated[
    str | None, typer.Argument(metavar="[BODY]", help="What to say; - reads it from standard input.")
]
ViaOption = Annotated[
    Via,
    typer.Option(
        "--via",
        help="scout: by rendezvous; fast: in a group of ours; auto: in the group if there is one.",
    ),
]
Confirm = Annotated[
    float,
    typer.Option(
        "--confirm", metavar="SECONDS", min=0, max=3600, help="Wait so long for those who have not answered."
    ),
]


@with_examples(
    "linnet content publish 'stock/apple/price=12.5'",
    "linnet content publish 'quake/strength=5.1/at={38.7,-9.1}' 'Felt in Lisbon'",
    "linnet content publish 'stock/apple/price=12.5' --confirm 60",
    "echo rain | linnet content publish 'weather/day=2026-11-16' -",
)
def publish(
    attributes: AttributesArgument,
    body: Body = None,
    via: ViaOption = Via.SCOUT,
    confirm: Confirm = 0.0,
    *,
    session: Session,
) -> None:
    """Publish an event with attributes, and print the outcome at the rendezvous of each attribute.

    This returns when all live nodes have answered, and names those that have not; --confirm waits for them.
    The exit status is 1 if a rendezvous was not reached or if a subscriber did not answer. In a group every
    member that wants the event gives a receipt.
    """
    from linnet.api.content import SayContent
    from linnet.content.predicate import MOST_ATTRIBUTES, read_attributes

    read_attributes(attributes, MOST_ATTRIBUTES)
    raw = sys.stdin.buffer.read() if body == "-" else (body or "").encode("utf-8", "surrogateescape")
    reply = session.ask(SayContent(attributes, body=raw, via=via, confirm=confirm))
    if session.as_json:
        say_json(reply)
    else:
        for line in outcome_lines(reply):
            say(line)
    if not reply.settled or reply.missed or any(fate.reason is not None for fate in reply.fates):
        raise typer.Exit(ExitCode.FAILED)


def outcome_lines(reply: ContentSaid) -> list[str]:
    """Return the outcome of a published event in lines for people."""
    if reply.group is not None:
        return _group_lines(reply, reply.group)
    if not reply.fates:
        return [f"{event_text(reply.event)} is on its way; this network does not acknowledge"]
    lines = [f"  {plain(fate.attribute)}: {_fate(fate)}" for fate in reply.fates]
    is_whole = reply.settled and not reply.missed and all(fate.reason is None for fate in reply.fates)
    if not reply.delivered and is_whole:
        walks = counted(len(reply.fates), "walk")
        return [
            f"{event_text(reply.event)}: nobody wants it; it went no further, and cost only its {walks}",
            *lines,
        ]
    at = f"at {counted(reply.delivered, 'node')}" if reply.delivered else "nowhere"
    several = reply.matches is not None and reply.matches > reply.delivered
    to = f", to {counted(reply.matches or 0, 'subscription')}" if several else ""
    return [f"{event_text(reply.event)}: handed over {at}{to}{_wanting(reply)}", *lines]


def _wanting(reply: ContentSaid) -> str:
    """Say in words what is missing from the outcome so far."""
    given_up = reply.missed or any(fate.reason is not None for fate in reply.fates)
    if not reply.settled:
        rest = "; some were given up" if given_up else ""
        return f" so far; who is silent may still get it{rest}, and the trace tells"
    return "; not everyone who wants it answered" if given_up else ""


def _group_lines(reply: ContentSaid, group: str) -> list[str]:
    wanted = reply.wanted or 0
    want = "wants" if wanted == 1 else "want"
    told = f"{reply.delivered:,} of {counted(wanted, 'member')} who {want} it gave a receipt"
    again = f", {reply.taken_back:,} after others had failed them" if reply.taken_back else ""
    lines = [f"{event_text(reply.event)}: {told}{again}", f"  in the group {plain(group)}"]
    if reply.silent:
        names = listed([*map(device_text, reply.silent)], reply.more_silent)
        lines.append(f"  no answer yet from {names}; the trace tells")
    return lines


def _fate(fate: AttributeFate) -> str:
    if fate.reason is not None:
        return f"not reached: {fate.reason}"
    had = f"{counted(fate.again, 'node')} that had it already" if fate.again else ""
    parts = [counted(fate.delivered, "node")] if fate.delivered else []
    parts += [had] if had else []
    parts += [f"{counted(fate.missed, 'branch', 'branches')} did not answer"] if fate.missed else []
    if fate.silent or fate.more_silent:
        parts.append(f"no answer yet from {listed([*map(device_text, fate.silent)], fate.more_silent)}")
    elif not fate.settled:
        parts.append("no answer yet")
    return ", ".join(parts) or "nobody there"


CarriedArgument = Annotated[
    str, typer.Argument(metavar="PREDICATE", help="What the group carries: every event in it is of this.")
]
Unlisted = Annotated[
    bool,
    typer.Option(
        "--unlisted", help="Do not advertise it: only those who know your address and this find it."
    ),
]
Close = Annotated[bool, typer.Option("--close", help="Close the group, and tell its members.")]


@with_examples(
    "linnet content advertise 'stock/price[0,1000]'",
    "linnet content advertise 'stock/price[0,1000]' --unlisted",
    "linnet content advertise 'stock/price[0,1000]' --close",
)
def advertise(
    predicate: CarriedArgument, unlisted: Unlisted = False, close: Close = False, *, session: Session
) -> None:
    """Open a group of your own, which others find by what it carries, and which your node serves.

    Publish in it with linnet content publish --via fast. The group is open again whenever the node runs.
    """
    from linnet.content.fast.commands import CloseGroup, OpenGroup
    from linnet.content.predicate import MOST_ATTRIBUTES, read_predicate

    canonical = read_predicate(predicate, MOST_ATTRIBUTES).text
    if close and unlisted:
        raise Failure("--close needs no --unlisted", ExitCode.USAGE)
    if close:
        session.ask(CloseGroup(predicate))
        session.say({"closed": canonical}, f"closed {canonical}")
        return
    opened = session.ask(OpenGroup(predicate, not unlisted))
    words = f"{topic_text(opened.group)} carries {plain(opened.predicate)}"
    words += "; it is on no board: hand over your address and the predicate" if unlisted else ""
    session.say(opened, words)


SoughtArgument = Annotated[
    str | None,
    typer.Argument(metavar="[PREDICATE]", help="Look for groups of anybody that carry all of this."),
]


@with_examples("linnet content groups", "linnet content groups 'stock/price[10,20]'")
def groups(predicate: SoughtArgument = None, *, session: Session) -> None:
    """List the groups of this node and those that it is in; or search for groups by a predicate."""
    from linnet.content.fast.commands import ExamineGroups, SearchGroups
    from linnet.content.predicate import MOST_ATTRIBUTES, read_predicate

    if predicate is None:
        _say_status(session.ask(ExamineGroups()), session)
        return
    read_predicate(predicate, MOST_ATTRIBUTES)
    _say_found(session.ask(SearchGroups(predicate)), session)


def _say_status(reply: GroupsStatus, session: Session) -> None:
    rows = [
        (plain(each.predicate), each.listed, each.boards, each.members, each.direct) for each in reply.groups
    ]
    columns = ("group of ours", "listed", "boards ", "members ", "served directly ")
    session.say_table(reply, columns, rows, "no groups of ours: open one with linnet content advertise")
    if session.as_json:
        return
    if reply.memberships:
        joined = (
            (plain(each.listing.predicate), contact_text(each.listing.publisher), each.stands, each.serves)
            for each in reply.memberships
        )
        say_table(("member of", "publisher", "stands", "serves "), joined)
    if reply.postings:
        say(f"this node keeps {counted(reply.postings, 'advertisement')} of others")


def _say_found(reply: GroupsFound, session: Session) -> None:
    rows = [
        (
            plain(each.predicate),
            None if each.author is None else person_text(each.author),
            contact_text(each.publisher),
        )
        for each in reply.groups
    ]
    otherwise = "nobody advertises a group that carries all of it"
    session.say_table(reply, ("group", "person", "publisher"), rows, otherwise)
    if reply.unanswered and not session.as_json:
        warn(f"{counted(reply.unanswered, 'board')} did not answer: there may be more")
