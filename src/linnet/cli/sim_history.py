"""``linnet sim history``: a real concurrent history through a room, in every order of arrival."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.options import JsonOption, examples
from linnet.cli.output import say_json, say_table
from linnet.cli.simulating import SeedOption, progress_bar, simulation
from linnet.core.errors import BadText

EPILOG = examples(
    "linnet sim history friendsforever.json.gz",
    "linnet sim history clownschool.json.gz --replicas 8 --seed 3 --json",
)

_SOURCE = "https://github.com/josephg/editing-traces (concurrent_traces)"

File = Annotated[Path, typer.Argument(help="A concurrent editing trace, .json or .json.gz.")]
Replicas = Annotated[int, typer.Option(min=2, max=64, help="Members that get it, each in another order.")]
Steps = Annotated[int | None, typer.Option(min=1, help="Only so many steps from the beginning.")]
Data = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", envvar="LINNET_DATA", help="Where FILE is looked for, if it is not here; below it too."
    ),
]


def history(
    file: File,
    replicas: Replicas = 4,
    steps: Steps = None,
    seed: SeedOption = 1,
    data: Data = None,
    as_json: JsonOption = False,
) -> None:
    """Replay what people really did at the same time: each author a member, each step a signed event.

    Every replica is handed all events in an order of its own. Fails unless all come to one state and one
    causal order with nothing refused, nothing waiting, nothing before its cause.
    """
    with simulation():
        from linnet.sim.concurrent_history import History, read_history, replay

        try:
            read = read_history(_found(file, data))
        except BadText as error:
            raise Failure(str(error), ExitCode.USAGE) from error
        with progress_bar(as_json) as progress:
            report = replay(History(read.num_agents, read.txns[:steps]), replicas, seed, progress)
    fields = {name: getattr(report, name) for name in report.__struct_fields__}
    if as_json:
        say_json(report)
    else:
        say_table(("figure", "value "), [(name.replace("_", " "), f"{fields[name]:,}") for name in fields])
    if not report.agrees:
        raise Failure("the replicas do not agree, or not all of the history is in the room")


def _found(file: Path, data: Path | None) -> Path:
    if file.is_file():
        return file
    below = () if data is None else sorted(data.rglob(file.name))
    if not below:
        raise Failure(f"there is no file {file}; public histories: {_SOURCE}", ExitCode.USAGE)
    return below[0]
