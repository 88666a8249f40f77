"""The light driver: links by need, timers as values, and histories that follow from the seed."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from tests.due import Due
from tests.sim.light_scripts import DIAL, A, B, Listening, Said, world_of

from linnet.core.effects import Blame, CancelTimer, Hold, Release, Send, SetTimer
from linnet.core.ids import PeerId
from linnet.core.inputs import DialFailed, LinkDown, LinkUp, Received, TimerFired
from linnet.core.reasons import Reason
from linnet.overlay.notices import NeighborUp
from linnet.sim.clock import START
from linnet.sim.light_network import LightNetwork
from linnet.sim.links import LinkModel, constant_latency
from linnet.sim.seeded_random import named_luck
from linnet.testing.networks import RowTrace
from linnet.trace.records import Kind, Record


def test_messages_take_the_latency_and_need_a_link() -> None:
    a, b = Listening(LinkUp=[Send(B, Said("hello"))]), Listening(Received=[Blame(A, Reason.MALFORMED)])
    world = world_of(a, b, weigh=lambda message: len(message.text))
    world.perform(A, [Send(B, Said("too early")), Hold(B, (), "one")])
    world.run(1.0)
    assert b.seen[1:] == [(DIAL + 0.1, Received(A, Said("hello")))]
    assert (world.handled, world.lost, world.sent(A), world.kinds) == (1, 1, (1, 5), {Said: [1, 5]})
    assert (world.blamed(A), world.blamed(B)) == (0, 1)


def test_timers_are_values() -> None:
    a = Listening()
    world = world_of(a)
    one, two = Due("one"), Due("two", b"key")
    effects = [SetTimer(1.0, one), SetTimer(2.0, two), SetTimer(3.5, one), SetTimer(0.2, Due("x"))]
    world.perform(A, [*effects, CancelTimer(Due("x")), CancelTimer(Due("unknown"))])
    world.run(9.0)
    assert a.told() == [(2.0, "TimerFired", two), (3.5, "TimerFired", one)]


def test_loss_follows_from_the_seed() -> None:
    a, b = Listening(LinkUp=[Send(B, Said(str(number))) for number in range(1000)]), Listening()
    world = world_of(a, b, links=LinkModel(constant_latency(100.0), loss=0.1))
    world.perform(A, [Hold(B, (), "one")])
    world.run(2.0)
    luck = named_luck(1, "gossip/loss")
    kept = [str(number) for number in range(1000) if luck.random() >= 0.1]
    assert [event.message.text for _, event in b.seen[1:]] == kept
    assert 50 < world.lost == 1000 - len(kept) < 150


def test_records_are_traced_and_the_rest_goes_to_whoever_runs_it() -> None:
    others: list[tuple[PeerId, object, float]] = []
    trace = RowTrace()
    note = NeighborUp(bytes(32), B)  # type: ignore[arg-type]
    world = world_of(
        Listening(), trace=trace, other=lambda peer, effect, now: others.append((peer, effect, now))
    )
    world.perform(A, [Record(Kind.CONTROL), note])
    assert others == [(A, note, START)]
    assert len(trace.rows) == 1


def test_what_it_does_not_allow() -> None:
    world = world_of(Listening())
    with pytest.raises(ValueError, match="here already"):
        world.add(A, Listening())
    with pytest.raises(ValueError, match="still up"):
        world.restart(A, Listening())


class Chatter:
    """Tells a random other something at every tick, and passes on what it hears."""

    def __init__(self, ours: int, peers: list[PeerId], seed: int) -> None:
        self.ours, self.peers, self.rng = ours, peers, Random(seed * 1000 + ours)

    def handle(self, event: Any, now: float) -> list[Any]:  # noqa: ANN401 - as of a machine
        """See `Machine.handle`."""
        if isinstance(event, TimerFired):
            peer = self.rng.choice(self.peers)
            tick = SetTimer(self.rng.uniform(0.5, 1.5), event.timer)
            return [Hold(peer, (), "chat"), Send(peer, Said("tick")), tick]
        if isinstance(event, LinkUp):
            return [Send(event.peer, Said("tick"))]
        if isinstance(event, Received) and event.message.text == "tick":
            return [Send(event.peer, Said("tock"))]
        if isinstance(event, Received | DialFailed):
            return [Release(event.peer, "chat")]
        assert isinstance(event, LinkDown)
        return []


def chatting(seed: int) -> str:
    """The hash of some seconds among chatters, with crashes."""
    world = LightNetwork(seed, LinkModel(constant_latency(30.0), loss=0.01), idle=3.0)
    peers = [PeerId(bytes([number]) * 32) for number in range(1, 30)]
    for number, peer in enumerate(peers):
        world.add(peer, Chatter(number, peers, seed))
        world.perform(peer, [SetTimer(0.1 * number, Due("tick"))])
    world.at(5.0, lambda: world.crash(peers[3]))
    world.at(8.0, lambda: world.restart(peers[3], Chatter(3, peers, seed)))
    world.run(20.0)
    return f"{world.sha256()} {world.handled}"
