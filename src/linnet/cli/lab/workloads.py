"""Workloads for the lab: read from files of the world, or drawn."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.lab.options import OutOption, SeedOption, SparkOptions, lab_extra
from linnet.cli.options import with_examples
from linnet.cli.output import say, say_json, say_table, warn

if TYPE_CHECKING:
    from linnet.lab.generate.job import Generated
    from linnet.lab.sources.choices import Choices
    from linnet.lab.sources.messages import MessageCounts
    from linnet.lab.sources.surroundings import TableCounts


class Format(StrEnum):
    """The formats of sources."""

    ZULIP = "zulip"
    WHATSAPP = "whatsapp"
    ELEMENT = "element"
    SLACK = "slack"
    SLACK_CSV = "slack-csv"
    IRC = "irc"
    CSV = "csv"
    LINNET = "linnet"
    LATENCY = "latency"
    AVAILABILITY = "availability"
    SUBSCRIPTIONS = "subscriptions"


class Dates(StrEnum):
    """Orders of day, month and year."""

    DMY = "dmy"
    MDY = "mdy"
    YMD = "ymd"


class Unit(StrEnum):
    """Units of time."""

    S = "s"
    MS = "ms"
    ISO = "iso"


class Values(StrEnum):
    """The ways that a latency is measured."""

    RTT = "rtt"
    ONEWAY = "oneway"


FilesArgument = Annotated[list[Path], typer.Argument(metavar="FILE…", help="Files or folders of the source.")]
FormatOption = Annotated[Format, typer.Option("--format", help="What wrote the files.")]
Salt = Annotated[
    str | None, typer.Option(metavar="TEXT", help="Names are hashed with it; else one is kept in DIR/salt.")
]
Excluded = Annotated[
    Path | None,
    typer.Option(
        "--exclude-users", "--bots", metavar="FILE", help="CSV with a column user: these are left out."
    ),
]
WithoutBots = Annotated[bool, typer.Option("--without-bots", help="Leave out what Slack says bots said.")]
Timezone = Annotated[str, typer.Option(metavar="NAME", help="Of times that do not say theirs.")]
DatesOption = Annotated[
    Dates | None,
    typer.Option(help="Order of day, month, year in WhatsApp's dates.", show_default="found in the file"),
]
UnitOption = Annotated[Unit | None, typer.Option(help="Of the column ts of a csv; it must be stated.")]
ValuesOption = Annotated[
    Values | None, typer.Option(help="Latencies are for there and back, or one way; it must be stated.")
]
Columns = Annotated[
    str, typer.Option(metavar="A,B[,C]", help="Names of the columns of a latency or subscriptions table.")
]
KeepText = Annotated[bool, typer.Option("--keep-text", help="Also keep what was said, in DIR/texts.")]
KeepNames = Annotated[bool, typer.Option("--keep-names", help="Chats and topics keep their names.")]


@with_examples(
    "linnet lab ingest --format zulip messages.csv.gz --out chats",
    "linnet lab ingest --format whatsapp 'WhatsApp Chat with Tea.txt' --timezone Europe/Berlin --out chats",
    "linnet lab ingest --format csv chats.csv --unit ms --out chats",
    "linnet lab ingest --format latency pings.csv --values rtt --columns from,to,avg_ms --out net",
)
def ingest(
    files: FilesArgument,
    out: OutOption,
    format: FormatOption,
    timezone: Timezone = "UTC",
    dates: DatesOption = None,
    unit: UnitOption = None,
    values: ValuesOption = None,
    columns: Columns = "",
    exclude_users: Excluded = None,
    without_bots: WithoutBots = False,
    salt: Salt = None,
    keep_text: KeepText = False,
    keep_names: KeepNames = False,
    *,
    spark: SparkOptions,
) -> None:
    """Read files of the world into the lab's tables: messages, latencies, sessions or subscriptions.

    People become salted hashes, chats too unless they are numbers, and what was said becomes its
    length. Rows that cannot be used go to DIR/quarantine with file, line and reason.
    """
    with lab_extra():
        from linnet.lab.sources.choices import Choices
        from linnet.lab.sources.excluded import read_users

        choices = Choices(
            timezone=timezone,
            dates=dates or "",
            unit=unit or "",
            values=values or "",
            columns=tuple(name.strip() for name in columns.split(",")) if columns else (),
            without_bots=without_bots,
            excluded=read_users(exclude_users) if exclude_users else frozenset(),
            keep_text=keep_text,
        )
        counts = _ingested(files, out, format.value, choices, salt, keep_names, spark)
    if spark.as_json:
        say_json(counts)
    else:
        say_table(("of the source", "is "), _rows(counts))
        say(f"tables: {out}")


def _ingested(
    files: list[Path],
    out: Path,
    format: str,
    choices: Choices,
    salt: str | None,
    keep_names: bool,
    spark: SparkOptions,
) -> MessageCounts | TableCounts:
    """Look at the files, and only then start Spark."""
    from linnet.lab.sources.messages import ingest_messages, prepare, replaced
    from linnet.lab.sources.names import kept_salt, names_of
    from linnet.lab.sources.surroundings import SURROUNDINGS, ingest_surrounding, prepare_surrounding
    from linnet.lab.tables import MESSAGES

    around = SURROUNDINGS.get(format)
    source = (prepare_surrounding if around else prepare)(format, files, choices)
    table = around.table if around else MESSAGES
    if replaced(out, table, source):
        warn(f"linnet: {out / table.name} was made from other files; it is replaced")
    names = names_of(kept_salt(out) if salt is None else salt, keep_names)
    with spark.open_workshop(out) as place:
        return ingest_surrounding(place, source, names) if around else ingest_messages(place, source, names)


def _rows(counts: MessageCounts | TableCounts) -> list[tuple[str, object]]:
    from linnet.lab.sources.messages import MessageCounts

    if isinstance(counts, MessageCounts):
        found = [
            ("messages", counts.messages),
            *((f"  {kind}", count) for kind, count in counts.kinds.items()),
        ]
        if counts.unknown_lengths:
            found += [("  texts of unknown length", counts.unknown_lengths)]
        found += [("chats", counts.chats), ("users", counts.users)]
        days: list[tuple[str, object]] = [("from", _day(counts.first_ms)), ("to", _day(counts.last_ms))]
    else:
        found = [(counts.table, counts.rows), *counts.distinct.items()]
        days = []
    apart = counts.quarantined
    return [
        ("files", counts.files),
        *found,
        *days,
        ("in quarantine", sum(apart.values())),
        *((f"  {reason}", count) for reason, count in apart.items()),
    ]


def _day(ts: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(ts / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")


class Granularity(StrEnum):
    """The granularity of times."""

    PUBLISHED = "published"
    SECONDS = "s"


Chats = Annotated[int, typer.Option(min=1, max=99_999, help="How many chats.")]
Messages = Annotated[int, typer.Option(min=2, help="Messages in all; everybody in a chat writes one.")]
GranularityOption = Annotated[
    Granularity,
    typer.Option(help="published: 27 % of chats in seconds, the others in minutes; s: all in seconds."),
]


@with_examples(
    "linnet lab generate chats --out chats",
    "linnet lab generate chats --chats 1000 --messages 5000000 --seed 7 --out chats",
    "linnet lab generate chats --chats 50 --messages 20000 --granularity s --out few --json",
)
def chats(
    out: OutOption,
    chats: Chats = 5_956,
    messages: Messages = 76_000_000,
    granularity: GranularityOption = Granularity.PUBLISHED,
    seed: SeedOption = 1,
    *,
    spark: SparkOptions,
) -> None:
    """Draw chats like those of WhatsApp, by the source-traffic model of Poignée et al. 2025.

    Who writes, when, how much and of what kind is the model's. Ours are the laws of members (42 % of chats
    have two, 83 % at most 30, the largest 252) and of messages per chat (log-normal, sigma 1.43, at
    most two million), and that no chat lasts more than ten years: where it would, pauses above two
    minutes are drawn in. The same seed gives the same data_sha256 on any number of cores.
    """
    with lab_extra():
        from linnet.lab.generate.plan import Granularity as Times
        from linnet.lab.generate.plan import plan_chats

        times = Times(granularity.value)
        plan_chats(chats, messages, times, seed)  # what cannot be is told before Spark starts
    with spark.open_workshop(out) as made:
        from linnet.lab.generate.job import Wanted, generate

        generated = generate(made, Wanted(chats=chats, messages=messages, granularity=times, seed=seed))
        costs = made.costs
    if spark.as_json:
        say_json(
            {
                "chats": chats,
                "messages": messages,
                "granularity": granularity.value,
                "seed": seed,
                "data_sha256": generated.data_sha256,
                "figures": generated.figures,
                "stages": costs,
            }
        )
        return
    _say_chats(generated)
    for cost in costs:
        again = " (stood already)" if cost.reused else ""
        spent = f"{cost.seconds:.1f} s, {cost.peak_bytes / 2**30:.2f} GiB at most"
        say(f"{out / cost.name}: {cost.rows:,} rows, {spent}{again}")
    say(f"data_sha256: {generated.data_sha256}")


def _say_chats(generated: Generated) -> None:
    rows = [(each.title, each.unit, each.published, each.measured, each.note) for each in generated.figures]
    say_table(("of the chats", "", "published ", "generated ", "note"), rows)
