"""``linnet lab study places``: what a log of fragments tells."""

from __future__ import annotations

from typing import Annotated

import typer

from linnet.cli.lab.options import MasterOption, MemoryOption, OutOption, SeedOption, say_report, workshop
from linnet.cli.options import JsonOption, examples

EPILOG = examples(
    "linnet lab study places --logs 50 --fragments 0 --out places",
    "linnet lab study places --out places",
    "linnet lab study places --out places --fragments 10000000",
)

Logs = Annotated[int, typer.Option(min=1, help="Random logs that are looked at in both ways.")]
Fragments = Annotated[int, typer.Option(min=0, help="Fragments of the log that is measured; 0: none.")]
Ids = Annotated[int, typer.Option(min=1, help="Messages of each place whose state is wanted.")]


def places(
    out: OutOption,
    logs: Logs = 300,
    fragments: Fragments = 1_000_000,
    ids: Ids = 4,
    seed: SeedOption = 1,
    master: MasterOption = "local[*]",
    memory: MemoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Put messages together, list gaps, work out states, audit hashes and generations, test memberships.

    Over random logs that the shipped voice said and something happened to, beside the shipped classes, which
    must agree; and over a large log, where each job is timed. A study that was interrupted goes on where it
    was.
    """
    with workshop(out, master, memory, as_json) as shop:
        from linnet.lab.report.writing import write_report
        from linnet.lab.studies.places.parameters import PlacesParameters
        from linnet.lab.studies.places.study import study

        parameters = PlacesParameters(logs=logs, fragments=fragments, ids=ids, seed=seed).checked()
        report = study(shop, parameters)
        write_report(report, out)
    say_report(report, out, as_json)
