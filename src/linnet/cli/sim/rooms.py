"""Rooms in simulation: members who come and go, what relays learn, and a real history in any order."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.options import JsonOption, Options, with_examples
from linnet.cli.output import progress_bar, say, say_json, say_table
from linnet.cli.sim.runner import LatencyOption, RunOptions, SeedOption, show_outcome, simulation
from linnet.core.errors import BadText

if TYPE_CHECKING:
    from linnet.sim.attacks.lying_relays import RelayAttackReport
    from linnet.sim.rooms.metadata import Knowledge
    from linnet.sim.rooms.scenario import RoomsReport


@dataclass(frozen=True)
class RoomOptions(Options):
    """The simulated room, and what goes wrong in it; its fields are those of `RoomScenario`."""

    peers: Annotated[int, typer.Option(min=2, max=1000, help="People in the room, with one device each.")] = (
        20
    )
    relays: Annotated[
        int, typer.Option(min=0, max=32, help="Relays of the room; they are always online.")
    ] = 3
    messages: Annotated[int, typer.Option(min=0, max=100_000, help="Messages in all, at random times.")] = 200
    offline: Annotated[
        float, typer.Option(min=0.0, max=0.95, help="Share of the time that a peer is away.")
    ] = 0.5
    bans: Annotated[int, typer.Option(min=0, help="People who are banned on the way.")] = 3
    demotions: Annotated[int, typer.Option(min=0, help="People who lose the level to speak on the way.")] = 2
    seed: SeedOption = 1
    loss: Annotated[
        float, typer.Option(min=0.0, max=0.9, help="Share of messages that vanish on a link.")
    ] = 0.0
    jitter: Annotated[float, typer.Option(min=0.0, help="Seconds that a message may take longer.")] = 0.0
    partition: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0.0, help="For so long one half cannot reach the other half."),
    ] = 0.0
    latency: LatencyOption = "aws"
    gap: Annotated[float, typer.Option(min=0.01, help="Seconds between messages, on average.")] = 1.0


class Lie(StrEnum):
    """What lying relays do, as in `linnet.sim.attacks.lying_relays.RelayLie`."""

    WITHHOLD = "withhold"
    REORDER = "reorder"
    REPLAY = "replay"
    SPLIT = "split"


@dataclass(frozen=True)
class RelayAttackOptions(Options):
    """The relays that lie."""

    attack: Annotated[
        Lie | None,
        typer.Option(
            "--attack",
            metavar="LIE",
            help="Let relays lie (withhold, reorder, replay, split), and hold the run against one in which "
            "they do not. Members come one at a time, then all meet. Of the other options --peers, --relays, "
            "--messages, --seed, --latency, --loss, --jitter and --trace count.",
        ),
    ] = None
    liars: Annotated[int, typer.Option(min=1, max=32, help="With --attack: relays that lie.")] = 1


@with_examples(
    "linnet sim rooms --peers 20 --relays 3 --messages 200 --offline 0.5 --bans 3 --seed 1",
    "linnet sim rooms --relays 0 --json",
    "linnet sim rooms --loss 0.01 --partition 60 --trace run.parquet",
    "linnet sim rooms --nemesis all --seed 7",
    "linnet sim rooms --attack withhold --peers 8 --relays 2 --messages 48",
    "linnet sim rooms --attack replay --relays 1 --json",
)
def rooms(options: RoomOptions, lies: RelayAttackOptions, run: RunOptions) -> None:
    """Run a room over a simulated network: the shipped node, a virtual clock, seeded links.

    People come and go, speak, and some are banned or demoted on the way. At the end all are online, and a
    judge that has every event works out who should have got what. Exits 1 if anything is missing, was
    delivered without permission, or is claimed wrongly. The same seed gives the same trace_sha256.
    """
    if run.nemesis is not None:
        run.run_nemesis(run.nemesis, "rooms", options.seed)
        return
    if lies.attack is not None:
        _attack(options, run, lies.attack, lies.liars)
        return
    with simulation():
        from linnet.sim.rooms.scenario import RoomScenario, run_rooms

        report = run.run_scenario(run_rooms, RoomScenario(**vars(options)))
    complaints = (*report.undelivered, *report.ledger_wrong_lines)
    show_outcome(report, _rows(report), run.as_json, report.ok, complaints)


def _attack(options: RoomOptions, run: RunOptions, lie: Lie, liars: int) -> None:
    with simulation():
        from linnet.sim.attacks.lying_relays import RelayAttackPlan, RelayLie, run_relay_attack

        shared = ("peers", "relays", "messages", "seed", "latency", "loss", "jitter")
        chosen = {name: getattr(options, name) for name in shared}
        plan = RelayAttackPlan(RelayLie(lie.value), liars=liars, **chosen)
        report = run.run_scenario(run_relay_attack, plan)
    figures = report.figures
    complaint = (
        f"{figures.honest_due - figures.delivered} of {figures.honest_due} deliveries lost, "
        f"{report.members - report.right_states} members with another state, "
        f"{report.falsely_caught} faults found in honest relays"
    )
    show_outcome(report, _attack_rows(report), run.as_json, report.ok, (complaint,))


def _attack_rows(report: RelayAttackReport) -> list[tuple[str, object]]:
    figures = report.figures
    told = figures.told_after_seconds
    return [
        ("lie", figures.attack),
        ("share of the relays that lie", f"{figures.share:.0%}"),
        ("deliveries due", figures.honest_due),
        ("made by relays alone", report.alone),
        ("the same without the attack", report.alone_without),
        ("made once members met", figures.delivered),
        ("the same without the attack", figures.delivered_without),
        ("longest time to a delivery, s", figures.worst_seconds),
        ("a liar was caught after, s", "never" if told is None else told),
        ("members who know that it lies", f"{report.caught_at} of {report.members}"),
        ("faults found in honest relays", report.falsely_caught),
        ("members with the right state", f"{report.right_states} of {report.members}"),
        ("bytes that liars sent", figures.attacker_bytes),
        ("bytes that all others sent", figures.honest_bytes),
    ]


def _rows(report: RoomsReport) -> list[tuple[str, object]]:
    return [
        ("peers and relays", f"{report.peers} and {report.relays}"),
        ("events, and messages among them", f"{report.events:,} and {report.messages:,}"),
        ("declined by the speaker's own node", report.declined),
        ("banned and demoted", f"{report.banned} and {report.demoted}"),
        ("share of time away", f"{report.offline_share:.3f}"),
        ("pairs of event and member", report.pairs),
        ("delivered by the end", f"{report.delivered_share:.6f}"),
        ("delivered at the first return", f"{report.first_return_share:.6f}"),
        ("delivered without permission", report.unauthorised_delivered),
        ("events that met a removal", report.endangered),
        ("soft-failed somewhere", report.soft_failed),
        ("different states at the end", report.distinct_states),
        ("states that are wrong", report.states_wrong),
        ("shown before their causes", report.causal_violations),
        ("shown twice", report.duplicate_deliveries),
        ("lines of ledgers", report.ledger_lines),
        ("of them wrong", report.ledger_wrong),
        ("of them behind the facts", report.ledger_pending),
        ("virtual time, s", report.virtual_seconds),
        ("wall-clock time, s", report.wall_seconds),
        ("trace_sha256", report.trace_sha256),
    ]


_KNOWN = {
    "people": "members that it knows",
    "control_events": "control events, kept for ever",
    "events_held": "other events held at the end",
    "events_seen": "other events that it ever held",
    "event_hours": "hours that it held them, in all",
    "plain_state": "names and other plain state held",
    "people_seen": "people whose devices came to it",
}


@dataclass(frozen=True)
class MetadataOptions(Options):
    """The room about which relays learn something."""

    peers: Annotated[int, typer.Option(min=2, max=1000, help="People in the room, with one device each.")] = (
        20
    )
    relays: Annotated[
        int, typer.Option(min=1, max=32, help="Relays of the room, and homeservers beside.")
    ] = 3
    messages: Annotated[int, typer.Option(min=1, max=100_000, help="Messages in all, at random times.")] = 200
    offline: Annotated[
        float, typer.Option(min=0.0, max=0.95, help="Share of the time that a peer is away.")
    ] = 0.5
    retention: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", min=1.0, help="How long relays keep an event; none: no limit."),
    ] = None
    seed: SeedOption = 1


@with_examples(
    "linnet sim metadata",
    "linnet sim metadata --retention 60",
    "linnet sim metadata --peers 30 --relays 5 --retention 3600 --json",
)
def metadata(options: MetadataOptions, as_json: JsonOption = False) -> None:
    """Run a room with relays and count what each of them knows of it.

    Beside it stands what a homeserver of federated Matrix would hold of the same run: the whole event
    graph, for ever. It is taken to serve an equal share of the people.
    """
    with simulation():
        from linnet.sim.rooms.metadata import run_metadata
        from linnet.sim.rooms.scenario import RoomScenario

        scenario = RoomScenario(
            peers=options.peers,
            relays=options.relays,
            messages=options.messages,
            offline=options.offline,
            bans=0,
            demotions=0,
            seed=options.seed,
        )
        with progress_bar(as_json) as progress:
            report = run_metadata(scenario, options.retention, progress)
    if as_json:
        say_json(report)
        return
    rows = [
        (words, _figure(report.relay, name), _figure(report.homeserver, name))
        for name, words in _KNOWN.items()
    ]
    say_table(("what is known", "a relay ", "a homeserver "), rows)
    say(
        f"of {report.events} events in {report.virtual_seconds:,.0f} s a relay holds {report.held_share:.0%} "
        f"of what a homeserver holds at the end, and {report.hours_share:.0%} of its event-hours"
    )


def _figure(knowledge: Knowledge, name: str) -> str:
    return f"{getattr(knowledge, name):,.1f}"


_SOURCE = "https://github.com/josephg/editing-traces (concurrent_traces)"

File = Annotated[Path, typer.Argument(help="A concurrent editing trace, .json or .json.gz.")]


@dataclass(frozen=True)
class ReplayOptions(Options):
    """The number of orders in which a history is replayed, and how much of it."""

    replicas: Annotated[
        int, typer.Option(min=2, max=64, help="Members that get it, each in another order.")
    ] = 4
    steps: Annotated[int | None, typer.Option(min=1, help="Only so many steps from the beginning.")] = None
    seed: SeedOption = 1
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            envvar="LINNET_DATA",
            help="Where FILE is looked for, if it is not here; below it too.",
        ),
    ] = None


@with_examples(
    "linnet sim history friendsforever.json.gz",
    "linnet sim history clownschool.json.gz --replicas 8 --seed 3 --json",
)
def history(file: File, options: ReplayOptions, as_json: JsonOption = False) -> None:
    """Replay what people really did at the same time: each author a member, each step a signed event.

    Every replica receives all events in an order of its own. Fails unless all reach the same state and causal
    order, and no event is refused, waits, or comes before its cause.
    """
    with simulation():
        from linnet.sim.rooms.history_replay import History, read_history, replay

        try:
            read = read_history(_found(file, options.data))
        except BadText as error:
            raise Failure(str(error), ExitCode.USAGE) from error
        with progress_bar(as_json) as progress:
            report = replay(
                History(read.num_agents, read.txns[: options.steps]), options.replicas, options.seed, progress
            )
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
