"""Streams in simulation: how one spreads, and what happens when all nodes join at once."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.options import JsonOption, Options, with_examples
from linnet.cli.output import progress_bar, say_json, say_table
from linnet.cli.sim.attacks import ShareOption, rows_of, show_attack
from linnet.cli.sim.runner import LatencyOption, RunOptions, SeedOption, show_outcome, simulation

if TYPE_CHECKING:
    from linnet.sim.attacks.silent_streams import StreamAttackReport
    from linnet.sim.streams.course import MassJoin, StreamReport


class ControlKind(StrEnum):
    """The control protocols of the overlay."""

    COUNTER = "counter"
    NAIVE = "naive"


@dataclass(frozen=True)
class StreamOptions(Options):
    """The simulated stream, and what goes wrong in it; its fields are those of `StreamScenario`."""

    nodes: Annotated[
        int, typer.Option(min=2, max=100_000, help="Nodes in the stream, besides the tracker.")
    ] = 32
    degree: Annotated[int, typer.Option(min=2, max=64, help="Neighbours of a node.")] = 4
    control: Annotated[ControlKind, typer.Option(help="Control protocol between tracker and nodes.")] = (
        ControlKind.COUNTER
    )
    near: Annotated[bool, typer.Option("--near", help="Half of the neighbours are near ones.")] = False
    latency: LatencyOption = "aws"
    messages: Annotated[
        int, typer.Option(min=0, max=1_000_000, help="Events in all, from sources that the seed draws.")
    ] = 50
    seed: SeedOption = 1
    join: Annotated[
        str, typer.Option(metavar="mass|SECONDS", help="All at once, or so long between joins.")
    ] = "mass"
    gap: Annotated[float, typer.Option(min=0.0, help="Seconds between events.")] = 1.0
    loss: Annotated[
        float, typer.Option(min=0.0, max=0.9, help="Share of messages that vanish on a link.")
    ] = 0.0
    jitter: Annotated[float, typer.Option(min=0.0, help="Seconds that a message may take longer.")] = 0.0
    churn: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", min=0.1, help="Mean time that a node stays up; unset: nobody goes."),
    ] = None
    churn_down: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.0, help="Mean time that it stays away.")
    ] = 5.0
    storage: Annotated[int, typer.Option(min=0, help="Nodes that keep the stream for the others.")] = 0
    suppress: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0.0, help="Hold an event back to skip neighbours that have it."),
    ] = 0.0


_MOST = 0.95
"""The largest share of nodes that do not behave as the others."""
SHARED = ("silent", "mute", "sleeper", "selective", "partial", "late", "slow", "sleepy", "lossy")
"""The ways in which nodes behave for which the other options count (`linnet.sim.attacks.conduct.Conduct`)."""


class JoinOrder(StrEnum):
    """When attackers join."""

    BEFORE = "before"
    AFTER = "after"
    AMONG = "among"


@dataclass(frozen=True)
class StreamAttackOptions(Options):
    """Nodes of the stream that behave otherwise."""

    attack: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Measure an attack beside the same run without it. Neighbours that forward nothing: silent, "
            "mute, sleeper (later), selective (to some), partial, late; honest ones in trouble: slow, "
            "sleepy, lossy. Of the other options --nodes (the honest ones), --degree, --messages, --gap, "
            "--latency and --seed count then. For other attacks (a wrong name lists them) only --share and "
            "--seed.",
        ),
    ] = None
    share: ShareOption = None
    order: Annotated[JoinOrder, typer.Option(help="When attackers join.")] = JoinOrder.AFTER
    publishers: Annotated[int, typer.Option(min=1, help="With --attack: honest nodes that publish.")] = 1
    networks: Annotated[
        int, typer.Option(min=0, help="Networks that attackers come from; 0: each from its own.")
    ] = 0
    crowding: Annotated[
        bool, typer.Option("--crowding", help="Attackers claim that links among themselves fail.")
    ] = False


@with_examples(
    "linnet sim streams --nodes 256 --messages 50 --seed 1",
    "linnet sim streams --nodes 2048 --control counter --latency aws --json",
    "linnet sim streams --nodes 64 --loss 0.01 --storage 2 --trace run.parquet",
    "linnet sim streams --nodes 512 --near",
    "linnet sim streams --nemesis all --seed 7",
    "linnet sim streams --nodes 24 --attack silent --share 0.5 --order before",
    "linnet sim streams --attack isolate --json",
)
def streams(options: StreamOptions, attack: StreamAttackOptions, run: RunOptions) -> None:
    """Run a stream over a simulated network: the shipped node, a virtual clock, seeded links.

    Nodes join, the tracker builds the overlay, events are flooded, and the delays are held against
    shortest paths. Times are virtual; the same seed gives the same trace_sha256 everywhere.
    """
    if run.nemesis is not None:
        run.run_nemesis(run.nemesis, "streams", options.seed)
        return
    if attack.attack is not None:
        if attack.attack in SHARED:
            _run_attack(options, attack, attack.attack, run)
        else:
            show_attack("streams", attack.attack, attack.share, options.seed, run.as_json)
        return
    with simulation():
        from linnet.overlay.config import Control
        from linnet.sim.streams.course import run_streams
        from linnet.sim.streams.world import StreamScenario

        control, join = Control(options.control.value), _join_seconds(options.join)
        scenario = StreamScenario(**vars(options) | {"control": control, "join": join})
        report = run.run_scenario(run_streams, scenario)
    show_outcome(report, _rows(report), run.as_json, True, ())


def _run_attack(options: StreamOptions, attack: StreamAttackOptions, conduct: str, run: RunOptions) -> None:
    if attack.publishers > options.nodes:
        raise Failure(
            f"--publishers {attack.publishers}: there are {options.nodes} honest nodes", ExitCode.USAGE
        )
    share = 0.5 if attack.share is None else attack.share
    if share > _MOST:
        raise Failure(f"--share {share:g}: {_MOST:g} at most, somebody is honest", ExitCode.USAGE)
    with simulation():
        from linnet.sim.attacks.conduct import Conduct
        from linnet.sim.attacks.silent_streams import Order, StreamAttack, run_stream_attack

        scenario = StreamAttack(
            conduct=Conduct(conduct),
            share=share,
            order=Order(attack.order.value),
            honest=options.nodes,
            publishers=attack.publishers,
            messages=options.messages,
            gap=options.gap,
            networks=attack.networks,
            crowding=attack.crowding,
            degree=options.degree,
            latency=options.latency,
            seed=options.seed,
        )
        report = run.run_scenario(run_stream_attack, scenario)
    show_outcome(report, _attack_rows(report), run.as_json, True, ())


def _attack_rows(report: StreamAttackReport) -> list[tuple[str, object]]:
    return [
        *rows_of(report.figures),
        ("readers", report.readers),
        ("attackers", report.attackers),
        ("readers that lack events", report.cut_off),
        ("readers that got nothing", report.got_nothing),
        ("of the lacking ones told", report.cut_off_told),
        ("attackers blamed", report.hostile_blamed),
        ("honest nodes blamed", report.honest_blamed),
        ("bytes of honest nodes without the attack", report.honest_bytes_without),
        ("virtual time, s", report.virtual_seconds),
        ("wall-clock time, s", report.wall_seconds),
        ("trace_sha256", report.trace_sha256),
    ]


def _join_seconds(text: str) -> float:
    if text == "mass":
        return 0.0
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 3600:
        raise Failure(f"--join {text!r}: write mass, or seconds from 0 to 3600", ExitCode.USAGE)
    return seconds


def _rows(report: StreamReport) -> list[tuple[str, object]]:
    degrees = f"{report.degree_min} to {report.degree_max}"
    return [
        ("nodes", report.nodes),
        ("degrees", f"{report.degree_min}" if report.degree_min == report.degree_max else degrees),
        ("events", report.messages),
        ("completeness", f"{report.completeness:.6f}"),
        ("sends per event", report.sends_per_message),
        ("mean delay, ms", report.mean_delay_ms),
        ("mean of shortest paths, ms", report.estimate_ms),
        ("the same from all sources, ms", report.estimate_all_ms),
        ("99 % delay, ms", report.p99_delay_ms),
        ("hops, mean and most", f"{report.mean_hops:.2f} and {report.max_hops}"),
        ("mean delay of links, ms", report.mean_edge_delay_ms),
        ("mean delay of pairs, ms", report.pair_mean_delay_ms),
        ("overlay settled at, s", report.converged_at),
        ("control messages until then", report.control_messages),
        ("virtual time, s", report.virtual_seconds),
        ("wall-clock time, s", report.wall_seconds),
        ("messages handled a second", round(report.receives_per_second)),
        ("trace_sha256", report.trace_sha256),
    ]


_COLUMNS = (
    "control",
    "joins",
    "regular",
    "wrong degree ",
    "one-sided ",
    "settled after s ",
    "control messages ",
    "stale ",
    "mean link ms ",
    "mean pair ms ",
)


@dataclass(frozen=True)
class MassJoinOptions(Options):
    """The nodes that join, and when the overlay is examined."""

    nodes: Annotated[int, typer.Option(min=2, max=100_000, help="Nodes that join.")] = 1000
    degree: Annotated[int, typer.Option(min=2, max=64, help="Neighbours of a node.")] = 4
    seed: SeedOption = 1
    latency: LatencyOption = "aws"
    throttle: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.0, help="Between joins, in the throttled runs.")
    ] = 0.05
    at: Annotated[
        float, typer.Option("--at", metavar="SECONDS", min=1.0, help="Virtual second of the look.")
    ] = 120.0


@with_examples("linnet sim mass-join --nodes 200", "linnet sim mass-join --nodes 1000 --seed 7 --json")
def mass_join(options: MassJoinOptions, as_json: JsonOption = False) -> None:
    """Let everyone join at once, and one after another, with both control protocols.

    The overlays are looked at in the same virtual second, whether they are regular by then or not.
    """
    with simulation():
        from linnet.sim.streams import course
        from linnet.sim.streams.world import StreamScenario

        scenario = StreamScenario(options.nodes, options.degree, latency=options.latency, seed=options.seed)
        with progress_bar(as_json) as progress:
            results = course.mass_join(scenario, options.throttle, options.at, progress)
    if as_json:
        say_json(results)
    else:
        say_table(_COLUMNS, map(_join_row, results))


def _join_row(result: MassJoin) -> tuple[object, ...]:
    return (
        result.control.value,
        f"every {result.join:g} s" if result.join else "all at once",
        result.regular,
        result.violations,
        result.one_sided,
        result.converged_at,
        result.control_messages,
        result.statuses_stale,
        result.mean_edge_delay_ms,
        result.pair_mean_delay_ms,
    )
