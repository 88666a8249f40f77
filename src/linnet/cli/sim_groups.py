"""``linnet sim groups``: an encrypted group that is cut apart and robbed, and a thief who tries to read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.options import JsonOption, examples
from linnet.cli.simulating import SeedOption, progress_bar, show_outcome, simulation

if TYPE_CHECKING:
    from linnet.sim.groups_report import GroupsReport

EPILOG = examples(
    "linnet sim groups --members 16 --ops 200 --partitions 3 --thefts 5 --seed 1",
    "linnet sim groups --members 8 --ops 60 --json",
    "linnet sim groups --partitions 0 --patience 1.0",
)

Members = Annotated[int, typer.Option(min=2, max=128, help="Devices in the group at the start.")]
Ops = Annotated[
    int, typer.Option(min=1, max=10_000, help="Updates, additions, removals and requests to leave.")
]
Partitions = Annotated[int, typer.Option(min=0, max=100, help="Times that one half cannot hear the other.")]
Thefts = Annotated[int, typer.Option(min=0, max=100, help="States of devices that are stolen on the way.")]
Messages = Annotated[
    float, typer.Option(min=0.0, max=20.0, help="Messages after each operation, on average.")
]
Patience = Annotated[
    float, typer.Option(min=0.0, max=1.0, help="Share of devices that hear the others between operations.")
]


def groups(
    members: Members = 16,
    ops: Ops = 200,
    partitions: Partitions = 3,
    thefts: Thefts = 5,
    messages: Messages = 1.5,
    patience: Patience = 0.6,
    seed: SeedOption = 1,
    as_json: JsonOption = False,
) -> None:
    """Run an encrypted group through operations at the same time, partitions and thefts of whole states.

    The shipped key agreement runs on every device. At the end all meet; then members must agree, have read
    all that was meant for them, and an attacker who heard everything and has the stolen states must not have
    read what the rule of safety forbids. Exits 1 if any of that fails. The same seed gives the same
    trace_sha256.
    """
    with simulation():
        from linnet.sim.groups import run_groups
        from linnet.sim.groups_report import GroupScenario
        from linnet.testing.safety import Burglar

        scenario = GroupScenario(
            members=members,
            ops=ops,
            partitions=partitions,
            thefts=thefts,
            messages=messages,
            patience=patience,
            seed=seed,
        )
        with progress_bar(as_json) as progress:
            report = run_groups(scenario, Burglar, progress)
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
