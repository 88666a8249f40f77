"""``linnet lab study streams``: overlays, floods and their delays."""

from __future__ import annotations

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
from linnet.cli.simulating import LatencyOption

EPILOG = examples(
    "linnet lab study streams --sizes 32,64 --repeats 2 --out streams",
    "linnet lab study streams --out streams",
    "linnet lab study streams --out streams --latency delays.csv --modes counter,aware",
    "linnet lab study streams --out streams --large 100000",
)

Sizes = Annotated[str, typer.Option(metavar="N,N,...", help="Nodes in the stream.")]
Repeats = Annotated[int, typer.Option(min=1, help="Runs of each size and mode, with other seeds.")]
Modes = Annotated[str, typer.Option(metavar="MODE,...", help="Some of counter, naive, aware.")]
Degree = Annotated[int, typer.Option(min=3, max=64, help="Neighbours of a node.")]
Messages = Annotated[int, typer.Option(min=1, help="Messages in each run.")]
Throttle = Annotated[
    float, typer.Option(metavar="SECONDS", min=0.0, help="Between naive joins above 1,000 nodes.")
]
ThrottledRepeats = Annotated[int, typer.Option(min=1, help="Runs of these at most; they take longest.")]
Degrees = Annotated[
    str, typer.Option(metavar="D,D,...", help="Degrees of the runs about redundancy; '' for none.")
]
PairNodes = Annotated[int, typer.Option(max=2000, help="Nodes of the graphs whose randomness is looked at.")]
PairGraphs = Annotated[int, typer.Option(min=0, help="How many of these; 0 for none.")]
Large = Annotated[
    int, typer.Option(min=0, help="Estimate graphs up to this size from sampled sources; 0: none.")
]
Sources = Annotated[int, typer.Option(min=1, help="How many sources are sampled.")]


def streams(
    out: OutOption,
    sizes: Sizes = "32,64,128,256,512,1024,2048",
    repeats: Repeats = 10,
    modes: Modes = "counter,naive,aware",
    degree: Degree = 4,
    messages: Messages = 50,
    latency: LatencyOption = "aws",
    throttle: Throttle = 0.05,
    throttled_repeats: ThrottledRepeats = 2,
    degrees: Degrees = "4,6,8,10,12,14,16",
    pair_nodes: PairNodes = 200,
    pair_graphs: PairGraphs = 200,
    large: Large = 10_000,
    sources: Sources = 32,
    seed: SeedOption = 1,
    master: MasterOption = "local[*]",
    memory: MemoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Simulate stream overlays of the shipped nodes, and measure what floods through them.

    Delay, predictability, relative delay penalty, hops, redundancy, randomness and growth, for both control
    protocols and for overlays with near links, beside the published figures. A study that was interrupted
    goes on where it was.
    """
    wanted_sizes, wanted_degrees = _numbers("--sizes", sizes), _numbers("--degrees", degrees)
    with workshop(out, master, memory, as_json) as shop:
        from linnet.lab.report.writing import write_report
        from linnet.lab.studies.streams.parameters import StreamsParameters
        from linnet.lab.studies.streams.study import study

        report = study(
            shop,
            StreamsParameters(
                sizes=wanted_sizes,
                repeats=repeats,
                modes=tuple(mode.strip() for mode in modes.split(",") if mode.strip()),
                degree=degree,
                messages=messages,
                throttle=throttle,
                throttled_repeats=throttled_repeats,
                latency=latency,
                degrees=wanted_degrees,
                pair_nodes=pair_nodes,
                pair_graphs=pair_graphs,
                large=large,
                sources=sources,
                seed=seed,
            ),
        )
        write_report(report, out)
    say_report(report, out, as_json)


def _numbers(option: str, text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise Failure(
            f"{option} {text!r}: write numbers with commas between, such as 32,64", ExitCode.USAGE
        ) from None
