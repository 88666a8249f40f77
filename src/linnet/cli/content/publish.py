"""``linnet content publish``: say something with attributes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.exits import ExitCode
from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import counted, plain, say, say_json
from linnet.content.commands import Via

if TYPE_CHECKING:
    from linnet.node.content_types import ContentPublishReply, FateView

EPILOG = examples(
    "linnet content publish 'stock/apple/price=12.5'",
    "linnet content publish 'quake/strength=5.1/at={38.7,-9.1}' 'Felt in Lisbon'",
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


def publish(
    attributes: AttributesArgument,
    body: Body = None,
    via: ViaOption = Via.SCOUT,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say something with attributes, and tell what became of it at the rendezvous of each attribute.

    The exit status is 1 if a rendezvous was not reached or somebody who wanted it did not answer. In a
    group every member who wants it gives a receipt.
    """
    from linnet.cli.running_node import control
    from linnet.content.predicates import MOST_ATTRIBUTES, read_attributes

    read_attributes(attributes, MOST_ATTRIBUTES)
    raw = sys.stdin.buffer.read() if body == "-" else (body or "").encode("utf-8", "surrogateescape")
    with control(home) as node:
        reply = node.publish_content(attributes, raw, via)
    if as_json:
        say_json(reply)
    else:
        for line in outcome_lines(reply):
            say(line)
    if reply.missed or any(fate.reason is not None for fate in reply.fates):
        raise typer.Exit(ExitCode.FAILED)


def outcome_lines(reply: ContentPublishReply) -> list[str]:
    """What became of an event, for people."""
    if reply.group is not None:
        told = f"{reply.delivered} of {counted(reply.wanted or 0, 'member')} who want it gave a receipt"
        again = f", {reply.taken_back} after others had failed them" if reply.taken_back else ""
        return [f"{reply.event}: {told}{again}", f"  in the group {plain(reply.group)}"]
    if not reply.fates:
        return [f"{reply.event} is on its way; this network does not acknowledge"]
    lines = [f"  {plain(fate.attribute)}: {_fate(fate)}" for fate in reply.fates]
    if reply.missed or any(fate.reason is not None for fate in reply.fates):
        total = f"{reply.event}: handed over at {counted(reply.delivered, 'node')}, but not everywhere"
    elif reply.delivered:
        total = f"{reply.event}: handed over at {counted(reply.delivered, 'node')}"
    else:
        walks = counted(len(reply.fates), "walk")
        total = f"{reply.event}: nobody wants it; it went no further, and cost only its {walks}"
    return [total, *lines]


def _fate(fate: FateView) -> str:
    if fate.reason is not None:
        return f"not reached: {fate.reason}"
    missed = f", {counted(fate.missed, 'branch')[:-1]}es did not answer" if fate.missed > 1 else ""
    missed = ", 1 branch did not answer" if fate.missed == 1 else missed
    return f"{counted(fate.delivered, 'node')}{missed}" if fate.delivered or missed else "nobody there"
