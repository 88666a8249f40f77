"""``linnet sim overlay``: nodes without trackers find each other by interests, while some lie and some go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.options import JsonOption, examples
from linnet.cli.simulating import (
    LatencyOption,
    SeedOption,
    progress_bar,
    show_outcome,
    simulation,
)

if TYPE_CHECKING:
    from linnet.sim.overlay_report import OverlayReport

EPILOG = examples(
    "linnet sim overlay --nodes 200 --topics 30 --subscriptions 6 --rounds 100",
    "linnet sim overlay --nodes 1000 --topics 100 --subscriptions 10 --liars 0.1 --churn 0.05 --json",
    "linnet sim overlay --nodes 100 --liars 0.3 --friends 0 --loss 0.05",
)

Nodes = Annotated[int, typer.Option(min=2, max=100_000, help="Nodes, the liars included.")]
TopicCount = Annotated[int, typer.Option("--topics", min=1, max=100_000, help="Topics in all.")]
Subscriptions = Annotated[int, typer.Option(min=1, max=1000, help="Topics of each node.")]
Liars = Annotated[
    float, typer.Option(min=0.0, max=0.5, help="Share of nodes that name liars alone and pass nothing on.")
]
Churn = Annotated[float, typer.Option(min=0.0, max=0.5, help="Share of nodes that are away at any time.")]
Rounds = Annotated[int, typer.Option(min=1, max=100_000, help="Rounds of gossip after the warm-up.")]
Warmup = Annotated[int, typer.Option(min=1, max=10_000, help="Rounds before anything is published.")]
Events = Annotated[int, typer.Option(min=1, max=10_000, help="Events published in each topic.")]
Friends = Annotated[int, typer.Option(min=0, max=100, help="Honest nodes that each honest node trusts.")]
Fanout = Annotated[int, typer.Option(min=2, max=16, help="Members that each passes an event on to.")]
Loss = Annotated[float, typer.Option(min=0.0, max=0.5, help="Share of messages that vanish.")]


def overlay(
    nodes: Nodes = 1000,
    topics: TopicCount = 100,
    subscriptions: Subscriptions = 10,
    liars: Liars = 0.1,
    churn: Churn = 0.05,
    rounds: Rounds = 400,
    warmup: Warmup = 60,
    events: Events = 10,
    friends: Friends = 3,
    fanout: Fanout = 3,
    loss: Loss = 0.0,
    latency: LatencyOption = "aws",
    seed: SeedOption = 1,
    as_json: JsonOption = False,
) -> None:
    """Run nodes without trackers: peer sampling, interest clustering, rings, and events along them.

    The shipped machine runs on every node, with real signatures. Liars answer questions with liars alone and
    pass nothing on. Exits 1 if an event came before its causes, twice, or to a node that is not in its topic.
    The same seed gives the same trace_sha256.
    """
    with simulation():
        from linnet.overlay.trackerless.config import TrackerlessConfig
        from linnet.sim.overlay import run_overlay
        from linnet.sim.overlay_report import OverlayScenario

        scenario = OverlayScenario(
            nodes=nodes,
            topics=topics,
            subscriptions=subscriptions,
            liars=liars,
            churn=churn,
            rounds=rounds,
            warmup=warmup,
            events=events,
            friends=friends,
            loss=loss,
            latency=latency,
            config=TrackerlessConfig(fanout=fanout),
            seed=seed,
        )
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
