"""``linnet lab study content``: subscriptions to what is said, in the published scenarios."""

from __future__ import annotations

from typing import Annotated

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.lab.options import MasterOption, MemoryOption, OutOption, SeedOption, say_report, workshop
from linnet.cli.options import JsonOption, examples

EPILOG = examples(
    "linnet lab study content --out content",
    "linnet lab study content --out content --nodes 60,250 --repeats 3",
)

Nodes = Annotated[str, typer.Option(metavar="N,N,...", help="Nodes of each network; published are 60.")]
Staged = Annotated[int, typer.Option(min=0, help="Nodes of the run in four stages; 0: none.")]
Backups = Annotated[str, typer.Option(metavar="F,F,...", help="Backups of a node in that run, each once.")]
Long = Annotated[int, typer.Option(min=0, help="Nodes of the long run, where some leave; 0: none.")]
Repeats = Annotated[int, typer.Option(min=1, help="Runs of each scenario, with other seeds.")]


def content(
    out: OutOption,
    nodes: Nodes = "60",
    staged: Staged = 75,
    backups: Backups = "1,2,3,5",
    long: Long = 30,
    repeats: Repeats = 1,
    seed: SeedOption = 1,
    master: MasterOption = "local[*]",
    memory: MemoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run the published scenarios of content with the shipped machines, and hold them against the thesis.

    Every scenario with every variant that `linnet sim content` knows, four stages with several numbers of
    backups, and a long run; what is missing, what comes twice,
    latencies (simulated: no processor in it) and costs, beside the published ones. A study that was
    interrupted goes on where it was.
    """
    sizes, copies = _numbers("--nodes", nodes), _numbers("--backups", backups)
    with workshop(out, master, memory, as_json) as shop:
        from linnet.lab.report.writing import write_report
        from linnet.lab.studies.content.parameters import ContentParameters
        from linnet.lab.studies.content.study import study

        parameters = ContentParameters(
            nodes=sizes, staged=staged, backups=copies, long=long, repeats=repeats, seed=seed
        ).checked()
        report = study(shop, parameters)
        write_report(report, out)
    say_report(report, out, as_json)


def _numbers(option: str, text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise Failure(
            f"{option} {text!r}: write numbers with commas between, such as 60,250", ExitCode.USAGE
        ) from None
