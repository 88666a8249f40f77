"""What a tracker, storage nodes and neighbours of a stream gain by lying, and the bounds that hold."""

from __future__ import annotations

import pytest

from linnet.core.reasons import Reason
from linnet.sim.attacks.crowded_tracker import CrowdedTracker, TableAttack, run_table_attack
from linnet.sim.attacks.false_chains import ChainAttack, Falsehood, MisledReaders, run_chain_attack
from linnet.sim.attacks.hostile_storage import StorageAttack, StoredStream, run_storage_attack
from linnet.sim.attacks.hostile_tracker import Favour, MisledStream, TrackerAttack, run_tracker_attack
from linnet.testing.networks import RowTrace

SEEDS = (1, 2, 3)


# A tracker.


def test_an_isolated_node_gets_nothing_and_all_others_everything() -> None:
    """The gain of a tracker that lies is exactly its victims: a quarter of 24 nodes."""
    scenario = TrackerAttack(Favour.ISOLATE, messages=10)
    figures = run_tracker_attack(scenario)
    assert figures.delivered_without == figures.honest_due == 10 * 23
    assert figures.delivered == 10 * 17
    world = MisledStream(scenario)
    world.run()
    assert set(world.lacking(30.0)) == {each.peer for each in world.honest[-6:]}


def test_a_parted_stream_is_read_by_the_half_of_its_publisher() -> None:
    figures = run_tracker_attack(TrackerAttack(Favour.PARTITION, messages=10))
    assert figures.delivered == 10 * 11


@pytest.mark.parametrize("seed", SEEDS)
def test_whoever_is_not_favoured_waits_longer_and_lacks_nothing(seed: int) -> None:
    scenario = TrackerAttack(Favour.FAVOUR, messages=10, seed=seed)
    figures = run_tracker_attack(scenario)
    assert figures.delivered == figures.honest_due == 10 * 23
    calm = MisledStream(scenario, is_attacked=False)
    calm.run()
    slowest = max(due.at - due.since for due in calm.due() if due.at is not None)
    assert slowest < figures.worst_seconds < 20 * slowest


# Storage nodes.


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_named_storage_shows_all_history_however_many_others_show_none(share: float, seed: int) -> None:
    figures = run_storage_attack(StorageAttack(share, named=True, messages=10, seed=seed))
    assert figures.delivered == figures.delivered_without == figures.honest_due == 10 * 6


def test_liars_among_volunteers_hide_history() -> None:
    """No bound: whoever names no storage nodes may be shown nothing."""
    figures = run_storage_attack(StorageAttack(0.75, messages=10))
    assert figures.delivered < figures.delivered_without == 10 * 6


def test_liars_are_as_many_as_their_share_says() -> None:
    for share, liars in ((0.5, 1), (0.75, 3), (0.9, 9)):
        assert len(StoredStream(StorageAttack(share)).hostile) == liars


# Chains.


@pytest.mark.parametrize("seed", SEEDS)
def test_every_honest_node_is_shown_the_proof_of_a_fork(seed: int) -> None:
    figures = run_chain_attack(ChainAttack(messages=5, seed=seed)).figures
    assert figures.delivered == figures.honest_due == 12
    assert figures.delivered_without == 0
    assert figures.worst_seconds < 2.0


def test_a_fork_shows_each_node_one_version_and_both_are_read() -> None:
    world = MisledReaders(ChainAttack(messages=5))
    world.run()
    forked = {event: 0 for event, _ in world.witness.delivered}
    assert len(forked) > 5, "the other versions were delivered, too"


def test_claims_cost_honest_nodes_less_than_a_quarter_more_work_each() -> None:
    report = run_chain_attack(ChainAttack(Falsehood.CLAIM, messages=10, claims=32))
    assert report.figures.delivered == report.figures.honest_due == 10 * 11
    assert report.figures.attacker_bytes > 32 * 512 * 50, "heads with as many chains as fit"
    # Each of its four neighbours is sent 32 messages, and they ask it 16 times a second or less.
    assert 4 * 32 <= report.inputs - report.inputs_without < 20 * 32
    assert abs(report.records - report.records_without) < 200


# A tracker's table.


@pytest.mark.parametrize("networks", [1, 0])
def test_a_full_table_has_room_for_an_honest_stream(networks: int) -> None:
    trace = RowTrace()
    scenario = TableAttack(networks=networks, messages=5)
    world = CrowdedTracker(scenario, trace)
    world.run()
    tracker = next(peer for peer in world.nodes if peer not in world.witness.honest)
    refused = [row for row in trace.rows if row.node == tracker and row.reason == Reason.TOO_MANY.value]
    assert len(refused) > scenario.attackers * scenario.topics - scenario.room, "the table was full"
    figures = run_table_attack(scenario)
    assert figures.delivered == figures.delivered_without == figures.honest_due == 5 * 11
