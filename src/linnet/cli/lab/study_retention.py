"""``linnet lab study retention``: how long relays should keep events."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.lab.options import (
    MasterOption,
    MemoryOption,
    OutOption,
    SeedOption,
    lab_extra,
    say_report,
    workshop,
)
from linnet.cli.lab.study_relays import Chats, Sessions
from linnet.cli.moments import parse_duration
from linnet.cli.options import JsonOption, examples

EPILOG = examples(
    "linnet lab study retention --chats zulip --out retention",
    "linnet lab study retention --chats zulip --out retention --presence both --sessions phones",
    "linnet lab study retention --chats zulip --out retention --retentions 12h,2d,14d --served 0.999",
)

_ALWAYS = ("none", "forever")


class Presence(StrEnum):
    """Who is online when."""

    MARGINS = "margins"
    PHONES = "phones"
    BOTH = "both"


PresenceOption = Annotated[
    Presence,
    typer.Option("--presence", help="Online around own messages, like real phones, or each in turn."),
]
Retentions = Annotated[
    str, typer.Option(metavar="TIME,...", help="What to compare, besides none, our default and forever.")
]
Relays = Annotated[str, typer.Option(metavar="N,...", help="Relays of a room; 0 is without.")]
Served = Annotated[
    float, typer.Option(min=0.01, max=1.0, help="Share of what is served forever that is enough.")
]
Lively = Annotated[
    float, typer.Option(metavar="SECONDS", min=0.0, help="Median pause up to which a room is lively.")
]


def retention(
    chats: Chats,
    out: OutOption,
    presence: PresenceOption = Presence.MARGINS,
    sessions: Sessions = None,
    retentions: Retentions = "1m,10m,1h,6h,1d,3d,7d,30d,90d",
    relays: Relays = "0,1,2,3",
    served: Served = 0.99,
    lively: Lively = 60.0,
    seed: SeedOption = 1,
    master: MasterOption = "local[*]",
    memory: MemoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Weigh what relays deliver against what they hold, for each time that they might keep events.

    Every chat is worked out for every retention, with people who are online around what they say or
    like real phones. Rooms are classed by members and pace; each class is recommended the shortest
    retention that serves nearly all that could be served, with the reason.
    """
    if (presence is not Presence.MARGINS) != (sessions is not None):
        raise Failure(
            "--presence phones (or both) and --sessions DIR belong together: give both", ExitCode.USAGE
        )
    kept, numbers = _milliseconds(retentions), _numbers(relays)
    with lab_extra():
        from linnet.lab.studies.retention.parameters import PresenceBy, RetentionParameters

        parameters = RetentionParameters(
            chats=chats,
            presence=PresenceBy(presence.value),
            sessions=sessions,
            retentions=kept,
            relays=numbers,
            served=served,
            lively=round(lively * 1000),
            seed=seed,
        )
    with workshop(out, master, memory, as_json) as shop:
        from linnet.lab.report.writing import write_report
        from linnet.lab.studies.retention.study import study

        report = study(shop, parameters)
        write_report(report, out)
    say_report(report, out, as_json)


def _milliseconds(words: str) -> tuple[int, ...]:
    """Retentions that were typed; those that are always there may be."""
    wanted = [word.strip() for word in words.split(",") if word.strip()]
    return tuple(round(parse_duration(word) * 1000) for word in wanted if word not in _ALWAYS)


def _numbers(words: str) -> tuple[int, ...]:
    try:
        return tuple(int(word) for word in words.split(",") if word.strip())
    except ValueError as error:
        raise Failure(f"--relays {words!r} are no numbers: write 0,1,2,3", ExitCode.USAGE) from error
