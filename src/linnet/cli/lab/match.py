"""``linnet lab match``: which of many subscriptions accept which of many events."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from linnet.cli.lab.options import MasterOption, MemoryOption, OutOption, SeedOption, say_report, workshop
from linnet.cli.options import JsonOption, examples

EPILOG = examples(
    "linnet lab match --events 100000 --subscriptions 100000 --out matched",
    "linnet lab match --events 1000000 --subscriptions 1000000 --data streams --out matched --json",
)

Events = Annotated[int, typer.Option(min=1, help="Events.")]
Subscriptions = Annotated[int, typer.Option(min=1, help="Subscriptions.")]
Data = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        exists=True,
        file_okay=False,
        help="Real streams, known by the names of their files: see docs/lab/matching.md.",
    ),
]
Plain = Annotated[
    int, typer.Option(min=0, help="Events, and subscriptions, of the plain join beside it; 0: none.")
]
Sample = Annotated[int, typer.Option(min=1, help="Events that the shipped index is asked about as well.")]
Capacity = Annotated[int, typer.Option(min=10, help="Predicates of one piece, about.")]


def match(
    out: OutOption,
    events: Events = 100_000,
    subscriptions: Subscriptions = 100_000,
    data: Data = None,
    plain: Plain = 1_000,
    sample: Sample = 100,
    capacity: Capacity = 20_000,
    seed: SeedOption = 1,
    master: MasterOption = "local[*]",
    memory: MemoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Match events and subscriptions on Spark, beside the index of a node and a plain join.

    Events are records of real streams (--data) or drawn; subscriptions are drawn around their values. Every
    predicate lives at its rarest attribute, in a piece that one task searches. Exits 1 if a match differs
    from what the index of a node finds. A run that was interrupted goes on where it was.
    """
    with workshop(out, master, memory, as_json) as shop:
        from linnet.lab.matching.job import match as run
        from linnet.lab.matching.parameters import MatchParameters
        from linnet.lab.report.writing import write_report

        parameters = MatchParameters(
            events=events,
            subscriptions=subscriptions,
            data="" if data is None else str(data),
            plain=plain,
            sample=sample,
            capacity=capacity,
            seed=seed,
        ).checked()
        report = run(shop, parameters)
        write_report(report, out)
    say_report(report, out, as_json)
