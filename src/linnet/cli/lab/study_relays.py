"""``linnet lab study relays``: what relays change."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.lab.options import (
    MasterOption,
    MemoryOption,
    OutOption,
    SeedOption,
    say_report,
    workshop,
)
from linnet.cli.options import JsonOption, examples

EPILOG = examples(
    "linnet lab study relays --chats zulip --out relays",
    "linnet lab study relays --chats zulip --out by-phones --presence phones --sessions phones",
    "linnet lab study relays --chats generated --out relays --master spark://lab.example:7077",
)

Chats = Annotated[
    Path,
    typer.Option("--chats", metavar="DIR", help="Where `lab ingest` or `lab generate chats` wrote messages."),
]


class PresenceBy(StrEnum):
    """Who is online when."""

    MARGINS = "margins"
    PHONES = "phones"


PresenceOption = Annotated[
    PresenceBy, typer.Option("--presence", help="Online around own messages, or like real phones.")
]
Sessions = Annotated[
    Path | None,
    typer.Option(
        "--sessions", metavar="DIR", help="Where `lab ingest --format availability` wrote phones' sessions."
    ),
]
Members = Annotated[int, typer.Option(min=2, help="Members at most of a selected chat.")]
Messages = Annotated[int, typer.Option(min=2, help="Messages at least of a selected chat.")]
Hours = Annotated[float, typer.Option(min=0.0, help="Hours at most that a run of it would take.")]
Sample = Annotated[int, typer.Option(min=0, help="Chats that also run through the protocol; 0: none.")]
Window = Annotated[int, typer.Option(min=2, max=300, help="Messages at most of a chat of the sample.")]


def relays(
    chats: Chats,
    out: OutOption,
    presence: PresenceOption = PresenceBy.MARGINS,
    sessions: Sessions = None,
    most_members: Members = 30,
    fewest_messages: Messages = 30,
    longest_run: Hours = 3.0,
    sample: Sample = 200,
    window: Window = 300,
    seed: SeedOption = 1,
    master: MasterOption = "local[*]",
    memory: MemoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Work out what becomes of every message of every chat, with relays and without.

    Undelivered events, time to the first delivery, empty online periods and reception after return, for
    five online margins per chat, beside the published figures. A sample of chats also runs
    through the shipped rooms and relays, and must agree. A study that was interrupted goes on where it was.
    """
    if (presence is PresenceBy.PHONES) != (sessions is not None):
        raise Failure("--presence phones and --sessions DIR belong together: give both", ExitCode.USAGE)
    with workshop(out, master, memory, as_json) as shop:
        from linnet.lab.relays.profile import Filters
        from linnet.lab.report.writing import write_report
        from linnet.lab.studies.relays.parameters import RelaysParameters
        from linnet.lab.studies.relays.study import study

        filters = Filters(most_members, fewest_messages, round(longest_run * 3_600_000))
        report = study(
            shop,
            RelaysParameters(
                chats=chats, sessions=sessions, filters=filters, sample=sample, window=window, seed=seed
            ),
        )
        write_report(report, out)
    say_report(report, out, as_json)
