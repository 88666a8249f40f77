"""``linnet status``: how things stand at the node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linnet.cli.alone import alone_text
from linnet.cli.moments import clock_text, duration_text
from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import counted, say, say_json, say_table
from linnet.cli.room import list_

if TYPE_CHECKING:
    from linnet.node.control_types import StreamView
    from linnet.node.status_types import StatusReply

EPILOG = examples("linnet status", "linnet status --json | jq .streams")

_COLUMNS = (
    "stream",
    "overlay",
    "neighbours ",
    "storage nodes ",
    "readers ",
    "received ",
    "duplicates ",
    "rejected ",
    "gaps open ",
    "filled ",
    "lost ",
    "kept ",
)


def status(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Who this node is, how it is reached, and every stream and room it has joined."""
    from linnet.cli.running_node import control

    with control(home) as node:
        reply = node.status()
    if as_json:
        say_json(reply)
        return
    for name, value in _facts(reply):
        say(f"{name:12}{value}")
    if reply.streams:
        say_table(_COLUMNS, map(_row, reply.streams))
        for stream in reply.streams:
            if (why := alone_text(stream.alone)) is not None:
                say(f"{stream.stream} has no neighbours: {why}")
    if reply.rooms:
        say_table(list_.COLUMNS, map(list_.row, reply.rooms))


def _facts(reply: StatusReply) -> list[tuple[str, str]]:
    up = sum(peer.up for peer in reply.peers)
    unknown = "not known yet" if reply.overlay == "tracker" else "not known: only trackers try"
    reachable = {None: unknown, True: "yes", False: f"no: {reply.reachable_reason}"}[reply.reachable]
    return [
        ("address", reply.contact),
        ("person", reply.person),
        ("label", reply.label or "-"),
        ("version", reply.version),
        ("up since", f"{clock_text(reply.started_at)} ({duration_text(reply.now - reply.started_at)})"),
        ("overlay", "ring, without trackers" if reply.overlay == "ring" else "tracker"),
        ("roles", ", ".join(reply.roles) or "-"),
        ("reachable", reachable),
        ("links", f"{up} up of {len(reply.peers)}"),
        ("tracked", counted(len(reply.tracked), "stream")),
        ("blocked", counted(len(reply.blocked), "device")),
        *_network(reply),
    ]


def _network(reply: StatusReply) -> list[tuple[str, str]]:
    """What this node does for others in the hash table and in content, if it does."""
    facts: list[tuple[str, str]] = []
    if (table := reply.hash_table) is not None:
        records = f"{counted(table.kept, 'record')} kept for others, {table.placed:,} of our own placed"
        facts.append(("hash table", f"{counted(table.known, 'node')} known, {records}"))
    if (content := reply.content) is not None:
        told = f"{counted(content.subscriptions, 'subscription')}, {counted(content.filters, 'filter')} held"
        facts.append(("content", f"{told}, rendezvous of {counted(len(content.rendezvous), 'attribute')}"))
    return facts


def _row(stream: StreamView) -> tuple[object, ...]:
    return (
        stream.stream,
        stream.overlay.value,
        len(stream.neighbors),
        len(stream.storage_nodes),
        stream.subscriptions,
        stream.received,
        stream.duplicates,
        stream.rejected,
        stream.gaps_open,
        stream.gaps_filled,
        stream.gaps_lost,
        stream.kept_events,
    )
