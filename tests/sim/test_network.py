"""The driver of the simulation: what machines may rely on, one promise after another."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from tests.due import Due
from tests.machines import Scripted
from tests.sim.scripts import A, B, Script, moments, obeying, on_examine, pair, received

from linnet.core.effects import (
    AfterCommit,
    CancelTimer,
    Deliver,
    Reply,
    Send,
    SetTimer,
)
from linnet.core.ids import PeerId
from linnet.core.inputs import (
    Asked,
    LinkDown,
    LinkUp,
    TimerFired,
)
from linnet.core.reasons import Reason
from linnet.delivery.items import Ended, Item
from linnet.machine.commands import Done
from linnet.peer.interface import Effect, Examine, Input, Promise
from linnet.peer.messages import Ping, Pong
from linnet.sim.clock import START
from linnet.sim.network import Network
from linnet.store.memory import MemoryStore
from linnet.testing.networks import RowTrace, build, connect, steady_links
from linnet.trace.records import Kind, Record


def test_timers_are_values() -> None:
    one, two = Due("one"), Due("two", b"key")
    effects = (
        SetTimer(1.0, one),
        SetTimer(2.0, two),
        SetTimer(3.0, Due("one")),
        SetTimer(0.5, Due("never")),
        CancelTimer(Due("never")),
        CancelTimer(Due("unknown")),
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


def test_a_node_that_ends_at_its_commit_does_nothing_behind_it() -> None:
    network = Network(1, steady_links())

    class FullDisk:
        def commit(self, done: Callable[[], None]) -> None:
            network.crash(A)

        def rollback(self) -> None:
            pass

    tick = Due("later")
    a = obeying(on_examine(AfterCommit(()), SetTimer(1.0, tick)))
    network.add(A, a, store=FullDisk())
    network.ask(A, Examine())
    network.run(1.0)
    network.restart(A, obeying())
    network.run(5.0)
    assert [event for _, event in moments(a)[1:]] == []


def test_without_a_commit_delay_promises_are_kept_at_once() -> None:
    a, b = obeying(on_examine(AfterCommit((Send(B, Ping(1)),)), Send(B, Ping(2)))), obeying()
    network = pair(steady_links(10), a, b)
    network.ask(A, Examine())
    network.run_until_quiet()
    assert received(b) == [1, 2]


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
