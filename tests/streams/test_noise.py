"""Nobody hears of what they have not joined, and two nodes need one link for all that they share."""

from __future__ import annotations

import pytest
from tests.conftest import SOAK
from tests.streams.village import Village

from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.delivery.commands import Unsubscribe
from linnet.delivery.messages import Data, DeliveryMessage, KeepingMessage
from linnet.overlay.messages import OverlayMessage, Reachability, SampleMessage, Status, StatusAll
from linnet.peer.config import LinkConfig
from linnet.peer.interface import Examine, NodeStatus
from linnet.peer.messages import LinkMessage
from linnet.streams.config import StorageRule
from linnet.streams.messages import Follow, StreamMessage
from linnet.streams.stream_names import topic_of
from linnet.trace.records import Kind

STREAMS = ("tea", "coffee", "water")


def topics_of(message: Message) -> set[bytes]:
    """The topics that a message speaks of."""
    if isinstance(message, LinkMessage | Reachability):
        return set()
    if isinstance(message, Data):
        return {message.unit.topic}
    if isinstance(message, StatusAll):
        return {status.topic for status in message.topics}
    if isinstance(message, Status):
        return {message.status.topic}
    kinds = DeliveryMessage | KeepingMessage | OverlayMessage | SampleMessage | StreamMessage | Follow
    assert isinstance(message, kinds)
    return {getattr(message, "topic")}  # noqa: B009 - all others of these have one


@pytest.mark.parametrize("seed", range(50 if SOAK else 3))
def test_a_node_hears_nothing_of_a_stream_that_it_has_not_joined(seed: int) -> None:
    village = Village(seed, peers=8, storage=2, rules=(StorageRule("tea"), StorageRule("water")))
    joined = {f"p{n}": {STREAMS[n % 3], STREAMS[(n // 3) % 3]} for n in range(8)}
    for name, streams in joined.items():
        for stream in streams:
            village.subscribe(name, stream)
    village.run(10)
    for name, streams in joined.items():
        for stream in streams:
            village.publish(name, b"x", stream=stream, wait=0.2)
    village.crash("p3")
    village.run(20)
    for name in ("s0", "s1"):
        joined[name] = {"tea", "water"}
    for name, streams in joined.items():
        known = {topic_of(stream) for stream in streams}
        noise = [(who, m) for who, m in village.heard[name] if topics_of(m) - known]
        assert noise == [], name
        assert len(village.heard[name]) > 10


def test_a_stream_that_was_left_falls_silent() -> None:
    village = Village(peers=6)
    subscription = village.subscribe("p1")
    village.subscribe("p2")
    village.run(5)
    village.network.ask(village.peer("p1"), Unsubscribe(subscription))
    village.run(70)
    before = len(village.heard["p1"])
    village.publish("p2", b"x", wait=5)
    said = [message for _, message in village.heard["p1"][before:] if topics_of(message)]
    assert said == []
    assert village.status("p1").streams == ()


def links_between(village: Village, one: str, other: str) -> int:
    return village.network.linked(village.peer(one)).count(village.peer(other))


def test_one_link_serves_all_streams_of_a_pair_until_the_last_lets_go() -> None:
    village = Village(
        peers=2, storage=0, rules=(), keep=LinkConfig(idle_timeout=3.0, ping_period=5.0, ping_timeout=5.0)
    )
    tea = {name: village.subscribe(name, "tea") for name in ("p0", "p1")}
    coffee = {name: village.subscribe(name, "coffee") for name in ("p0", "p1")}
    village.run(10)
    assert links_between(village, "p0", "p1") == 1
    ups = [
        record
        for node, record in village.notes.records
        if record.kind is Kind.LINK_UP and node == village.peer("p0") and record.peer == village.peer("p1")
    ]
    assert len(ups) == 1
    for name, subscription in tea.items():
        village.network.ask(village.peer(name), Unsubscribe(subscription))
    village.run(80)
    assert links_between(village, "p0", "p1") == 1, "coffee still needs it"
    village.publish("p0", b"hot", stream="coffee", wait=2)
    assert village.bodies("p1", coffee["p1"]) == [b"hot"]
    for name, subscription in coffee.items():
        village.network.ask(village.peer(name), Unsubscribe(subscription))
    village.run(80)
    assert links_between(village, "p0", "p1") == 0
    downs = [
        record.reason
        for node, record in village.notes.records
        if record.kind is Kind.LINK_DOWN
        and record.peer in (village.peer("p0"), village.peer("p1"))
        and node in (village.peer("p0"), village.peer("p1"))
    ]
    assert set(downs) == {Reason.NOT_NEEDED}


def test_what_a_declined_command_opened_is_left_again() -> None:
    village = Village(peers=3)
    village.run(2)
    village.subscribe("p1", name="bad\nname", wait=1)
    assert len(village.status("p1").streams) == 1
    village.run(70)
    status = village.ask("p1", Examine())
    assert isinstance(status, NodeStatus)
    assert status.streams == ()
