"""``linnet content list``: subscriptions, and what the node carries for others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import counted, plain, say, say_json, say_table

if TYPE_CHECKING:
    from linnet.node.content_types import SubscriptionView

EPILOG = examples(
    "linnet content list", "linnet content list --json | jq '.subscriptions[] | select(.waiting > 0)'"
)

COLUMNS = ("name", "predicate", "rendezvous of", "via", "groups ", "read", "waiting ", "lost ")


def list_(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Every subscription to content of this node, and the attributes that it is the rendezvous of."""
    from linnet.cli.running_node import control

    with control(home) as node:
        reply = node.content()
    if as_json:
        say_json(reply)
        return
    if reply.subscriptions:
        say_table(COLUMNS, map(row, reply.subscriptions))
    else:
        say("no subscriptions: make one with linnet content subscribe")
    held = ", ".join(map(plain, reply.rendezvous)) or "nothing"
    say(f"this node is the rendezvous of {held}, and carries filters of {counted(reply.routes, 'route')}")


def row(each: SubscriptionView) -> tuple[object, ...]:
    """A subscription in a table."""
    name = None if each.name is None else plain(each.name)
    return (
        name,
        plain(each.predicate),
        plain(each.attribute),
        each.via.value,
        each.groups,
        each.read,
        each.waiting,
        each.lost,
    )
