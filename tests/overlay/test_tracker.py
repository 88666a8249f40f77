from __future__ import annotations

from hashlib import sha256
from random import Random
from typing import Any

from tests.overlay.harness import HELLO, TOPIC, OverlayInput, hints, peer_id, said, status

from linnet.core.effects import CancelTimer, Probe, Send, SetTimer
from linnet.core.fair_shares import Origins
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.inputs import DialFailed, LinkDown, LinkUp, Probed, Received, TimerFired
from linnet.core.reasons import Reason
from linnet.core.timers import TopicTimer
from linnet.machine.outbox import Outbox
from linnet.machine.router import table_of
from linnet.overlay.config import Control, TrackerConfig
from linnet.overlay.messages import (
    EdgeClose,
    EdgeOpen,
    Instruction,
    Join,
    Leave,
    NeighborStatus,
    OverlayMessage,
    Reachability,
    Refusal,
    Status,
    StatusAll,
    TopicStatus,
)
from linnet.overlay.tracker import AwaitDue, ForgetDue, NearDue, SettleDue, StorageDue, TrackedNode, Tracker
from linnet.sim.light_network import PartMachine
from linnet.trace.records import Kind, Record

PEERS = [peer_id(number) for number in range(40)]
A, B, C, D = PEERS[:4]
OTHER_TOPIC = TopicId(sha256(b"another topic").digest())


class Case:
    """A tracker, what each node was told last, and a clock."""

    def __init__(self, config: TrackerConfig | None = None) -> None:
        out = Outbox()
        self.origins = Origins()
        self.tracker = Tracker(config or TrackerConfig(), Random(1), out, self.origins)
        self.machine = PartMachine(out, self.tracker)
        self.now = 0.0
        self.told: dict[PeerId, Instruction] = {}

    def give(self, event: OverlayInput) -> list[Any]:
        effects = self.machine.handle(event, self.now)
        for effect in effects:
            if isinstance(effect, Send) and isinstance(effect.message, Instruction):
                self.told[effect.peer] = effect.message
        return effects

    def hear(self, peer: PeerId, message: OverlayMessage) -> list[Any]:
        return self.give(Received(peer, message))

    def fire(self, due: type[TopicTimer], topic: TopicId = TOPIC) -> list[Any]:
        return self.give(TimerFired(due(topic)))

    def join(self, *peers: PeerId) -> None:
        for peer in peers:
            self.hear(peer, join(peer))

    def neighbors(self, peer: PeerId) -> set[PeerId]:
        return {contact.peer for contact in self.told[peer].neighbors}

    def answer(self, peer: PeerId, *missing: PeerId) -> list[Any]:
        """The status of a node that has done what it was told, but for some."""
        told = self.told[peer]
        has = tuple(contact.peer for contact in told.neighbors if contact.peer not in missing)
        return self.hear(peer, status(told.counter, *has))


TIMERS = (SettleDue, AwaitDue, ForgetDue, NearDue, StorageDue)


def join(peer: PeerId, *neighbors: PeerId, storage: bool = False, near: bool = False) -> Join:
    return Join(TOPIC, neighbors, hints(peer), 4, storage, near)


def control(peer: PeerId, note: str) -> Record:
    return Record(Kind.CONTROL, TOPIC, peer=peer, note=note)


def rejected(peer: PeerId, reason: Reason, note: str) -> Record:
    return Record(Kind.REJECTED, TOPIC, peer=peer, reason=reason, note=note)


def contact(peer: PeerId) -> Contact:
    return Contact(peer, hints(peer))


def instructed(effects: list[Any]) -> dict[PeerId, int]:
    return {
        effect.peer: effect.message.counter
        for effect in effects
        if isinstance(effect, Send) and isinstance(effect.message, Instruction)
    }


def test_two_nodes_find_each_other() -> None:
    case = Case()
    assert case.hear(A, join(A)) == [
        control(A, "join"),
        Probe(A, hints(A)),
        Send(A, Instruction(TOPIC, 1, (), ())),
        control(A, "instruction 1"),
    ]
    assert case.hear(B, join(B)) == [
        control(B, "join"),
        Probe(B, hints(B)),
        Send(B, Instruction(TOPIC, 1, (contact(A),), ())),
        control(B, "instruction 1"),
        Send(A, Instruction(TOPIC, 2, (contact(B),), ())),
        control(A, "instruction 2"),
    ]
    assert case.answer(A) == [control(A, "status 2")]
    graph = case.tracker.describe_graph(TOPIC)
    assert graph is not None
    assert graph.edges == ((A, (B,)), (B, (A,)))
    assert case.tracker.topics == (TOPIC,)
    assert case.tracker.describe_graph(OTHER_TOPIC) is None


