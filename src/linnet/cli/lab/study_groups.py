"""``linnet lab study groups``: what keys without a server cost."""

from __future__ import annotations

import os
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
    "linnet lab study groups --sizes 8,16,32 --repeats 1 --scaling 0 --missed 4 --out groups",
    "linnet lab study groups --out groups",
    "linnet lab study groups --out groups --data dcgka",
)

Sizes = Annotated[str, typer.Option(metavar="N,N,...", help="Members of the group.")]
Repeats = Annotated[int, typer.Option(min=1, help="Timed runs of each operation and size.")]
Scaling = Annotated[int, typer.Option(min=0, help="Time updates in groups up to this size; 0: none.")]
Batch = Annotated[int, typer.Option(min=1, help="Updates that are acknowledged one by one, and at once.")]
Missed = Annotated[int, typer.Option(min=0, help="Updates that a member catches up with; 0: none.")]
Fuzz = Annotated[int, typer.Option(min=0, help="Random groups that are run; 0: none.")]
Data = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        exists=True,
        file_okay=False,
        help="Where traffic.csv and time.csv.gz of the published benchmark lie, or below it.  "
        "[default: LINNET_DATA, if they are there]",
        show_default=False,
    ),
]


def groups(
    out: OutOption,
    data: Data = None,
    sizes: Sizes = "8,11,16,22,32,45,64,90,128",
    repeats: Repeats = 3,
    scaling: Scaling = 256,
    batch: Batch = 8,
    missed: Missed = 32,
    fuzz: Fuzz = 10,
    seed: SeedOption = 1,
    master: MasterOption = "local[*]",
    memory: MemoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure group operations of the shipped code: bytes, processor time, keys, beside the published ones.

    Creating, adding, removing, updating and speaking in groups of growing size, with every acknowledgement;
    catching up, states, views, random groups. Limits of bytes must hold; limits of time are told. A study
    that was interrupted goes on where it was.
    """
    wanted = _numbers(sizes)
    with workshop(out, master, memory, as_json) as shop:
        from linnet.lab.report.writing import write_report
        from linnet.lab.studies.groups.parameters import GroupsParameters
        from linnet.lab.studies.groups.study import study

        parameters = GroupsParameters(
            sizes=wanted, repeats=repeats, scaling=scaling, batch=batch, missed=missed, fuzz=fuzz, seed=seed
        ).checked()
        report = study(shop, parameters, _raw(data))
        write_report(report, out)
    say_report(report, out, as_json)


def _raw(data: Path | None) -> Path | None:
    """The folder of the raw measurements. Asked for and not there is an error; else the printed tables do."""
    from linnet.lab.studies.groups.authors import TIME, TRAFFIC, find_authors

    known = os.environ.get("LINNET_DATA")
    place = data or (Path(known) if known else None)
    found = None if place is None else find_authors(place)
    if found is None and data is not None:
        raise Failure(f"there is no {TRAFFIC} with {TIME} in {data} or below it", ExitCode.USAGE)
    return found


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise Failure(
            f"--sizes {text!r}: write numbers with commas between, such as 8,32", ExitCode.USAGE
        ) from None
