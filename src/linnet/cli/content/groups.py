"""``linnet content groups``: groups of yours, those that you are in, and those that are advertised."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import counted, plain, say, say_json, say_table, warn

if TYPE_CHECKING:
    from linnet.node.content_types import GroupsFoundReply, GroupsReply

EPILOG = examples("linnet content groups", "linnet content groups 'stock/price[10,20]'")

PredicateArgument = Annotated[
    str | None,
    typer.Argument(metavar="[PREDICATE]", help="Look for groups of anybody that carry all of this."),
]


def groups(predicate: PredicateArgument = None, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Groups of this node and those that it is in; or, with a predicate, all that are advertised for it."""
    from linnet.cli.running_node import control
    from linnet.content.predicate import MOST_ATTRIBUTES, read_predicate

    if predicate is not None:
        read_predicate(predicate, MOST_ATTRIBUTES)
    with control(home) as node:
        reply = node.content_groups() if predicate is None else node.find_content_groups(predicate)
    if as_json:
        say_json(reply)
        return
    from linnet.node.content_types import GroupsReply

    if isinstance(reply, GroupsReply):
        _say_status(reply)
    else:
        _say_found(reply)


def _say_status(reply: GroupsReply) -> None:
    if reply.groups:
        rows = (
            (plain(each.predicate), each.listed, each.boards, each.members, each.direct)
            for each in reply.groups
        )
        say_table(("group of ours", "listed", "boards ", "members ", "served directly "), rows)
    else:
        say("no groups of ours: open one with linnet content advertise")
    if reply.memberships:
        joined = (
            (plain(each.listing.predicate), each.listing.publisher, each.stands, each.serves)
            for each in reply.memberships
        )
        say_table(("member of", "publisher", "stands", "serves "), joined)
    if reply.postings:
        say(f"this node keeps {counted(reply.postings, 'advertisement')} of others")


def _say_found(reply: GroupsFoundReply) -> None:
    if reply.groups:
        rows = ((plain(each.predicate), each.person, each.publisher) for each in reply.groups)
        say_table(("group", "person", "publisher"), rows)
    else:
        say("nobody advertises a group that carries all of it")
    if reply.unanswered:
        warn(f"{counted(reply.unanswered, 'board')} did not answer: there may be more")