def test_only_nodes_with_other_neighbors_are_instructed() -> None:
    case = Case()
    case.join(*PEERS[:20])
    for step in range(20, 40):
        before = {peer: case.neighbors(peer) for peer in case.told}
        effects = case.hear(PEERS[step], join(PEERS[step]))
        graph = case.tracker.describe_graph(TOPIC)
        assert graph is not None
        changed = {peer for peer, neighbors in graph.edges if set(neighbors) != before.get(peer)}
        assert set(instructed(effects)) == changed
        assert len(changed) == 5


def test_counters_only_grow() -> None:
    case = Case()
    newest: dict[PeerId, int] = {}
    for peer in PEERS:
        for told, counter in instructed(case.hear(peer, join(peer))).items():
            assert counter > newest.get(told, 0)
            newest[told] = counter
    # Even for who leaves and joins again on the same link: what is under way may still arrive.
    case.hear(A, Leave(TOPIC, False))
    assert instructed(case.hear(A, join(A)))[A] == newest[A] + 1


def test_a_stale_status_is_ignored() -> None:
    case = Case()
    case.join(A, B, C)
    before = case.tracker.describe_graph(TOPIC)
    stale = case.told[A].counter - 1
    assert case.hear(A, status(stale)) == [
        rejected(A, Reason.STALE, f"status {stale}, newest {case.told[A].counter}")
    ]
    assert case.hear(A, status(99)) == [
        rejected(A, Reason.STALE, f"status 99, newest {case.told[A].counter}")
    ]
    assert case.tracker.describe_graph(TOPIC) == before


def test_a_status_that_stays_stale_means_that_the_instruction_was_lost() -> None:
    case = Case()
    case.join(A, B)
    case.now = 6.0
    assert case.hear(A, status(1)) == [
        rejected(A, Reason.STALE, "status 1, newest 2"),
        Send(A, Instruction(TOPIC, 3, (contact(B),), ())),
        control(A, "instruction 3"),
    ]


def test_a_missing_neighbor_is_replaced_and_the_pair_not_chosen_again() -> None:
    case = Case()
    case.join(*PEERS[:20])
    lost = min(case.neighbors(A))
    effects = case.answer(A, lost)
    assert SetTimer(60.0, ForgetDue(TOPIC)) in effects
    assert {A, lost} <= set(instructed(effects))
    assert len(case.neighbors(A)) == len(case.neighbors(lost)) == 4
    assert lost not in case.neighbors(A)
    for peer in PEERS[20:]:
        case.join(peer)
        assert lost not in case.neighbors(A)
    case.now = 60.0
    assert case.fire(ForgetDue) == []


def test_in_a_small_topic_a_failed_pair_gets_its_chance_later() -> None:
    case = Case()
    case.join(A, B, C)
    case.answer(A, B)
    assert case.neighbors(A) == case.neighbors(B) == {C}
    case.now = 30.0
    case.answer(B, C)
    case.now = 60.0
    effects = case.fire(ForgetDue)
    assert set(instructed(effects)) == {A, B}
    assert SetTimer(30.0, ForgetDue(TOPIC)) in effects
    case.now = 90.0
    assert set(instructed(case.fire(ForgetDue))) == {B, C}
    assert case.neighbors(A) == {B, C}


def test_a_node_that_leaves_is_replaced() -> None:
    case = Case()
    case.join(*PEERS[:12])
    orphans = case.neighbors(A)
    effects = case.hear(A, Leave(TOPIC, False))
    assert effects[0] == control(A, "leave")
    assert orphans <= set(instructed(effects))
    assert A not in instructed(effects)
    assert all(len(case.neighbors(peer)) == 4 for peer in PEERS[1:12])
    assert case.hear(A, Leave(TOPIC, False)) == [rejected(A, Reason.NOT_JOINED, "leave")]


def test_the_last_to_leave_ends_the_topic() -> None:
    case = Case()
    case.join(A)
    effects = case.hear(A, Leave(TOPIC, False))
    ended = [effect.timer for effect in effects if isinstance(effect, CancelTimer)]
    assert ended == [kind(TOPIC) for kind in TIMERS]
    assert case.tracker.topics == ()
    assert case.fire(ForgetDue) == []


