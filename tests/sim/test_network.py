"""The driver of the simulation: what machines may rely on, one promise after another."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from linnet.core.effects import (
    AfterCommit,
    CancelTimer,
    Deliver,
    Dial,
    HangUp,
    Probe,
    Reply,
    Send,
    SetTimer,
)
from linnet.core.ids import Contact, PeerId
from linnet.core.inputs import (
    Asked,
    Congested,
    DialFailed,
    Drained,
    LinkDown,
    LinkUp,
    Probed,
    Received,
    TimerFired,
)
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.delivery.items import Ended, Item
from linnet.peer.interface import Connect, Effect, Examine, Input, Promise
from linnet.peer.messages import Ping, Pong
from linnet.sim.clock import START
from linnet.sim.links import LinkModel, constant_latency, parse_latency
from linnet.sim.network import Network
from linnet.store.memory import MemoryStore
from linnet.streams.commands import Declined, Done
from linnet.testing.machines import HELLO, Scripted
from linnet.testing.networks import HINTS, RowTrace, build, connect, named_peer, steady_links
from linnet.trace.records import Kind, Record

A, B, C = named_peer("a"), named_peer("b"), named_peer("c")
Script = Callable[[Input, float], list[Effect]]


def obeying(script: Script | None = None) -> Scripted:
    """A machine that dials when asked to connect, and beside that does what its script says."""

    def answer(event: Input, now: float) -> list[Effect]:
        match event:
            case Asked(request, Connect(Contact(peer, hints))):
                return [Dial(peer, hints), Reply(request, Done())]
            case _:
                return [] if script is None else script(event, now)

    return Scripted(answer)


def pair(links: LinkModel, a: Scripted, b: Scripted, trace: RowTrace | None = None) -> Network:
    """Two nodes with a link, A having dialled, and nothing else under way."""
    network = Network(1, links, trace)
    network.add(A, a)
    network.add(B, b)
    connect(network, [(A, B)])
    a.inputs.clear()
    b.inputs.clear()
    return network


def on_examine(*effects: Effect) -> Script:
    """Return these effects when asked to examine."""

    def script(event: Input, now: float) -> list[Effect]:
        match event:
            case Asked(_, Examine()):
                return list(effects)
            case _:
                return []

    return script


def received(machine: Scripted) -> list[int]:
    return [
        event.message.number
        for _, event in machine.inputs
        if isinstance(event, Received) and isinstance(event.message, Ping)
    ]


def moments(machine: Scripted) -> list[tuple[float, Input]]:
    """What happened, with milliseconds since the start."""
    return [(round((now - START) * 1000, 3), event) for now, event in machine.inputs]


def test_a_dial_ends_in_a_link_at_both_ends() -> None:
    a, b = obeying(), obeying()
    network = Network(1, steady_links(10))
    network.add(A, a)
    network.add(B, b)
    request = network.ask(A, Connect(Contact(B, HINTS)), at=1.0)
    assert network.run_until_quiet()
    # Two round trips and our greeting; the other's greeting is one way more.
    assert moments(b) == [(1050.0, LinkUp(A, HELLO, dialed=False))]
    assert moments(a)[1:] == [(1060.0, LinkUp(B, HELLO, dialed=True))]
    assert network.answers == {request: Done()}
    assert network.linked(A) == [B]
    assert network.linked(B) == [A]


def test_simultaneous_dials_give_one_link() -> None:
    a, b = obeying(), obeying()
    network = Network(1, steady_links(10))
    network.add(A, a)
    network.add(B, b)
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
    network = Network(1, steady_links(10))
    network.add(A, a)
    network.add(B, b)
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
    network = Network(1, steady_links(10))
    network.add(A, a)
    network.add(B, b)
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
    network = Network(seed, links)
    network.add(A, a)
    network.add(B, b)
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


def test_timers_are_values() -> None:
    one, two = Tick("test", "one"), Tick("test", "two", b"key")
    effects = (
        SetTimer(1.0, one),
        SetTimer(2.0, two),
        SetTimer(3.0, Tick("test", "one")),
        SetTimer(0.5, Tick("test", "never")),
        CancelTimer(Tick("test", "never")),
        CancelTimer(Tick("test", "unknown")),
    )
    a = obeying(on_examine(*effects))
    network = Network(1, steady_links())
    network.add(A, a)
    network.ask(A, Examine())
    assert network.run_until_quiet()
    assert network.elapsed == 0.0
    network.run(10.0)
    assert moments(a)[1:] == [(2000.0, TimerFired(two)), (3000.0, TimerFired(one))]


def test_deliveries_are_counted_or_handed_over() -> None:
    seen: list[tuple[PeerId, Deliver[Item], float]] = []
    effect = Deliver(7, (Ended(None),))
    network = Network(1, steady_links())
    network.add(A, obeying(on_examine(effect)))
    network.add(B, obeying(on_examine(effect)), deliver=lambda *what: seen.append(what))
    network.ask(A, Examine())
    network.ask(B, Examine(), at=2.0)
    network.run(3.0)
    assert network.delivered == {A: 1}
    assert seen == [(B, effect, START + 2.0)]


def test_records_carry_node_and_time() -> None:
    trace = RowTrace()
    network = Network(1, steady_links(), trace)
    network.add(A, obeying(on_examine(Record(Kind.PUBLISHED, seq=3))))
    network.ask(A, Examine(), at=1.5)
    network.run(2.0)
    assert [(row.time, row.node, row.kind, row.seq) for row in trace.rows] == [
        (START + 1.5, A, Kind.PUBLISHED, 3)
    ]


def test_links_are_recorded_at_both_ends() -> None:
    trace = RowTrace()
    network = pair(steady_links(10), obeying(), obeying(), trace)
    network.crash(B)
    network.run_until_quiet()
    assert [(row.node, row.kind, row.peer, row.reason) for row in trace.rows] == [
        (B, Kind.LINK_UP, A, None),
        (A, Kind.LINK_UP, B, None),
        (B, Kind.OFFLINE, None, Reason.CRASHED),
        (A, Kind.LINK_DOWN, B, Reason.CRASHED),
    ]


def test_promises_wait_for_the_commit_and_a_crash_breaks_them() -> None:
    promises: tuple[Promise, ...] = (Reply(1, Done()), Send(B, Ping(1)))
    outcomes = []
    for crash_at in (None, 1.0):
        a, b = obeying(on_examine(AfterCommit(promises), Send(B, Ping(2)))), obeying()
        network = Network(1, steady_links(10), commit_delay=0.5)
        network.add(A, a)
        network.add(B, b)
        connect(network, [(A, B)])
        network.ask(A, Examine(), at=1.0)
        if crash_at is not None:
            network.at(crash_at, partial(network.crash, A))
        network.run(3.0)
        outcomes.append(received(b))
    assert outcomes == [[2, 1], [2]]


def test_a_crash_takes_back_what_was_not_committed() -> None:
    stores = MemoryStore(), MemoryStore()
    for store, crash_at in zip(stores, (1.0, 3.0), strict=True):
        a = obeying(writing(store))
        network = Network(1, steady_links(10), commit_delay=0.5)
        network.add(A, a, store=store)
        network.ask(A, Examine(), at=1.0)
        network.at(crash_at, partial(network.crash, A))
        network.run(4.0)
    assert [store.cells.get("test", b"key") for store in stores] == [None, b"value"]


def writing(store: MemoryStore) -> Script:
    def script(event: Input, now: float) -> list[Effect]:
        if isinstance(event, Asked):
            store.cells.put("test", b"key", b"value")
            return [AfterCommit((Reply(event.request, Done()),))]
        return []

    return script


def test_without_a_commit_delay_promises_are_kept_at_once() -> None:
    a, b = obeying(on_examine(AfterCommit((Send(B, Ping(1)),)), Send(B, Ping(2)))), obeying()
    network = pair(steady_links(10), a, b)
    network.ask(A, Examine())
    network.run_until_quiet()
    assert received(b) == [1, 2]


def test_a_crash_is_seen_after_what_was_sent_before() -> None:
    a, b = obeying(on_examine(Send(B, Ping(1)), SetTimer(5.0, Tick("test", "late")))), obeying()
    network = pair(steady_links(10), a, b)
    network.ask(A, Examine(), at=1.0)
    network.at(1.005, lambda: network.crash(A))
    network.ask(A, Examine(), at=2.0)
    network.run(10.0)
    assert moments(b) == [(1010.0, Received(A, Ping(1))), (1015.0, LinkDown(A, Reason.CRASHED))]
    assert len(a.inputs) == 1
    assert not network.is_up(A)
    assert network.answers[max(network.answers)] == Declined(Reason.CRASHED, "the node is down")


def test_a_crashed_node_comes_back_as_a_new_machine() -> None:
    a, b, again = obeying(), obeying(), obeying()
    network = pair(steady_links(10), a, b)
    network.crash(A)
    with pytest.raises(ValueError, match="still up"):
        network.restart(B, again)
    network.restart(A, again)
    connect(network, [(A, B)])
    assert [type(event) for _, event in b.inputs] == [LinkDown, LinkUp]
    assert [type(event) for _, event in again.inputs] == [Asked, LinkUp]
    assert a.inputs == []


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
        LinkUp(A, HELLO, dialed=False),
    ]


def test_a_dialler_that_crashes_before_its_link_is_up() -> None:
    b = obeying()
    network = Network(1, steady_links(10))
    network.add(A, obeying())
    network.add(B, b)
    network.ask(A, Connect(Contact(B, HINTS)))
    network.at(0.055, lambda: network.crash(A))
    network.run_until_quiet()
    assert moments(b) == [
        (50.0, LinkUp(A, HELLO, dialed=False)),
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
        LinkUp(A, HELLO, dialed=False),
    ]


def test_a_partition_during_a_dial() -> None:
    for moment in (0.02, 0.055):
        a, b = obeying(), obeying()
        network = Network(1, steady_links(10))
        network.add(A, a)
        network.add(B, b)
        network.ask(A, Connect(Contact(B, HINTS)))
        network.at(moment, partial(network.partition, [[A]]))
        network.run_until_quiet()
        assert [event for _, event in a.inputs[1:]] == [DialFailed(B, Reason.DIAL_TIMEOUT)]
        assert network.linked(B) == []


def test_a_bug_names_seed_and_time() -> None:
    def broken(event: Input, now: float) -> list[Effect]:
        raise RuntimeError("our bug")

    network = Network(42, steady_links())
    network.add(A, Scripted(broken))
    network.ask(A, Examine(), at=1.0)
    with pytest.raises(RuntimeError) as caught:
        network.run(2.0)
    assert caught.value.__notes__ == ["in the simulation of seed 42, 1.000000 s after its start"]


def test_nodes_have_one_place() -> None:
    network = Network(1, steady_links())
    (peer,) = build(network, ["one"], Scripted)
    with pytest.raises(ValueError, match="already"):
        network.add(peer, Scripted())
    with pytest.raises(ValueError, match="no region"):
        network.add(A, Scripted(), region="the moon")


def test_handled_counts_what_machines_were_handed() -> None:
    a, b = obeying(on_examine(Send(B, Ping(1)), Send(B, Pong(1)))), obeying()
    network = pair(steady_links(10), a, b)
    network.ask(A, Examine())
    network.run_until_quiet()
    assert network.handled == 2
