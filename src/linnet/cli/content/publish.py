"""``linnet content publish``: say something with attributes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.exits import ExitCode
from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import counted, listed, plain, say, say_json
from linnet.content.commands import Via

if TYPE_CHECKING:
    from linnet.node.content_types import ContentPublishReply, FateView

EPILOG = examples(
    "linnet content publish 'stock/apple/price=12.5'",
    "linnet content publish 'quake/strength=5.1/at={38.7,-9.1}' 'Felt in Lisbon'",
    "linnet content publish 'stock/apple/price=12.5' --confirm 60",
    "echo rain | linnet content publish 'weather/day=2026-11-16' -",
)

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
        "--confirm", metavar="SECONDS", min=0, max=3600, help="Wait so long for those who say nothing."
    ),
]


def publish(
    attributes: AttributesArgument,
    body: Body = None,
    via: ViaOption = Via.SCOUT,
    confirm: Confirm = 0.0,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say something with attributes, and tell what became of it at the rendezvous of each attribute.

    It returns when all who live have answered, and names those who say nothing; --confirm waits for them. The
    exit status is 1 if a rendezvous was not reached or somebody who wants it did not answer. In a group every
    member who wants it gives a receipt.
    """
    from linnet.cli.running_node import control
    from linnet.content.predicate import MOST_ATTRIBUTES, read_attributes

    read_attributes(attributes, MOST_ATTRIBUTES)
    raw = sys.stdin.buffer.read() if body == "-" else (body or "").encode("utf-8", "surrogateescape")
    with control(home) as node:
        reply = node.publish_content(attributes, raw, via, confirm)
    if as_json:
        say_json(reply)
    else:
        for line in outcome_lines(reply):
            say(line)
    if not reply.settled or reply.missed or any(fate.reason is not None for fate in reply.fates):
        raise typer.Exit(ExitCode.FAILED)


def outcome_lines(reply: ContentPublishReply) -> list[str]:
    """What became of an event, for people."""
    if reply.group is not None:
        return _group_lines(reply, reply.group)
    if not reply.fates:
        return [f"{reply.event} is on its way; this network does not acknowledge"]
    lines = [f"  {plain(fate.attribute)}: {_fate(fate)}" for fate in reply.fates]
    is_whole = reply.settled and not reply.missed and all(fate.reason is None for fate in reply.fates)
    if not reply.delivered and is_whole:
        walks = counted(len(reply.fates), "walk")
        return [f"{reply.event}: nobody wants it; it went no further, and cost only its {walks}", *lines]
    at = f"at {counted(reply.delivered, 'node')}" if reply.delivered else "nowhere"
    several = reply.matches is not None and reply.matches > reply.delivered
    to = f", to {counted(reply.matches or 0, 'subscription')}" if several else ""
    return [f"{reply.event}: handed over {at}{to}{_wanting(reply)}", *lines]


def _wanting(reply: ContentPublishReply) -> str:
    """What is not, or not yet, as it should be."""
    given_up = reply.missed or any(fate.reason is not None for fate in reply.fates)
    if not reply.settled:
        rest = "; some were given up" if given_up else ""
        return f" so far; who is silent may still get it{rest}, and the trace tells"
    return "; not everyone who wants it answered" if given_up else ""


def _group_lines(reply: ContentPublishReply, group: str) -> list[str]:
    wanted = reply.wanted or 0
    want = "wants" if wanted == 1 else "want"
    told = f"{reply.delivered:,} of {counted(wanted, 'member')} who {want} it gave a receipt"
    again = f", {reply.taken_back:,} after others had failed them" if reply.taken_back else ""
    lines = [f"{reply.event}: {told}{again}", f"  in the group {plain(group)}"]
    if reply.silent:
        lines.append(f"  no answer yet from {listed(reply.silent, reply.more_silent)}; the trace tells")
    return lines


def _fate(fate: FateView) -> str:
    if fate.reason is not None:
        return f"not reached: {fate.reason}"
    had = f"{counted(fate.again, 'node')} that had it already" if fate.again else ""
    parts = [counted(fate.delivered, "node")] if fate.delivered else []
    parts += [had] if had else []
    parts += [f"{counted(fate.missed, 'branch', 'branches')} did not answer"] if fate.missed else []
    if fate.silent or fate.more_silent:
        parts.append(f"no answer yet from {listed(fate.silent, fate.more_silent)}")
    elif not fate.settled:
        parts.append("no answer yet")
    return ", ".join(parts) or "nobody there"