def test_a_lost_link_keeps_its_place_for_a_while() -> None:
    case = Case()
    case.join(*PEERS[:12])
    kept = case.neighbors(A)
    assert case.give(LinkDown(A, Reason.PING_TIMEOUT)) == [SetTimer(5.0, AwaitDue(TOPIC))]
    case.now = 2.0
    assert case.give(LinkDown(B, Reason.PING_TIMEOUT)) == []
    case.now = 3.0
    assert instructed(case.hear(A, join(A, *sorted(kept)))) == {A: case.told[A].counter}
    assert case.neighbors(A) == kept
    case.now = 5.0
    assert case.fire(AwaitDue) == [SetTimer(2.0, AwaitDue(TOPIC))]
    case.now = 7.0
    effects = case.fire(AwaitDue)
    assert effects[0] == control(B, "lost")
    assert B not in case.tracker.describe_graph(TOPIC).edges  # type: ignore[union-attr]
    assert len(instructed(effects)) >= 4
    assert case.give(LinkDown(C, Reason.PING_TIMEOUT)) == [SetTimer(5.0, AwaitDue(TOPIC))]


def test_a_node_unknown_or_without_topics_is_simply_gone() -> None:
    case = Case()
    assert case.give(LinkDown(A, Reason.CRASHED)) == []
    case.join(A)
    case.hear(A, Leave(TOPIC, False))
    assert case.give(LinkDown(A, Reason.CRASHED)) == []
    assert case.give(Probed(A, None)) == []
    # It is new when it comes again: its counters begin anew.
    assert instructed(case.hear(A, join(A))) == {A: 1}


def test_a_standby_learns_what_stands_before_it_builds() -> None:
    original, heir = Case(), Case()
    original.join(*PEERS[:12])
    effects = heir.hear(A, join(A, *sorted(original.neighbors(A))))
    assert effects == [
        control(A, "join"),
        Probe(A, hints(A)),
        SetTimer(2.0, SettleDue(TOPIC)),
        SetTimer(60.0, AwaitDue(TOPIC)),
    ]
    for peer in PEERS[1:12]:
        assert instructed(heir.hear(peer, join(peer, *sorted(original.neighbors(peer))))) == {}
    fresh = heir.hear(PEERS[12], join(PEERS[12]))
    assert instructed(fresh) == {}
    heir.now = 2.0
    assert set(instructed(heir.fire(SettleDue))) == set(PEERS[:13])
    # Only the two links that make room for the new node are other than before.
    before = {frozenset((p, q)) for p in PEERS[:12] for q in original.neighbors(p)}
    after = {frozenset((p, q)) for p in PEERS[:13] for q in heir.neighbors(p)}
    assert len(before - after) == 2
    assert heir.fire(AwaitDue) == []


def test_a_neighbor_that_does_not_come_to_the_standby_is_given_up_after_a_while() -> None:
    heir = Case()
    heir.hear(A, join(A, B, C))
    heir.hear(B, join(B, A, C))
    heir.now = 2.0
    heir.fire(SettleDue)
    # No address is known of C yet; the link to it stands.
    assert Contact(C) in heir.told[A].neighbors
    assert heir.answer(A) == [control(A, "status 1")]
    heir.now = 60.0
    effects = heir.fire(AwaitDue)
    assert effects[0] == control(C, "lost")
    assert heir.neighbors(A) == {B}


def test_who_moves_to_another_tracker_is_not_replaced() -> None:
    case = Case()
    case.join(*PEERS[:12])
    assert case.hear(A, Leave(TOPIC, True)) == [control(A, "move"), SetTimer(60.0, AwaitDue(TOPIC))]
    assert case.hear(B, Leave(TOPIC, True)) == [control(B, "move")]
    assert case.give(LinkDown(A, Reason.NOT_NEEDED)) == []
    assert case.answer(C) == [control(C, f"status {case.told[C].counter}")]


def test_reachability_is_tried_once_per_node_and_told() -> None:
    case = Case()
    case.join(A, B)
    other = Join(OTHER_TOPIC, (), hints(A), 4, False, False)
    assert not any(isinstance(effect, Probe) for effect in case.hear(A, other))
    assert case.give(Probed(B, None)) == [Send(B, Reachability(None))]
    # Nothing changes for a pair of which one can be dialled.
    assert case.give(Probed(A, Reason.DIAL_TIMEOUT)) == [Send(A, Reachability(Reason.DIAL_TIMEOUT))]
    case.join(C)
    assert Contact(A) in case.told[C].neighbors
    moved = Join(TOPIC, (), ("tls://elsewhere:1",), 4, False, False)
    assert Probe(A, ("tls://elsewhere:1",)) in case.hear(A, moved)


