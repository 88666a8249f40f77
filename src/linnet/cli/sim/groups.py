"""Groups in simulation: a group that is partitioned and robbed, and a thief who tries to read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.options import JsonOption, Options, with_examples
from linnet.cli.output import progress_bar
from linnet.cli.sim.runner import SeedOption, show_outcome, simulation

if TYPE_CHECKING:
    from linnet.sim.groups.scenario import GroupsReport


@dataclass(frozen=True)
class GroupOptions(Options):
    """The simulated group; its fields are those of `GroupScenario`."""

    members: Annotated[int, typer.Option(min=2, max=128, help="Devices in the group at the start.")] = 16
    ops: Annotated[
        int, typer.Option(min=1, max=10_000, help="Updates, additions, removals and requests to leave.")
    ] = 200
    partitions: Annotated[
        int, typer.Option(min=0, max=100, help="Times that one half cannot hear the other.")
    ] = 3
    thefts: Annotated[
        int, typer.Option(min=0, max=100, help="States of devices that are stolen on the way.")
    ] = 5
    messages: Annotated[
        float, typer.Option(min=0.0, max=20.0, help="Messages after each operation, on average.")
    ] = 1.5
    patience: Annotated[
        float,
        typer.Option(min=0.0, max=1.0, help="Share of devices that hear the others between operations."),
    ] = 0.6
    seed: SeedOption = 1


@with_examples(
    "linnet sim groups --members 16 --ops 200 --partitions 3 --thefts 5 --seed 1",
    "linnet sim groups --members 8 --ops 60 --json",
    "linnet sim groups --partitions 0 --patience 1.0",
)
def groups(options: GroupOptions, as_json: JsonOption = False) -> None:
    """Run an encrypted group through operations at the same time, partitions and thefts of whole states.

    The shipped key agreement runs on every device. At the end all meet; then members must agree, have read
    all that was meant for them, and an attacker who heard everything and has the stolen states must not have
    read what the rule of safety forbids. Exits 1 if any of that fails. The same seed gives the same
    trace_sha256.
    """
    with simulation():
        from linnet.sim.groups.scenario import GroupScenario, run_groups

        with progress_bar(as_json) as progress:
            report = run_groups(GroupScenario(**vars(options)), progress)
    show_outcome(report, _rows(report), as_json, report.ok, report.troubles)


def _rows(report: GroupsReport) -> list[tuple[str, object]]:
    return [
        ("members, and at the end", f"{report.members} and {report.members_at_end}"),
        ("operations", report.ops),
        ("updates, of them to heal before speaking", f"{report.updates} and {report.heals}"),
        ("additions, removals, requests to leave", f"{report.additions}, {report.removals}, {report.leaves}"),
        ("batches of acknowledgements", report.acks),
        ("messages", report.messages),
        ("partitions and thefts", f"{report.partitions} and {report.thefts}"),
        ("members that diverged", report.diverged),
        ("pairs of message and member", report.pairs),
        ("of them unreadable", report.unreadable),
        ("too late, of members long removed", report.late),
        ("read by others than members", report.misread),
        ("pairs of message and thief that must be safe", report.safe),
        ("of them leaked", report.leaked),
        ("other pairs that the thief read", report.read),
        ("other pairs that it did not", report.unread),
        (
            "operations until healed, mean and most",
            f"{report.healed_after_ops} and {report.healed_after_ops_max}",
        ),
        ("thefts not healed by the end", report.unhealed),
        ("bytes of an update with its acknowledgements", report.bytes_per_update),
        ("first messages without a one-time prekey", report.weak_starts),
        ("wall-clock time, s", report.wall_seconds),
        ("trace_sha256", report.trace_sha256),
    ]
