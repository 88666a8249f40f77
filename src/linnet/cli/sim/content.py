"""Content in simulation: subscriptions by predicates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.options import Options, with_examples
from linnet.cli.sim.attacks import AttackOptions, show_attack
from linnet.cli.sim.runner import LatencyOption, RunOptions, SeedOption, show_outcome, simulation

if TYPE_CHECKING:
    from linnet.sim.content.scenario import ContentReport

_VARIANTS = ("base-unreliable", "base-reliable", "redirect-unreliable", "redirect-reliable", "fast")
_SCENARIOS = ("normal", "sub-burst", "event-burst", "fault")


@dataclass(frozen=True)
class ContentOptions(Options):
    """The simulated network, and what happens in it; its fields are those of `ContentScenario`."""

    nodes: Annotated[int, typer.Option(min=10, max=10_000, help="Nodes; one in fifteen publishes.")] = 60
    variant: Annotated[
        str,
        typer.Option(
            "--variant",
            metavar="NAME",
            help="base-unreliable, base-reliable, redirect-unreliable, redirect-reliable (past nodes with one"
            " route), or fast: groups of publishers.",
        ),
    ] = "base-reliable"
    course: Annotated[
        str, typer.Option("--scenario", metavar="NAME", help="normal, sub-burst, event-burst or fault.")
    ] = "normal"
    loss: Annotated[
        float, typer.Option(min=0.0, max=0.5, help="Share of messages that vanish on a link.")
    ] = 0.0
    contacts: Annotated[
        int | None,
        typer.Option(min=2, help="Nodes that each node knows at most, instead of full tables."),
    ] = None
    confirm: Annotated[
        bool,
        typer.Option(help="Look all over the network before acting as rendezvous; without, as published."),
    ] = True
    backups: Annotated[int, typer.Option(min=0, max=8, help="Nodes that keep the filters of each node.")] = 2
    crashes: Annotated[
        int | None,
        typer.Option(min=1, help="In a fault: nodes with consecutive ids that crash; without, as published."),
    ] = None
    place: Annotated[int, typer.Option(min=0, help="The first of these in the order of ids.")] = 0
    latency: LatencyOption = "constant:10"
    seed: SeedOption = 1


@with_examples(
    "linnet sim content --nodes 60 --scenario event-burst",
    "linnet sim content --nodes 250 --variant base-unreliable --seed 1 --json",
    "linnet sim content --nodes 250 --contacts 8 --no-confirm",
    "linnet sim content --scenario fault --backups 3 --crashes 3 --place 20",
    "linnet sim content --nemesis all --seed 7",
    "linnet sim content --attack rendezvous --share 0.05",
)
def content(options: ContentOptions, attack: AttackOptions, run: RunOptions) -> None:
    """Run ScoutSubs or FastDelivery over a simulated network: shipped nodes, a virtual clock, seeded links.

    Nodes subscribe by predicates and publish events with attributes (Agostinho 2021, chapter 5); all
    predicates together tell which node should receive what. Exits 1 if an event is missing, or has reached a
    node that did not ask for it.
    Times are simulated: links take time, processors do not. The same seed gives the same trace_sha256.
    """
    if options.variant not in _VARIANTS:
        raise Failure(f"--variant {options.variant}: one of {', '.join(_VARIANTS)}", ExitCode.USAGE)
    if options.course not in _SCENARIOS:
        raise Failure(f"--scenario {options.course}: one of {', '.join(_SCENARIOS)}", ExitCode.USAGE)
    if run.nemesis is not None:
        run.run_nemesis(run.nemesis, "content", options.seed)
        return
    if attack.attack is not None:
        show_attack("content", attack.attack, attack.share, options.seed, run.as_json)
        return
    with simulation():
        from linnet.sim.content.scenario import ContentScenario, Course, Variant, run_content

        chosen = {"variant": Variant(options.variant), "course": Course(options.course)}
        scenario = ContentScenario(**vars(options) | chosen)
        report = run.run_scenario(run_content, scenario)
    show_outcome(report, _rows(report), run.as_json, report.ok, report.undelivered)


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
