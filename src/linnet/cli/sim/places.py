"""Places in simulation: a host and guests who come and go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.options import Options, with_examples
from linnet.cli.sim.attacks import AttackOptions, show_attack
from linnet.cli.sim.runner import LatencyOption, RunOptions, SeedOption, show_outcome, simulation

if TYPE_CHECKING:
    from linnet.sim.places.scenario import PlacesReport


@dataclass(frozen=True)
class PlaceOptions(Options):
    """The simulated place, and what goes wrong in it; its fields are those of `PlacesScenario`."""

    guests: Annotated[int, typer.Option(min=1, max=10_000, help="Guests, with one device each.")] = 100
    messages: Annotated[int, typer.Option(min=1, max=100_000, help="Announcements of the host.")] = 50
    loss: Annotated[
        float, typer.Option(min=0.0, max=0.5, help="Share of messages that vanish on a link.")
    ] = 0.0
    churn: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=1.0,
            help="Share of guests who do not just stay: they enter late, are put out, or crash and come "
            "back.",
        ),
    ] = 0.0
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            metavar="POLICY",
            help="Who comes in: anonymous, public, closed or private; the last two are encrypted.",
        ),
    ] = "public"
    fanout: Annotated[int, typer.Option(min=1, max=64, help="Guests that a node sends to.")] = 8
    latency: LatencyOption = "aws"
    seed: SeedOption = 1


@with_examples(
    "linnet sim places --guests 100 --messages 20",
    "linnet sim places --guests 1000 --messages 50 --loss 0.05 --churn 0.2 --seed 1 --json",
    "linnet sim places --guests 50 --policy private --churn 0.2",
    "linnet sim places --guests 30 --fanout 3 --churn 0.5 --trace run.parquet",
    "linnet sim places --nemesis all --seed 7",
    "linnet sim places --attack keepers --share 0.5",
)
def places(options: PlaceOptions, attack: AttackOptions, run: RunOptions) -> None:
    """Run a place over a simulated network: the shipped node, a virtual clock, seeded links.

    The host announces and changes state; guests relay to each other. At the end a judge that knows all
    membership works out who may have what. Exits 1 if something is missing, is where it must not be, or if
    states differ. The same seed gives the same trace_sha256.
    """
    if run.nemesis is not None:
        run.run_nemesis(run.nemesis, "places", options.seed)
        return
    if attack.attack is not None:
        show_attack("places", attack.attack, attack.share, options.seed, run.as_json)
        return
    with simulation():
        from linnet.places.deed import Policy
        from linnet.sim.places.scenario import PlacesScenario, run_places

        policy = options.policy
        if policy not in tuple(Policy):
            raise Failure(f"{policy}: no policy of places ({', '.join(Policy)})", ExitCode.USAGE)
        scenario = PlacesScenario(**vars(options) | {"policy": Policy(policy)})
        report = run.run_scenario(run_places, scenario)
    show_outcome(report, _rows(report), run.as_json, report.ok, report.undelivered)


def _rows(report: PlacesReport) -> list[tuple[str, object]]:
    return [
        ("guests", report.guests),
        ("messages, notices included", report.messages),
        ("entered late, put out, crashed", f"{report.late}, {report.ejected}, {report.crashed}"),
        ("pairs of message and guest", f"{report.pairs:,}"),
        ("delivered by the end", f"{report.delivered_share:.6f}"),
        ("where they must not be", report.leaked),
        ("different states", report.distinct_state_hashes),
        ("sends of the host for each fragment", f"{report.origin_sends_per_message:.2f}"),
        ("of the node that sent most", f"{report.most_sends_per_message:.2f}"),
        ("mean hops", f"{report.mean_hops:.2f}"),
        ("duplicates for each that came", f"{report.duplicates_per_message:.2f}"),
        ("virtual time, s", report.virtual_seconds),
        ("wall-clock time, s", report.wall_seconds),
        ("trace_sha256", report.trace_sha256),
    ]
