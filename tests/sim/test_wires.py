"""Links in simulation: up, carrying, congested, cut, down."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.due import Due
from tests.machines import HELLO
from tests.sim.scripts import A, B, C, apart, moments, obeying, on_examine, pair, received

from linnet.core.effects import (
    HangUp,
    Probe,
    Send,
    SetTimer,
)
from linnet.core.ids import Contact
from linnet.core.inputs import (
    Asked,
    Congested,
    DialFailed,
    Drained,
    LinkDown,
    LinkUp,
    Probed,
    Received,
)
from linnet.core.reasons import Reason
from linnet.delivery.messages import Data
from linnet.machine.commands import Declined, Done
from linnet.peer.interface import Connect, Examine
from linnet.peer.messages import STANDARD, Ping
from linnet.sim.links import LinkModel, constant_latency, parse_latency
from linnet.sim.network import Network
from linnet.sim.wires import Outbox
from linnet.testing.networks import HINTS, RowTrace, connect, steady_links
from linnet.trace.records import Kind


def test_a_dial_ends_in_a_link_at_both_ends() -> None:
    a, b = obeying(), obeying()
    network = apart(a, b)
    request = network.ask(A, Connect(Contact(B, HINTS)), at=1.0)
    assert network.run_until_quiet()
    # Two round trips and our greeting; the other's greeting is one way more.
    assert moments(b) == [(1050.0, LinkUp(A, HELLO, dialed=False, network=None))]
    assert moments(a)[1:] == [(1060.0, LinkUp(B, HELLO, dialed=True, network=None))]
    assert network.answers == {request: Done()}
    assert network.linked(A) == [B]
    assert network.linked(B) == [A]


def test_simultaneous_dials_give_one_link() -> None:
    a, b = obeying(), obeying()
    network = apart(a, b)
    network.ask(A, Connect(Contact(B, HINTS)), at=1.0)
    network.ask(B, Connect(Contact(A, HINTS)), at=1.005)
    network.run_until_quiet()
    for machine in (a, b):
        assert [type(event) for _, event in machine.inputs] == [Asked, LinkUp]
    # A second dial of what is linked does nothing.
    network.ask(A, Connect(Contact(B, HINTS)))
    network.run_until_quiet()
    assert type(a.inputs[-1][1]) is Asked


@pytest.mark.parametrize(
    ("hints", "prepare", "reason", "after"),
    [
        ((), lambda network: None, Reason.NO_ADDRESS, 0.0),
        (HINTS, lambda network: network.crash(B), Reason.CONNECTION_REFUSED, 60.0),
        (HINTS, lambda network: network.partition([[B]]), Reason.DIAL_TIMEOUT, 10000.0),
    ],
)
def test_a_dial_that_fails_says_why(
    hints: tuple[str, ...], prepare: Callable[[Network], None], reason: Reason, after: float
) -> None:
    a, b = obeying(), obeying()
    network = apart(a, b)
    prepare(network)
    network.ask(A, Connect(Contact(B, hints)))
    network.run_until_quiet()
    assert moments(a)[1:] == [(after, DialFailed(B, reason))]
    assert b.inputs == []


def test_who_cannot_be_dialled_can_dial() -> None:
    a, b = obeying(), obeying()
    network = Network(1, steady_links(10))
    network.add(A, a)
    network.add(B, b, dialable=False)
    connect(network, [(A, B)])
    assert moments(a)[1:] == [(10000.0, DialFailed(B, Reason.DIAL_TIMEOUT))]
    connect(network, [(B, A)])
    assert network.linked(A) == [B]


def test_an_unknown_peer_times_out_and_versions_must_meet() -> None:
    a, b = obeying(), obeying()
    b.hello = replace(HELLO, oldest=9, newest=9)
    network = apart(a, b)
    connect(network, [(A, C), (A, B)])
    failures = [event for _, event in a.inputs if isinstance(event, DialFailed)]
    assert failures == [DialFailed(B, Reason.VERSION_MISMATCH), DialFailed(C, Reason.DIAL_TIMEOUT)]


def test_a_probe_keeps_no_link() -> None:
    a = obeying(on_examine(Probe(B, HINTS), Probe(C, HINTS), Probe(B, ())))
    network = Network(1, steady_links(10))
    network.add(A, a)
    network.add(B, obeying())
    network.add(C, obeying(), dialable=False)
    network.ask(A, Examine())
    network.run_until_quiet()
    probed = [event for _, event in a.inputs if isinstance(event, Probed)]
    assert probed == [Probed(B, Reason.NO_ADDRESS), Probed(B, None), Probed(C, Reason.DIAL_TIMEOUT)]
    assert network.linked(A) == []


def test_messages_take_the_latency_and_keep_their_order() -> None:
    a, b = obeying(on_examine(*(Send(B, Ping(n)) for n in range(5)))), obeying()
    network = pair(steady_links(10), a, b)
    network.ask(A, Examine(), at=1.0)
    network.run(2.0)
    assert moments(b) == [(1010.0, Received(A, Ping(n))) for n in range(5)]
    assert network.elapsed == 2.0


@settings(max_examples=25)
@given(st.integers(0, 1000), st.sampled_from([0.0, 0.2]), st.sampled_from([None, 2000.0]))
def test_a_link_never_reorders_whatever_else_it_does(seed: int, loss: float, bandwidth: float | None) -> None:
    links = LinkModel(constant_latency(10), jitter=0.5, loss=loss, bandwidth=bandwidth)
    a, b = obeying(on_examine(*(Send(B, Ping(n)) for n in range(30)))), obeying()
    network = apart(a, b, links, seed=seed)
    connect(network, [(A, B)])
    network.ask(A, Examine())
    network.run_until_quiet()
    numbers = received(b)
    assert numbers == sorted(numbers)
    assert loss > 0 or numbers == list(range(30))


def test_two_links_reorder() -> None:
    """What A sends first over the slow link arrives after what it sends then over the fast one."""
    table = parse_latency("region,near,far\nnear,1,50\nfar,50,1\n", "test")
    a = obeying(on_examine(Send(B, Ping(1)), Send(C, Ping(2))))
    b, c = obeying(), obeying()
    network = Network(1, LinkModel(table))
    network.add(A, a, region="near")
    network.add(B, b, region="far")
    network.add(C, c, region="near")
    connect(network, [(A, B), (A, C)])
    network.ask(A, Examine())
    network.run_until_quiet()
    assert [received(b), received(c)] == [[1], [2]]
    assert b.inputs[-1][0] > c.inputs[-1][0]


def test_loss_is_as_likely_as_said_and_recorded() -> None:
    trace = RowTrace()
    a, b = obeying(on_examine(*(Send(B, Ping(n)) for n in range(2000)))), obeying()
    network = pair(LinkModel(constant_latency(10), loss=0.1), a, b, trace)
    network.ask(A, Examine())
    network.run_until_quiet()
    lost = [row for row in trace.rows if row.kind == Kind.DROPPED]
    assert len(received(b)) + len(lost) == 2000
    assert 140 < len(lost) < 260
    assert {(row.node, row.peer, row.reason, row.note) for row in lost} == {(A, B, Reason.LOST, "Ping")}


def test_a_message_without_a_link_is_recorded() -> None:
    trace = RowTrace()
    network = Network(1, steady_links(), trace)
    network.add(A, obeying(on_examine(Send(B, Ping(1)))))
    network.ask(A, Examine())
    network.run_until_quiet()
    assert [(row.kind, row.peer, row.reason) for row in trace.rows] == [(Kind.DROPPED, B, Reason.UNREACHABLE)]


def test_bandwidth_makes_messages_queue() -> None:
    """A ping of a small number is three bytes: at 1,000 bytes a second each takes 3 ms to leave."""
    a, b = obeying(on_examine(*(Send(B, Ping(n)) for n in range(3)))), obeying()
    network = pair(LinkModel(constant_latency(10), bandwidth=1000), a, b)
    network.ask(A, Examine(), at=1.0)
    network.run_until_quiet()
    assert [at for at, _ in moments(b)] == pytest.approx([1013.0, 1016.0, 1019.0])


def test_a_full_outbox_congests_and_drains() -> None:
    links = LinkModel(constant_latency(10), bandwidth=300, outbox_high=30, outbox_low=12)
    a, b = obeying(on_examine(*(Send(B, Ping(n)) for n in range(20)))), obeying()
    network = pair(links, a, b)
    network.ask(A, Examine(), at=1.0)
    network.run_until_quiet()
    # 20 messages of 3 bytes; 12 bytes are left after 16 of them, 10 ms each.
    assert moments(a)[1:] == [(1000.0, Congested(B)), (1160.0, Drained(B))]
    assert received(b) == list(range(20))


@pytest.mark.parametrize("bound", [{"outbox_bytes": 30}, {"outbox_age": 0.05}])
def test_a_link_that_does_not_keep_up_closes(bound: dict[str, float]) -> None:
    trace = RowTrace()
    links = replace(LinkModel(constant_latency(10), bandwidth=300), **bound)
    a, b = obeying(on_examine(*(Send(B, Ping(n)) for n in range(20)))), obeying()
    network = pair(links, a, b, trace)
    network.ask(A, Examine(), at=1.0)
    network.run_until_quiet()
    assert LinkDown(B, Reason.SLOW_PEER) in [event for _, event in a.inputs]
    assert b.inputs[-1][1] == LinkDown(A, Reason.SLOW_PEER)
    assert len(received(b)) < 20
    downs = [(row.node, row.reason) for row in trace.rows if row.kind == Kind.LINK_DOWN]
    assert downs == [(A, Reason.SLOW_PEER), (B, Reason.SLOW_PEER)]
    dropped = [row for row in trace.rows if row.kind == Kind.DROPPED]
    unsent = sum(row.events for row in dropped if row.reason == Reason.SLOW_PEER)
    sent_after = len([row for row in dropped if row.reason == Reason.UNREACHABLE])
    in_flight = 20 - unsent - sent_after - len(received(b))
    assert unsent > 0
    assert 0 <= in_flight <= 2


@pytest.mark.parametrize("bandwidth", [None, 300.0])
def test_what_was_sent_before_a_hang_up_arrives_first(bandwidth: float | None) -> None:
    trace = RowTrace()
    effects = (Send(B, Ping(1)), Send(B, Ping(2)), HangUp(B, Reason.NOT_NEEDED), Send(B, Ping(3)))
    a, b = obeying(on_examine(*effects)), obeying()
    network = pair(LinkModel(constant_latency(10), jitter=0.1, bandwidth=bandwidth), a, b, trace)
    network.ask(A, Examine(), at=1.0)
    network.run_until_quiet()
    assert [event for _, event in a.inputs[1:]] == [LinkDown(B, Reason.NOT_NEEDED)]
    assert [event for _, event in b.inputs] == [
        Received(A, Ping(1)),
        Received(A, Ping(2)),
        LinkDown(A, Reason.NOT_NEEDED),
    ]
    assert network.linked(A) == network.linked(B) == []
    assert [row.note for row in trace.rows if row.kind == Kind.DROPPED] == ["Ping"]


def test_a_crash_is_seen_after_what_was_sent_before() -> None:
    a, b = obeying(on_examine(Send(B, Ping(1)), SetTimer(5.0, Due("late")))), obeying()
    network = pair(steady_links(10), a, b)
    network.ask(A, Examine(), at=1.0)
    network.at(1.005, lambda: network.crash(A))
    network.ask(A, Examine(), at=2.0)
    network.run(10.0)
    assert moments(b) == [(1010.0, Received(A, Ping(1))), (1015.0, LinkDown(A, Reason.CRASHED))]
    assert len(a.inputs) == 1
    assert not network.is_up(A)
    assert network.answers[max(network.answers)] == Declined(Reason.CRASHED, "the node is down")


def test_a_silent_crash_is_found_out_by_the_next_link() -> None:
    b, again = obeying(), obeying()
    network = pair(steady_links(10), obeying(), b)
    network.crash(A, silent=True)
    network.run(10.0)
    assert b.inputs == []
    network.restart(A, again)
    connect(network, [(A, B)])
    assert [event for _, event in b.inputs] == [
        LinkDown(A, Reason.DUPLICATE_LINK),
        LinkUp(A, HELLO, dialed=False, network=None),
    ]


def test_a_dialler_that_crashes_before_its_link_is_up() -> None:
    b = obeying()
    network = apart(obeying(), b)
    network.ask(A, Connect(Contact(B, HINTS)))
    network.at(0.055, lambda: network.crash(A))
    network.run_until_quiet()
    assert moments(b) == [
        (50.0, LinkUp(A, HELLO, dialed=False, network=None)),
        (70.0, LinkDown(A, Reason.CRASHED)),
    ]


def test_a_partition_cuts_links_and_heals() -> None:
    trace = RowTrace()
    a = obeying(on_examine(Send(B, Ping(1)), Send(C, Ping(2))))
    machines = {A: a, B: obeying(), C: obeying()}
    network = Network(1, steady_links(10), trace)
    for peer, machine in machines.items():
        network.add(peer, machine)
    connect(network, [(A, B), (A, C)])
    network.ask(A, Examine(), at=1.0)
    network.at(1.0, lambda: network.partition([[A, C], [B]]))
    network.ask(A, Examine(), at=2.0)
    network.run(3.0)
    assert received(machines[B]) == []
    assert received(machines[C]) == [2, 2]
    assert machines[B].inputs[-1][1] == LinkDown(A, Reason.PARTITIONED)
    assert network.linked(A) == [C]
    assert [row.reason for row in trace.rows if row.kind == Kind.DROPPED] == [Reason.UNREACHABLE]
    network.heal()
    connect(network, [(A, B)])
    network.ask(A, Examine())
    network.run_until_quiet()
    assert received(machines[B]) == [1]


def test_a_silent_partition_leaves_dead_links() -> None:
    trace = RowTrace()
    effects = (Send(B, Ping(1)), HangUp(B, Reason.PING_TIMEOUT))
    a, b = obeying(on_examine(*effects)), obeying()
    network = pair(steady_links(10), a, b, trace)
    network.partition([[A], [B]], silent=True)
    network.ask(A, Examine(), at=5.0)
    network.run(6.0)
    network.heal()
    network.run(7.0)
    assert [event for _, event in a.inputs[1:]] == [LinkDown(B, Reason.PING_TIMEOUT)]
    assert b.inputs == []
    assert [row.reason for row in trace.rows if row.kind == Kind.DROPPED] == [Reason.PARTITIONED]
    connect(network, [(A, B)])
    assert [event for _, event in b.inputs] == [
        LinkDown(A, Reason.DUPLICATE_LINK),
        LinkUp(A, HELLO, dialed=False, network=None),
    ]


def test_a_partition_during_a_dial() -> None:
    for moment in (0.02, 0.055):
        a, b = obeying(), obeying()
        network = apart(a, b)
        network.ask(A, Connect(Contact(B, HINTS)))
        network.at(moment, partial(network.partition, [[A]]))
        network.run_until_quiet()
        assert [event for _, event in a.inputs[1:]] == [DialFailed(B, Reason.DIAL_TIMEOUT)]
        assert network.linked(B) == []


def test_control_goes_before_bulk_and_each_keeps_its_order() -> None:
    outbox = Outbox()
    assert Data in STANDARD.bulk
    for number in range(3):
        outbox.bulk.append((10, 0.0, Ping(100 + number)))
        outbox.control.append((5, 0.0, Ping(number)))
    taken = [outbox.take() for _ in range(7)]
    numbers = [entry[2].number if entry and isinstance(entry[2], Ping) else None for entry in taken]
    assert numbers == [0, 1, 2, 100, 101, 102, None]


def test_clearing_counts_what_was_unsent_and_what_was_leaving() -> None:
    outbox = Outbox()
    outbox.control.append((5, 0.0, Ping(1)))
    outbox.bulk.append((5, 0.0, Ping(2)))
    outbox.sending = True
    assert outbox.clear() == 3
    assert outbox.take() is None
