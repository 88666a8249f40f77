"""Nodes in trouble lose, delay and miss what they should, and nothing else."""

from __future__ import annotations

from random import Random

from linnet.core.effects import AfterCommit, Send
from linnet.core.hello import WIRE_VERSION, Hello
from linnet.core.inputs import Received
from linnet.peer.interface import Effect, Input
from linnet.peer.messages import STANDARD, Ping, Pong
from linnet.sim.attacks.conduct import (
    LOST,
    NAP,
    SLOW,
    Conduct,
    LossyNode,
    SendingNode,
    SleepyNode,
    SlowNode,
    trouble,
)
from linnet.sim.network import Network
from linnet.testing.networks import HINTS, named_peer, steady_links

ANN, BEN = named_peer("ann"), named_peer("ben")
SEEDS = range(10)


class Talker:
    """Sends a number to whoever is linked, for each one that it is sent, and notes when that was."""

    hello = Hello(WIRE_VERSION, WIRE_VERSION, {})

    def __init__(self) -> None:
        self.heard: list[tuple[int, float]] = []

    def handle(self, event: Input, now: float) -> list[Effect]:
        if isinstance(event, Received) and isinstance(event.message, Ping):
            self.heard.append((event.message.number, now))
            pong = Send(event.peer, Pong(event.message.number))
            return [pong] if event.message.number % 2 else [AfterCommit((pong,))]
        return []


class Listener(Talker):
    """Notes the answers."""

    def handle(self, event: Input, now: float) -> list[Effect]:
        if isinstance(event, Received) and isinstance(event.message, Pong):
            self.heard.append((event.message.number, now))
        return []


def asked(node: SendingNode, seed: int, gap: float, count: int = 40) -> tuple[list[float], Listener]:
    """A node is asked so often; when each question left, and what came back."""
    network = Network(seed, steady_links(0.0))
    listener = Listener()
    network.add(ANN, listener)
    network.add(BEN, node)
    connect_by_hand(network)
    left: list[float] = []
    for number in range(count):
        left.append(network.now)
        network.hand(BEN, [Received(ANN, Ping(number))])
        network.run(network.elapsed + gap)
    network.run(network.elapsed + 200.0)
    return left, listener


def connect_by_hand(network: Network) -> None:
    """Link both, though neither machine dials."""
    hosts = network._hosts
    network._wires.dial(hosts[BEN], ANN, HINTS)
    network.run(network.elapsed + 1.0)


def test_a_node_that_is_like_the_others_answers_at_once_and_is_counted() -> None:
    node = SendingNode(Talker())
    left, listener = asked(node, 1, 1.0)
    assert [number for number, _ in listener.heard] == list(range(40))
    assert [at for _, at in listener.heard] == left
    assert node.bytes == sum(len(STANDARD.encode(Pong(number))) for number in range(40))
    assert node.inputs >= 40


def test_a_slow_node_sends_everything_late_and_in_order() -> None:
    for seed in SEEDS:
        left, listener = asked(SlowNode(Talker(), Random(seed)), seed, 0.5)
        assert [number for number, _ in listener.heard] == list(range(40))
        delays = [at - begin for begin, (_, at) in zip(left, listener.heard, strict=True)]
        assert SLOW[0] <= min(delays)
        assert 4.0 < max(delays) <= SLOW[1] + 0.001


def test_a_sleepy_node_answers_everything_when_it_wakes_up() -> None:
    most = 0.0
    for seed in SEEDS:
        left, listener = asked(SleepyNode(Talker(), Random(seed)), seed, 5.0)
        assert [number for number, _ in listener.heard] == list(range(40))
        delays = [at - begin for begin, (_, at) in zip(left, listener.heard, strict=True)]
        assert max(delays) <= NAP[1]
        assert delays.count(0.0) > 5, "it is awake at times"
        most = max(most, *delays)
    assert most > NAP[0], "and asleep at times"


def test_a_lossy_node_loses_a_share_of_its_own() -> None:
    shares = []
    for seed in SEEDS:
        _, listener = asked(LossyNode(Talker(), Random(seed)), seed, 0.1, count=1000)
        numbers = [number for number, _ in listener.heard]
        assert numbers == sorted(numbers)
        shares.append(1 - len(numbers) / 1000)
    assert LOST[0] - 0.03 < min(shares) < 0.1
    assert 0.13 < max(shares) < LOST[1] + 0.04


def test_each_trouble_has_its_node() -> None:
    kinds = {
        conduct: type(trouble(conduct, Talker(), Random(1))) for conduct in Conduct if not conduct.is_hostile
    }
    assert kinds == {Conduct.SLOW: SlowNode, Conduct.SLEEPY: SleepyNode, Conduct.LOSSY: LossyNode}
