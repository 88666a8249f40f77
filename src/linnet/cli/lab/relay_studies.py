"""The studies of the lab about relays: what they change, and how long they should keep events."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.lab.options import OutOption, SeedOption, SparkOptions, lab_extra, read_numbers
from linnet.cli.moments import parse_duration
from linnet.cli.options import with_examples

if TYPE_CHECKING:
    from linnet.lab.report.parts import Report
    from linnet.lab.stages import Workshop

Chats = Annotated[
    Path,
    typer.Option("--chats", metavar="DIR", help="Where `lab ingest` or `lab generate chats` wrote messages."),
]


class PresenceBy(StrEnum):
    """The models of when people are online."""

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


@with_examples(
    "linnet lab study relays --chats zulip --out relays",
    "linnet lab study relays --chats zulip --out by-phones --presence phones --sessions phones",
    "linnet lab study relays --chats generated --out relays --master spark://lab.example:7077",
)
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
    *,
    spark: SparkOptions,
) -> None:
    """Work out what becomes of every message of every chat, with relays and without.

    Undelivered events, time to the first delivery, empty online periods and reception after return, for
    five online margins per chat, beside the published figures. A sample of chats also runs
    through the shipped rooms and relays, and must agree. A study that was interrupted goes on where it was.
    """
    if (presence is PresenceBy.PHONES) != (sessions is not None):
        raise Failure("--presence phones and --sessions DIR belong together: give both", ExitCode.USAGE)

    def run(shop: Workshop) -> Report:
        from linnet.lab.relays.profile import Filters
        from linnet.lab.studies.relays.parameters import RelaysParameters
        from linnet.lab.studies.relays.study import study

        filters = Filters(most_members, fewest_messages, round(longest_run * 3_600_000))
        return study(
            shop,
            RelaysParameters(
                chats=chats, sessions=sessions, filters=filters, sample=sample, window=window, seed=seed
            ),
        )

    spark.run_study(run, out)


_ALWAYS = ("none", "forever")


class Presence(StrEnum):
    """The models of when people are online."""

    MARGINS = "margins"
    PHONES = "phones"
    BOTH = "both"


RetentionPresenceOption = Annotated[
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


@with_examples(
    "linnet lab study retention --chats zulip --out retention",
    "linnet lab study retention --chats zulip --out retention --presence both --sessions phones",
    "linnet lab study retention --chats zulip --out retention --retentions 12h,2d,14d --served 0.999",
)
def retention(
    chats: Chats,
    out: OutOption,
    presence: RetentionPresenceOption = Presence.MARGINS,
    sessions: Sessions = None,
    retentions: Retentions = "1m,10m,1h,6h,1d,3d,7d,30d,90d",
    relays: Relays = "0,1,2,3",
    served: Served = 0.99,
    lively: Lively = 60.0,
    seed: SeedOption = 1,
    *,
    spark: SparkOptions,
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
    kept, numbers = _milliseconds(retentions), read_numbers("--relays", relays)
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

    def run(shop: Workshop) -> Report:
        from linnet.lab.studies.retention.study import study

        return study(shop, parameters)

    spark.run_study(run, out)


def _milliseconds(words: str) -> tuple[int, ...]:
    """Retentions that were typed; those that are always there may be."""
    wanted = [word.strip() for word in words.split(",") if word.strip()]
    return tuple(round(parse_duration(word) * 1000) for word in wanted if word not in _ALWAYS)
