"""``linnet status``: the state of the node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linnet.cli.moments import clock_text, clock_warning, duration_text
from linnet.cli.options import with_examples
from linnet.cli.output import counted, fact_lines, say, say_json, say_table, warn
from linnet.cli.room.rooms import ROOM_COLUMNS, room_row, say_departures
from linnet.cli.running_node import Session
from linnet.core.reasons import Reason
from linnet.identity.text import device_text, person_text

if TYPE_CHECKING:
    from linnet.api.node_commands import StatusReport
    from linnet.node.client import ControlClient
    from linnet.streams.commands import StorageCheck, StreamStatus

_STREAM_COLUMNS = (
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


@with_examples("linnet status", "linnet status --json | jq .streams")
def status(session: Session) -> None:
    """Show who this node is, how it can be reached, and every stream and room that it has joined."""
    from linnet.api.node_commands import ReportStatus
    from linnet.streams.commands import StorageOutcome

    reply = session.ask(ReportStatus())
    if session.as_json:
        say_json(reply)
        return
    for line in fact_lines(_facts(reply), 12):
        say(line)
    if reply.streams:
        say_table(_STREAM_COLUMNS, map(_stream_row, reply.streams))
        for stream in reply.streams:
            if (why := alone_text(stream.alone)) is not None:
                say(f"{stream.stream} has no neighbours: {why}")
            if stream.refuses is not None:
                say(f"{stream.stream} takes no newer events of some publishers: {_REFUSES[stream.refuses]}")
            for check in stream.storage_checks:
                if check.outcome is not StorageOutcome.KEPT:
                    say(f"{stream.stream}: {check_text(check)}")
    if reply.rooms:
        say_table(ROOM_COLUMNS, map(room_row, reply.rooms))
    say_departures(reply.departures)


def warn_of_clock(node: ControlClient) -> None:
    """Say on standard error that this node's clock is wrong, if it is behind those of most peers."""
    from linnet.api.node_commands import ReportStatus

    words = clock_warning(node.ask(ReportStatus()).clock_behind)
    if words is not None:
        warn(words)


def _facts(reply: StatusReport) -> list[tuple[str, str]]:
    up = sum(peer.up for peer in reply.peers)
    unknown = "not known yet" if reply.overlay == "tracker" else "not known: only trackers try"
    reachable = {None: unknown, True: "yes", False: f"no: {reply.reachable_reason}"}[reply.reachable]
    return [
        ("address", reply.contact),
        ("person", person_text(reply.person)),
        ("label", reply.label or "-"),
        ("version", reply.version),
        ("up since", f"{clock_text(reply.started_at)} ({duration_text(reply.now - reply.started_at)})"),
        ("overlay", "ring, without trackers" if reply.overlay == "ring" else "tracker"),
        ("roles", ", ".join(reply.roles) or "-"),
        ("reachable", reachable),
        ("links", f"{up} up of {len(reply.peers)}"),
        ("tracked", counted(len(reply.tracked), "stream")),
        ("blocked", counted(len(reply.blocked), "device")),
        *((("clock", words),) if (words := clock_warning(reply.clock_behind)) else ()),
        *_network(reply),
    ]


def _network(reply: StatusReport) -> list[tuple[str, str]]:
    """Return what this node does for others in the hash table and in content."""
    facts: list[tuple[str, str]] = []
    if (table := reply.hash_table) is not None:
        records = f"{counted(table.kept, 'record')} kept for others, {table.placed:,} of our own placed"
        facts.append(("hash table", f"{counted(table.known, 'node')} known, {records}"))
    if (content := reply.content) is not None:
        told = f"{counted(content.subscriptions, 'subscription')}, {counted(content.filters, 'filter')} held"
        facts.append(("content", f"{told}, rendezvous of {counted(len(content.rendezvous), 'attribute')}"))
    return facts


def _stream_row(stream: StreamStatus) -> tuple[object, ...]:
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


_REFUSES = {
    Reason.QUOTA: (
        "all the room for what is kept for others is used; give the stream a quota in [[storage]], so that "
        "its oldest events go, or raise stored_stream_bytes or stored_bytes in [delivery]"
    ),
    Reason.DISK_FULL: "the disk is almost full; free space there, or lower disk_reserve in [delivery]",
}
_CHECKED = {
    "kept": "showed what it has confirmed",
    "gone": "no longer has what it has confirmed",
    "proved_wrong": "signed what is not true, and counts no more; name another storage node",
    "no_answer": "did not show what it has confirmed",
    "not_checkable": "has confirmed nothing that can be checked",
}
_WHY = {
    Reason.RETENTION: "it keeps events for a time only",
    Reason.QUOTA: "its room was used up",
    Reason.DAMAGED: "its disk has damaged it",
    Reason.LOST: "its store began anew, or was put back from an older copy",
    Reason.UNSUPPORTED: "its version is older",
}


def check_text(check: StorageCheck) -> str:
    """Say what came of the check of a storage node."""
    number = f" (number {check.number})" if check.number is not None else ""
    why = _WHY.get(check.reason) if check.reason is not None else None
    return f"{device_text(check.node)} {_CHECKED[check.outcome.value]}{number}{f': {why}' if why else ''}"


_ALONE = {
    Reason.NO_ADDRESS.value: (
        "no tracker is known, so nobody can be found; name one with: linnet up --tracker KEY@HOST:PORT"
    ),
    Reason.UNREACHABLE_INBOUND.value: (
        "this node cannot be dialled, and nobody who can be dialled is here so far: two that only dial never "
        "meet; set listen in linnet.toml on one of them, or run a node that listens"
    ),
}


def alone_text(reason: str | None) -> str | None:
    """Say in words why a stream has no neighbours; None without a reason."""
    return None if reason is None else _ALONE.get(reason, reason)