def test_two_that_cannot_be_dialled_are_parted() -> None:
    case = Case()
    case.join(A, B, C)
    case.give(Probed(A, Reason.DIAL_TIMEOUT))
    effects = case.give(Probed(B, Reason.DIAL_TIMEOUT))
    assert effects[0] == Send(B, Reachability(Reason.DIAL_TIMEOUT))
    assert set(instructed(effects)) == {A, B}
    assert case.neighbors(A) == case.neighbors(B) == {C}
    # Without any address it is clear from the start.
    case.hear(D, Join(TOPIC, (), (), 4, False, False))
    assert case.neighbors(D) == {C}


def test_storage_nodes_become_known_to_all() -> None:
    case = Case()
    case.join(A, B)
    effects = case.hear(C, join(C, storage=True))
    assert SetTimer(1.0, StorageDue(TOPIC)) in effects
    assert case.told[A].storage == (contact(C),)
    assert case.told[C].storage == ()
    case.join(*PEERS[4:30])
    assert all(case.told[peer].storage == (contact(C),) for peer in PEERS[4:30])
    case.hear(D, join(D, storage=True))
    told = instructed(case.fire(StorageDue))
    assert set(told) < set(PEERS[:30])
    assert all({c.peer for c in case.told[peer].storage} == {C, D} - {peer} for peer in PEERS[:30])
    assert SetTimer(1.0, StorageDue(TOPIC)) in case.hear(C, Leave(TOPIC, False))
    case.fire(StorageDue)
    assert case.told[A].storage == (contact(D),)
    assert case.fire(StorageDue) == []


def test_limits_end_in_a_refusal_and_a_record() -> None:
    case = Case(TrackerConfig(max_topics=1, max_nodes=2))
    case.join(A, B)
    assert case.hear(C, join(C)) == [
        Send(C, Refusal(TOPIC, Reason.TOO_MANY)),
        rejected(C, Reason.TOO_MANY, "join"),
    ]
    assert instructed(case.hear(A, join(A))) == {A: 3}
    other = Join(OTHER_TOPIC, (), (), 4, False, False)
    assert case.hear(A, other) == [
        Send(A, Refusal(OTHER_TOPIC, Reason.TOO_MANY)),
        Record(Kind.REJECTED, OTHER_TOPIC, peer=A, reason=Reason.TOO_MANY, note="join"),
    ]


def test_the_first_join_sets_the_degree() -> None:
    case = Case()
    case.hear(A, Join(TOPIC, (), hints(A), 6, False, False))
    case.join(*PEERS[1:20])
    graph = case.tracker.describe_graph(TOPIC)
    assert graph is not None
    assert graph.degree == 6
    assert {len(neighbors) for _, neighbors in graph.edges} == {6}


def test_statuses_of_strangers_and_of_the_other_protocol_are_rejected() -> None:
    case = Case()
    case.join(A)
    assert case.hear(B, status(1)) == [rejected(B, Reason.NOT_JOINED, "status 1")]
    everything = StatusAll((TopicStatus(TOPIC, ()),))
    assert case.hear(B, everything) == [rejected(B, Reason.NOT_JOINED, "status")]
    assert case.hear(A, everything) == [rejected(A, Reason.UNSUPPORTED, "status")]
    naive = Case(TrackerConfig(control=Control.NAIVE))
    naive.join(A)
    assert naive.hear(A, status(1)) == [rejected(A, Reason.UNSUPPORTED, "status 1")]


def test_a_naive_tracker_adopts_what_is_reported() -> None:
    case = Case(TrackerConfig(control=Control.NAIVE))
    case.join(*PEERS[:20])
    fast = sorted(case.neighbors(A))[:2]
    slow = case.neighbors(A) - set(fast)
    other = next(peer for peer in PEERS[1:20] if peer not in case.neighbors(A))
    effects = case.hear(A, StatusAll((status(0, *fast, other).status,)))
    # It reported before it had finished, and has one that it was not told to have. So be it.
    assert effects[0] == control(A, "status")
    graph = case.tracker.describe_graph(TOPIC)
    assert graph is not None
    now = dict(graph.edges)
    assert {*fast, other} <= set(now[A])
    assert A in now[other]
    assert slow - set(now[A])
    assert set(instructed(effects)) >= {other, *(slow - set(now[A]))}


