"""Overlays in simulation: nodes find each other by interests, while some lie and some leave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.options import JsonOption, Options, with_examples
from linnet.cli.output import progress_bar
from linnet.cli.sim.runner import LatencyOption, SeedOption, show_outcome, simulation

if TYPE_CHECKING:
    from linnet.sim.overlay.scenario import OverlayReport


@dataclass(frozen=True)
class OverlayOptions(Options):
    """The simulated nodes, and what goes wrong; fields of `OverlayScenario`, and the fanout."""

    nodes: Annotated[int, typer.Option(min=2, max=100_000, help="Nodes, the liars included.")] = 1000
    topics: Annotated[int, typer.Option("--topics", min=1, max=100_000, help="Topics in all.")] = 100
    subscriptions: Annotated[int, typer.Option(min=1, max=1000, help="Topics of each node.")] = 10
    liars: Annotated[
        float,
        typer.Option(min=0.0, max=0.5, help="Share of nodes that name liars alone and pass nothing on."),
    ] = 0.1
    churn: Annotated[
        float, typer.Option(min=0.0, max=0.5, help="Share of nodes that are away at any time.")
    ] = 0.05
    rounds: Annotated[int, typer.Option(min=1, max=100_000, help="Rounds of gossip after the warm-up.")] = 400
    warmup: Annotated[int, typer.Option(min=1, max=10_000, help="Rounds before anything is published.")] = 60
    events: Annotated[int, typer.Option(min=1, max=10_000, help="Events published in each topic.")] = 10
    friends: Annotated[
        int, typer.Option(min=0, max=100, help="Honest nodes that each honest node trusts.")
    ] = 3
    fanout: Annotated[int, typer.Option(min=2, max=16, help="Members that each passes an event on to.")] = 3
    loss: Annotated[float, typer.Option(min=0.0, max=0.5, help="Share of messages that vanish.")] = 0.0
    latency: LatencyOption = "aws"
    seed: SeedOption = 1


@with_examples(
    "linnet sim overlay --nodes 200 --topics 30 --subscriptions 6 --rounds 100",
    "linnet sim overlay --nodes 1000 --topics 100 --subscriptions 10 --liars 0.1 --churn 0.05 --json",
    "linnet sim overlay --nodes 100 --liars 0.3 --friends 0 --loss 0.05",
)
def overlay(options: OverlayOptions, as_json: JsonOption = False) -> None:
    """Run nodes without trackers: peer sampling, interest clustering, rings, and events along them.

    The shipped machine runs on every node, with real signatures. Liars answer questions with liars alone and
    pass nothing on. Exits 1 if an event came before its causes, twice, or to a node that is not in its topic.
    The same seed gives the same trace_sha256.
    """
    with simulation():
        from linnet.overlay.gossip.config import TrackerlessConfig
        from linnet.sim.overlay.course import run_overlay
        from linnet.sim.overlay.scenario import OverlayScenario

        fields = dict(vars(options))
        config = TrackerlessConfig(fanout=fields.pop("fanout"))
        scenario = OverlayScenario(config=config, **fields)
        with progress_bar(as_json) as progress:
            report = run_overlay(scenario, progress)
    wrong = "events came before their causes, twice, or to nodes that are not in their topic"
    show_outcome(report, _rows(report), as_json, report.ok, (wrong,))


def _rows(report: OverlayReport) -> list[tuple[str, object]]:
    lying = f"{report.liar_view_share} and {report.liar_view_share_peak}"
    return [
        ("nodes, of them liars", f"{report.nodes} and {report.liars}"),
        ("topics and subscriptions", f"{report.topics} and {report.subscriptions}"),
        ("rounds after the warm-up", report.rounds),
        ("events published", report.events),
        ("hit ratio within 10 s, passed on alone", report.hit_ratio),
        ("hit ratio after repair", report.hit_ratio_after_repair),
        ("liars' share of samples, and at most", lying),
        ("liars' share of those kept for being alike", report.liar_alike_share),
        ("topics connected, and at least", f"{report.connected_topics} and {report.connected_topics_least}"),
        ("places on rings that are right", report.rings_right),
        ("neighbours of a node, and open links", f"{report.mean_degree} and {report.mean_links}"),
        ("hops of first copies, mean and most", f"{report.mean_hops} and {report.max_hops}"),
        ("delay of first copies, ms", report.mean_delay_ms),
        ("copies for each event handed over", report.duplication),
        ("share that had to be asked for", report.fetched),
        ("handed over before their causes", report.causal_violations),
        ("handed over twice", report.repeated),
        ("events at nodes outside of the topic", report.noise),
        ("rounds until half had a neighbour", report.join_rounds),
        ("messages", report.messages),
        ("intersections, of them empty", f"{report.intersections} and {report.intersections_empty}"),
        ("wall-clock time, s, and memory, MB", f"{report.wall_seconds} and {report.memory_mb}"),
        ("trace_sha256", report.trace_sha256),
    ]
