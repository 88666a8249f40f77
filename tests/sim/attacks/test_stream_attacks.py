"""What a tracker, storage nodes and neighbours of a stream gain by lying, and the bounds that hold."""

from __future__ import annotations

import pytest
from tests.sim.attacks.spout import Spout

from linnet.core.effects import Send
from linnet.core.ids import AuthorId, Contact, DeviceId
from linnet.core.inputs import Asked, Received
from linnet.core.reasons import Reason
from linnet.delivery.messages import ChainPlace, Heads, HistoryPage, Watch
from linnet.overlay.messages import Instruction, Status, TopicStatus
from linnet.peer.interface import Start
from linnet.sim.attacks.crowded_tracker import CrowdedTracker, TableAttack, run_table_attack
from linnet.sim.attacks.false_chains import ChainAttack, Falsehood, MisledReaders, run_chain_attack
from linnet.sim.attacks.hostile_storage import EmptyStorage, StorageAttack, StoredStream, run_storage_attack
from linnet.sim.attacks.hostile_tracker import (
    Favour,
    HostileTracker,
    MisledStream,
    TrackerAttack,
    run_tracker_attack,
)
from linnet.streams.stream_names import topic_of
from linnet.testing.networks import HINTS, RowTrace, named_peer

SEEDS = (1, 2, 3)


# A tracker.


@pytest.mark.parametrize("favour", [Favour.ISOLATE, Favour.PARTITION])
def test_a_hostile_tracker_gains_its_victims_at_most(favour: Favour) -> None:
    """A quarter of 24 nodes is isolated, or the half without the publisher is cut off."""
    scenario = TrackerAttack(favour, messages=10)
    figures = run_tracker_attack(scenario)
    assert figures.delivered_without == figures.honest_due == 10 * 23
    assert figures.delivered >= 10 * {Favour.ISOLATE: 17, Favour.PARTITION: 11}[favour]
    world = MisledStream(scenario)
    world.run()
    spared = world.honest[:18] if favour is Favour.ISOLATE else world.honest[:12]
    assert world.lacking(30.0).keys().isdisjoint(each.peer for each in spared)


def test_a_hostile_tracker_names_whom_it_likes_and_hears_no_complaint() -> None:
    ann, ben, eve = (named_peer(name) for name in ("ann", "ben", "eve"))
    topic = topic_of("any")
    plan = {ann: (Contact(eve, HINTS),)}
    told = Instruction(topic, 1, (Contact(ben, HINTS),), (Contact(ben, HINTS),))
    said = Spout([Send(ann, told), Send(ben, told)])
    tracker = HostileTracker(said, plan)
    first, second = tracker.handle(Asked(1, Start()), 0.0)
    assert first == Send(ann, Instruction(topic, 1, (Contact(eve, HINTS),), told.storage))
    assert second == Send(ben, told)
    complaint = Received(ann, Status(1, TopicStatus(topic, ())))
    assert tracker.handle(complaint, 0.0) == []
    assert said.handled == 1


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


def test_empty_storage_answers_everything_with_nothing() -> None:
    ann, topic = named_peer("ann"), topic_of("any")
    page = HistoryPage(topic, 1, (), (), 7, False, 5, True, None)
    heads = Heads(topic, (ChainPlace(AuthorId(bytes(32)), DeviceId(bytes(16)), 0, 9, True),), 0, (3,))
    said = Spout([Send(ann, page), Send(ann, heads), Send(ann, Watch(topic, True))])
    shown = [
        each.message for each in EmptyStorage(said).handle(Asked(1, Start()), 0.0) if isinstance(each, Send)
    ]
    assert shown == [
        HistoryPage(topic, 1, (), (), 7, True, 5, False, None),
        Heads(topic, (), 0, ()),
        Watch(topic, True),
    ]


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
    # Each of its four neighbours is sent 32 messages, asks it 16 times a second or less, and looks elsewhere.
    assert 4 * 32 <= report.inputs - report.inputs_without < report.inputs_without / 4
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
