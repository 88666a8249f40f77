"""``linnet overlay status``: whom a node without trackers knows, and how its topics stand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import counted, plain, say, say_json, say_table

if TYPE_CHECKING:
    from linnet.node.overlay_types import OverlayReply

EPILOG = examples(
    "linnet overlay status", "linnet overlay status --json | jq '.rings[] | {name, known, neighbors}'"
)

COLUMNS = ("topic", "members known ", "beside us on the ring", "neighbours", "without a link ")
_SHOWN = 13
"""Letters of a device id in a table: enough to tell apart, and to find it in linnet peers."""


def status(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Show rounds of gossip, whom this node knows, and the ring of each topic."""
    from linnet.cli.running_node import control

    with control(home) as node:
        reply = node.overlay()
    if as_json:
        say_json(reply)
        return
    for name, value in facts(reply):
        say(f"{name:15}{value}")
    if reply.rings:
        say_table(COLUMNS, rows(reply))


def facts(reply: OverlayReply) -> list[tuple[str, str]]:
    """How it stands, line by line."""
    empty = f", {reply.intersections_empty} of them with nothing in common" if reply.intersections else ""
    return [
        ("rounds", f"{reply.rounds:,}"),
        ("known", counted(reply.acquaintances, "node")),
        ("sample", f"{len(reply.sample)} of all nodes"),
        ("alike", f"{len(reply.alike)}, and {len(reply.fingers)} who are not"),
        ("held", f"links to {counted(reply.held, 'node')} for topics"),
        ("intersections", f"{reply.intersections}{empty}"),
    ]


def rows(reply: OverlayReply) -> list[tuple[object, ...]]:
    """The topics in a table."""
    return [
        (
            plain(ring.name) if ring.name else ring.topic,
            ring.known,
            # In a small ring the same stand on both sides.
            [each[:_SHOWN] for each in dict.fromkeys((*reversed(ring.predecessors), *ring.successors))],
            [each[:_SHOWN] for each in ring.neighbors],
            ring.uncovered,
        )
        for ring in reply.rings
    ]
