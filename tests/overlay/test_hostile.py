"""Any peer may say anything at any time: nothing raises, and the promises hold."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.overlay.harness import HELLO, OverlayInput, hints, peer_id

from linnet.core.effects import Hold, Release, Send
from linnet.core.fair_shares import Origins
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.inputs import DialFailed, LinkDown, LinkUp, Probed, Received, TimerFired
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.machine.outbox import Outbox
from linnet.overlay.config import Control, MemberConfig, TrackerConfig
from linnet.overlay.control_naive import StatusDue
from linnet.overlay.edges import ConnectDue, RetryDue
from linnet.overlay.messages import (
    EdgeClose,
    EdgeOpen,
    Instruction,
    Join,
    Leave,
    NeighborStatus,
    Reachability,
    Refusal,
    Status,
    StatusAll,
    TopicStatus,
)
from linnet.overlay.notices import Adjacency, NeighborDown, NeighborUp
from linnet.overlay.tracker import AwaitDue, ForgetDue, NearDue, SettleDue, StorageDue, Tracker
from linnet.overlay.tracker_client import (
    FailoverDue,
    JoinDue,
    ReportDue,
    ReturnDue,
    TopicOptions,
    TrackerClient,
)
from linnet.sim.light_network import PartMachine

PEERS = [peer_id(number) for number in range(7)]
TOPICS = [TopicId(bytes([number]) * 32) for number in range(2)]

peers = st.sampled_from(PEERS)
topics = st.sampled_from(TOPICS)
reasons = st.sampled_from([Reason.DIAL_TIMEOUT, Reason.TOO_MANY, Reason.NOT_RESPONSIBLE])
named = st.lists(peers, max_size=6).map(tuple)
addresses = st.sampled_from([(), ("tls://x:1",)])
contacts = st.lists(st.builds(Contact, peers, addresses), max_size=6).map(tuple)
statuses = st.builds(
    TopicStatus,
    topics,
    st.lists(st.builds(NeighborStatus, peers, st.none() | st.integers(0, 10**9)), max_size=6).map(tuple),
)
messages = st.one_of(
    st.builds(Join, topics, named, addresses, st.integers(2, 5), st.booleans(), st.booleans()),
    st.builds(Leave, topics, st.booleans()),
    st.builds(Status, st.integers(0, 8), statuses),
    st.builds(StatusAll, st.lists(statuses, max_size=2).map(tuple)),
    st.builds(Instruction, topics, st.integers(0, 8), contacts, contacts),
    st.builds(Refusal, topics, reasons),
    st.builds(EdgeOpen, topics),
    st.builds(EdgeClose, topics),
    st.builds(Reachability, st.none() | reasons),
)
controls = st.sampled_from(Control)


def inputs(*kinds: Callable[..., Timer]) -> st.SearchStrategy[list[tuple[OverlayInput, float]]]:
    received = st.builds(Received, peers, messages)
    timers = st.one_of([st.builds(kind, peers if kind is StatusDue else topics) for kind in kinds])
    event = st.one_of(
        received,
        received,
        st.builds(LinkUp, peers, st.just(HELLO), st.booleans()),
        st.builds(LinkDown, peers, st.just(Reason.CRASHED)),
        st.builds(DialFailed, peers, reasons),
        st.builds(Probed, peers, st.none() | reasons),
        st.builds(TimerFired, timers),
    )
    return st.lists(st.tuples(event, st.floats(0, 40)), max_size=60)


@given(inputs(SettleDue, AwaitDue, ForgetDue, NearDue, StorageDue), controls, st.integers(0, 2**32))
def test_a_tracker_survives_everything(
    events: list[tuple[OverlayInput, float]], control: Control, seed: int
) -> None:
    out = Outbox()
    tracker = Tracker(TrackerConfig(control=control, max_nodes=6), Random(seed), out, Origins())
    machine = PartMachine(out, tracker)
    linked: dict[PeerId, None] = {}
    newest: dict[PeerId, int] = {}
    now = 0.0
    for event, wait in events:
        now += wait
        if isinstance(event, Received):
            linked[event.peer] = None
        elif isinstance(event, LinkDown):
            linked.pop(event.peer, None)
        for effect in machine.handle(event, now):
            if not isinstance(effect, Send):
                continue
            assert effect.peer in linked
            if isinstance(effect.message, Instruction):
                assert effect.message.counter > newest.get(effect.peer, 0) or effect.message.counter == 1
                newest[effect.peer] = effect.message.counter
                assert effect.peer not in {contact.peer for contact in effect.message.neighbors}
        for topic in tracker.topics:
            graph = tracker.describe_graph(topic)
            assert graph is not None
            edges = dict(graph.edges)
            assert 1 <= len(edges) <= 6
            assert all(peer in edges[other] for peer, near in edges.items() for other in near)
            if control is Control.COUNTER:
                assert all(len(near) <= graph.degree for near in edges.values())


class Ledger:
    """What follows from a member's effects, if they are performed in order."""

    def __init__(self) -> None:
        self.up: dict[PeerId, None] = {}
        self.held: dict[tuple[PeerId, str], None] = {}
        self.neighbors: dict[tuple[TopicId, PeerId], None] = {}

    def happens(self, event: OverlayInput) -> bool:
        """Whether it can: nothing is received without a link."""
        if isinstance(event, LinkUp):
            self.up[event.peer] = None
        elif isinstance(event, LinkDown):
            self.up.pop(event.peer, None)
        return not isinstance(event, Received) or event.peer in self.up

    def perform(self, effects: list[Any]) -> None:
        for effect in effects:
            match effect:
                case Send(peer):
                    assert peer in self.up
                case Hold(peer, _, purpose):
                    self.held[peer, purpose] = None
                case Release(peer, purpose):
                    del self.held[peer, purpose]
                case NeighborUp(topic, peer):
                    assert (topic, peer) not in self.neighbors
                    self.neighbors[topic, peer] = None
                case NeighborDown(topic, peer):
                    del self.neighbors[topic, peer]


@given(
    inputs(FailoverDue, ReturnDue, JoinDue, ReportDue, ConnectDue, RetryDue, StatusDue),
    st.lists(st.tuples(st.integers(0, 59), st.booleans(), topics, contacts), max_size=6),
    controls,
)
def test_a_member_survives_everything(
    events: list[tuple[OverlayInput, float]],
    commands: list[tuple[int, bool, TopicId, tuple[Contact, ...]]],
    control: Control,
) -> None:
    out = Outbox()
    member = TrackerClient(MemberConfig(control=control), out, Adjacency(out), hints(PEERS[0]))
    machine = PartMachine(out, member)
    ledger = Ledger()
    now = 0.0
    for number, (event, wait) in enumerate(events):
        now += wait
        for at, is_join, topic, trackers in commands:
            if at == number and is_join:
                join = partial(member.join, TopicOptions(topic, trackers, 4), now)
                ledger.perform(machine.perform(join, now))
            elif at == number:
                ledger.perform(machine.perform(partial(member.leave, topic, now), now))
        if ledger.happens(event):
            ledger.perform(machine.handle(event, now))
        for topic in TOPICS:
            assert set(member.neighbors(topic)) == {peer for t, peer in ledger.neighbors if t == topic}
            assert set(member.neighbors(topic)) <= set(ledger.up)
    for topic in TOPICS:
        ledger.perform(machine.perform(partial(member.leave, topic, now), now))
    assert ledger.held == {}
    assert ledger.neighbors == {}
