"""Nodes in trouble lose and delay what they should, and attackers keep what they want."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tests.sim.attacks.spout import Spout

from linnet.core.effects import AfterCommit, Send, SetTimer
from linnet.core.hello import WIRE_VERSION, Hello
from linnet.core.ids import EventId, PeerId
from linnet.core.inputs import Asked, Received, TimerFired
from linnet.core.messages import Message
from linnet.delivery.messages import ChainPlace, Data, Heads
from linnet.event.event import Spot
from linnet.event.signing import message_tail, sign_unit
from linnet.overlay.messages import NeighborStatus, Status, TopicStatus
from linnet.peer.interface import Effect, Input, Start
from linnet.peer.messages import STANDARD, Ping, Pong
from linnet.sim.attacks.conduct import (
    LOST,
    NAP,
    SLOW,
    WITHHELD,
    Conduct,
    LossyNode,
    SendingNode,
    SleepyNode,
    SlowNode,
    WithheldDue,
    trouble,
    withhold,
)
from linnet.sim.clock import START
from linnet.sim.network import Network
from linnet.sim.seeded_random import seeded_identity
from linnet.streams.stream_names import topic_of
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


# Attackers.

CID, FELLOW = named_peer("cid"), named_peer("fellow")
TOPIC = topic_of("any")
EVE = seeded_identity(1, "eve", START)
PLACE = ChainPlace(EVE.author, EVE.card.device, 0, 5, True)
HEADS = Heads(TOPIC, (PLACE,), 0, (0,))
BEGIN = Asked(1, Start())


def data(number: int) -> Data:
    spot = Spot(TOPIC, EVE.author, EVE.card.device, number, None if number == 0 else EventId(bytes(32)))
    unit = sign_unit(EVE.device, spot, (message_tail(b"x", 1),)).unit
    return Data(unit, 1, 0, 0, None)


def sent(node: SendingNode, now: float = 0.0) -> list[tuple[PeerId, Message]]:
    """All messages that a node sends now, at once or after a commit."""
    effects = node.handle(BEGIN, now)
    spread = (each.effects if isinstance(each, AfterCommit) else (each,) for each in effects)
    return [(each.peer, each.message) for part in spread for each in part if isinstance(each, Send)]


def attacker(
    conduct: Conduct, *messages: Message, until: float = 0.0, peers: Sequence[PeerId] = (ANN,)
) -> SendingNode:
    """An attacker whose machine sends each of these messages to each of these peers, at every input."""
    sends = [Send(peer, message) for message in messages for peer in peers]
    spout = Spout([*sends[::2], *(AfterCommit((each,)) for each in sends[1::2])])
    return withhold(conduct, spout, (CID,), until, (FELLOW,))


def test_silent_attackers_keep_events_alone_and_mute_ones_know_of_none() -> None:
    said = (data(0), HEADS, Ping(1))
    assert {type(message) for _, message in sent(attacker(Conduct.SILENT, *said))} == {Heads, Ping}
    assert (ANN, HEADS) in sent(attacker(Conduct.SILENT, *said))
    assert (ANN, Heads(TOPIC, (), 0, ())) in sent(attacker(Conduct.MUTE, *said))
    assert (ANN, Ping(1)) in sent(attacker(Conduct.MUTE, *said))


def test_sleepers_send_all_until_their_time() -> None:
    node = attacker(Conduct.SLEEPER, data(0), Ping(1), until=50.0)
    assert len(sent(node, 49.9)) == 2
    assert sent(node, 50.0) == [(ANN, Ping(1))]


def test_selective_attackers_send_events_to_their_favourites_alone() -> None:
    node = attacker(Conduct.SELECTIVE, data(0), peers=(ANN, BEN, CID))
    assert [peer for peer, _ in sent(node)] == [CID]


def test_partial_attackers_send_every_third_event_and_all_to_their_favourites() -> None:
    node = attacker(Conduct.PARTIAL, *map(data, range(7)))
    assert sorted(message.unit.seq or 0 for _, message in sent(node) if isinstance(message, Data)) == [
        0,
        3,
        6,
    ]
    assert len(sent(attacker(Conduct.PARTIAL, *map(data, range(7)), peers=(CID,)))) == 7


def test_late_attackers_send_events_later_and_the_rest_at_once() -> None:
    node = attacker(Conduct.LATE, data(0), Ping(1))
    assert sent(node, 0.0) == [(ANN, Ping(1))]
    early = node.handle(TimerFired(WithheldDue()), WITHHELD - 1.0)
    assert early == [SetTimer(1.0, WithheldDue())]
    assert node.handle(TimerFired(WithheldDue()), WITHHELD) == [Send(ANN, data(0))]
    assert len(sent(attacker(Conduct.LATE, data(0), peers=(CID,)))) == 1


def test_attackers_report_links_to_their_fellows_as_failed() -> None:
    status = TopicStatus(TOPIC, (NeighborStatus(ANN, 5), NeighborStatus(FELLOW, 7)))
    shown = Status(3, TopicStatus(TOPIC, (NeighborStatus(ANN, 5),)))
    for conduct in (Conduct.SILENT, Conduct.MUTE):
        assert sent(attacker(conduct, Status(3, status))) == [(ANN, shown)]
