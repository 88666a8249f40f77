"""``linnet sim content``: subscriptions to what is said, over a simulated network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.options import JsonOption, examples
from linnet.cli.output import say_json, say_table, warn
from linnet.cli.sim_nemesis import NemesisOption, SeedsOption, run_nemesis
from linnet.cli.simulating import LatencyOption, progress_bar, simulation

if TYPE_CHECKING:
    from linnet.sim.content import ContentReport

EPILOG = examples(
    "linnet sim content --nodes 60 --scenario event-burst",
    "linnet sim content --nodes 250 --variant base-unreliable --seed 1 --json",
    "linnet sim content --nodes 250 --contacts 8 --no-confirm",
    "linnet sim content --scenario fault --backups 3 --crashes 3 --place 20",
    "linnet sim content --nemesis all --seed 7",
)
_VARIANTS = ("base-unreliable", "base-reliable", "redirect-unreliable", "redirect-reliable", "fast")
_SCENARIOS = ("normal", "sub-burst", "event-burst", "fault")

Nodes = Annotated[int, typer.Option(min=10, max=10_000, help="Nodes; one in fifteen publishes.")]
Chosen = Annotated[
    str,
    typer.Option(
        "--variant",
        metavar="NAME",
        help="base-unreliable, base-reliable, redirect-unreliable, redirect-reliable (past nodes with one"
        " route), or fast: groups of publishers.",
    ),
]
Happening = Annotated[
    str, typer.Option("--scenario", metavar="NAME", help="normal, sub-burst, event-burst or fault.")
]
Loss = Annotated[float, typer.Option(min=0.0, max=0.5, help="Share of messages that vanish on a link.")]
Contacts = Annotated[
    int | None,
    typer.Option(min=2, help="Nodes that each node knows at most, instead of full tables."),
]
Confirm = Annotated[
    bool,
    typer.Option(help="Look all over the network before acting as rendezvous; without, as published."),
]
Backups = Annotated[int, typer.Option(min=0, max=8, help="Nodes that keep the filters of each node.")]
Crashes = Annotated[
    int | None,
    typer.Option(min=1, help="In a fault: nodes with consecutive ids that crash; without, as published."),
]
Place = Annotated[int, typer.Option(min=0, help="The first of these in the order of ids.")]
Seed = Annotated[int, typer.Option(min=0, help="Equal seeds give equal runs.")]
Trace = Annotated[
    Path | None, typer.Option(metavar="FILE.parquet", dir_okay=False, help="Write every record of the run.")
]


def content(
    nodes: Nodes = 60,
    variant: Chosen = "base-reliable",
    scenario: Happening = "normal",
    loss: Loss = 0.0,
    contacts: Contacts = None,
    confirm: Confirm = True,
    backups: Backups = 2,
    crashes: Crashes = None,
    place: Place = 0,
    latency: LatencyOption = "constant:10",
    seed: Seed = 1,
    trace: Trace = None,
    nemesis: NemesisOption = None,
    seeds: SeedsOption = 1,
    as_json: JsonOption = False,
) -> None:
    """Run ScoutSubs or FastDelivery over a simulated network: shipped nodes, a virtual clock, seeded links.

    Nodes subscribe by predicates and publish events with attributes (Agostinho 2021, chapter 5); who should
    have what is worked out from all predicates at once. Exits 1 if something is missing, or is where nobody
    asked for it.
    Times are simulated: links take time, processors do not. The same seed gives the same trace_sha256.
    """
    if variant not in _VARIANTS:
        raise Failure(f"--variant {variant}: one of {', '.join(_VARIANTS)}", ExitCode.USAGE)
    if scenario not in _SCENARIOS:
        raise Failure(f"--scenario {scenario}: one of {', '.join(_SCENARIOS)}", ExitCode.USAGE)
    if nemesis is not None:
        run_nemesis("content", nemesis, seed, seeds, as_json)
        return
    with simulation():
        from linnet.sim.content import ContentScenario, Variant, run_content
        from linnet.sim.content_workload import Course
        from linnet.trace.columns import ColumnTrace

        asked = ContentScenario(
            nodes=nodes,
            variant=Variant(variant),
            course=Course(scenario),
            loss=loss,
            latency=latency,
            contacts=contacts,
            confirm=confirm,
            backups=backups,
            crashes=crashes,
            place=place,
            seed=seed,
        )
        kept = ColumnTrace()
        with progress_bar(as_json) as progress:
            report = run_content(asked, kept, progress)
        if trace is not None:
            try:
                kept.write_parquet(trace)
            except OSError as error:
                raise Failure(f"{trace}: cannot be written: {error.strerror or error}") from error
    if as_json:
        say_json(report)
    else:
        say_table(("of the run", "is "), _rows(report))
    if not report.ok:
        for line in report.undelivered:
            warn(line)
        raise typer.Exit(ExitCode.FAILED)


def _rows(report: ContentReport) -> list[tuple[str, object]]:
    return [
        ("nodes", report.nodes),
        ("variant, scenario", f"{report.variant}, {report.scenario}"),
        ("subscriptions, publications", f"{report.subscriptions}, {report.publications}"),
        ("pairs of event and node that wants it", f"{report.expected:,}"),
        ("missing", report.missing),
        ("where nobody asked for them", report.false_positives),
        ("further receptions, share of expected", f"{report.duplicates_share:.4f}"),
        ("mean latency (simulated), ms", f"{report.mean_latency_ms:.1f}"),
        ("longest latency (simulated), ms", f"{report.max_latency_ms:.1f}"),
        ("mean hops, most hops", f"{report.mean_hops:.2f}, {report.max_hops}"),
        ("rendezvous that others do not agree with", report.rendezvous_disagreements),
        ("nodes that crashed", report.crashed),
        ("publications not known to have arrived", report.unsettled),
        ("publications missing somewhere without a word", report.untold),
        ("filters at the node with most", report.most_filters),
        ("messages", f"{report.messages:,}"),
        ("virtual time, s", report.virtual_seconds),
        ("wall-clock time, s", report.wall_seconds),
        ("trace_sha256", report.trace_sha256),
    ]