def test_a_naive_tracker_orders_disconnects_above_the_degree() -> None:
    case = Case(TrackerConfig(control=Control.NAIVE))
    case.join(*PEERS[:20])
    others = [peer for peer in PEERS[1:20] if peer not in case.neighbors(A)][:3]
    has = [*sorted(case.neighbors(A)), *others]
    case.hear(A, StatusAll((status(0, *has).status,)))
    assert len(case.neighbors(A)) == 4
    assert case.neighbors(A) < set(has)
    assert case.hear(A, StatusAll((status(0, *sorted(case.neighbors(A))).status,))) == [control(A, "status")]


def test_near_links_are_exchanged_when_times_are_known() -> None:
    case = Case(TrackerConfig(near_period=5.0))
    assert SetTimer(5.0, NearDue(TOPIC)) in case.hear(A, join(A, near=True))
    case.join(*PEERS[1:])
    assert case.fire(NearDue) == [SetTimer(5.0, NearDue(TOPIC))]
    for _ in range(30):
        for number, peer in enumerate(PEERS):
            told = case.told[peer]
            # Even numbers are in one place, odd ones in another.
            rtts = tuple(
                NeighborStatus(c.peer, 1_000 if (PEERS.index(c.peer) - number) % 2 == 0 else 100_000)
                for c in told.neighbors
            )
            case.hear(peer, Status(told.counter, TopicStatus(TOPIC, rtts)))
        case.fire(NearDue)
    graph = case.tracker.describe_graph(TOPIC)
    assert graph is not None
    assert {len(neighbors) for _, neighbors in graph.edges} == {4}
    same = [(PEERS.index(p) - PEERS.index(q)) % 2 == 0 for p, qs in graph.edges for q in qs]
    assert sum(same) / len(same) > 0.6
    assert len(graph.rtts) == 160


def test_what_is_meant_for_members_or_for_nobody_is_no_business_of_a_tracker() -> None:
    case = Case()
    case.join(A)
    heard = table_of((Tracker,)).messages
    assert not {EdgeOpen, EdgeClose, Refusal, Reachability, Instruction} & set(heard)
    assert case.give(LinkUp(B, HELLO, False, None)) == []
    assert case.machine.handle(DialFailed(B, Reason.DIAL_TIMEOUT), 0.0) == []


PEER = peer_id("a")
HERE, THERE = ("tls://here:1",), ("tls://there:1",)


def test_it_is_tried_once_and_again_when_it_moves() -> None:
    node, out = TrackedNode(PEER), Outbox()
    assert said(out, node.note_addresses, HERE, out) == [Probe(PEER, HERE)]
    node.linked = True
    assert node.contact == Contact(PEER, HERE)
    assert said(out, node.note_addresses, HERE, out) == []
    assert node.handle_probe(Reason.DIAL_TIMEOUT, out)
    assert node.contact == Contact(PEER)
    assert said(out, node.note_addresses, HERE, out) == []
    assert said(out, node.note_addresses, THERE, out) == [Probe(PEER, THERE)]
    assert node.handle_probe(None, out)
    assert node.is_dialable


def test_one_that_comes_back_is_tried_again_if_it_could_not_be_reached() -> None:
    """It may have left before it was tried, and then nothing was."""
    node, out = TrackedNode(PEER), Outbox()
    node.note_addresses(HERE, out)
    node.handle_probe(Reason.UNREACHABLE, out)
    out.clear()
    assert said(out, node.note_addresses, HERE, out) == [Probe(PEER, HERE)]
    assert node.handle_probe(None, out)
    assert said(out, node.note_addresses, HERE, out) == []


def test_one_attempt_at_a_time() -> None:
    node, out = TrackedNode(PEER), Outbox()
    node.note_addresses(HERE, out)
    assert said(out, node.note_addresses, THERE, out) == []
    assert said(out, node.note_addresses, (), out) == []
    assert said(out, node.note_addresses, THERE, out) == []
    assert said(out, node.handle_probe, None, out) == [Probe(PEER, THERE)]
    assert node.handle_probe(Reason.UNREACHABLE, out)
    assert not node.is_dialable


def test_without_addresses_there_is_nothing_to_try() -> None:
    node, out = TrackedNode(PEER), Outbox()
    assert said(out, node.note_addresses, (), out) == []
    assert not node.is_dialable
    node.note_addresses(HERE, out)
    node.note_addresses((), out)
    assert said(out, node.handle_probe, None, out) == []
    assert not node.is_dialable
