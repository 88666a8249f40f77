"""Addresses in words: where one leads and by whose word, or why it leads nowhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linnet.cli.moments import clock_text
from linnet.cli.output import plain

if TYPE_CHECKING:
    from linnet.node.name_types import NameView, ResolveNameReply, StepView

HINTS = {
    "unknown": "look at its spelling; if it has a password, add --password",
    "unanswered": "no node that keeps records has a link to yours: name one under [names] stores",
    "expired": "ask whoever published it to do so again",
    "removed": "ask whoever published it where it is now",
    "forged": "somebody else put records under this name; ask its owner to publish it again",
    "replayed": "somebody shows you old records; try again with other nodes, or ask its owner",
    "looping": "somebody on this path delegates back to it; use a shorter address",
    "too_deep": "use a shorter address",
    "not_a_zone": "leave out what stands before that label",
}
"""What to do about each fault."""


def path_lines(reply: ResolveNameReply) -> list[str]:
    """Each step of the path of trust as a line: what it is, and by whose word."""
    lines: list[str] = []
    known = ""
    for step in reply.path:
        line, known = _step_line(step, known)
        lines.append(line)
    return lines


def fault_text(reply: ResolveNameReply) -> str:
    """Why an address leads nowhere, and what to do."""
    fault = reply.fault or "unknown"
    hint = HINTS.get(fault, "")
    words = f"{plain(reply.address)}: {fault.replace('_', ' ')}: {plain(reply.detail)}"
    return f"{words}; {hint}" if hint else words


def leads_to_text(name: NameView) -> str:
    """What a label of ours leads to."""
    if name.removed:
        return "removed"
    parts = [] if name.place is None else [name.place]
    return " and ".join([*parts, *([] if name.zone is None else [f"the zone of {name.zone}"])])


def _step_line(step: StepView, known: str) -> tuple[str, str]:
    """The line of a step, and by which address what it leads to is known."""
    match step.via:
        case "petname":
            return f"{step.name}: you call {step.leads_to} so", step.name
        case "key":
            return f"{step.leads_to}: you gave this key", f"{step.leads_to[:10]}…"
        case "own":
            return f"{step.leads_to}: your own zone", ""
    now = f"{step.name}.{known}" if known else step.name
    who = f"{known} says that" if known else "you say that"
    what = "it is the place" if step.via == "place" else "it is the zone of"
    until = "" if step.expires is None else f", until {clock_text(step.expires)}"
    return f"{now}: {who} {what} {step.leads_to}{until}", now
