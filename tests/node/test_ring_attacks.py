"""Attacks over real sockets on a real node without trackers: it names the attacker and goes on."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable
from contextlib import AsyncExitStack

import pytest
from msgspec import structs
from tests.net.live import HandHeld, LiveNode, named_key

from linnet.core.effects import Dial, Send
from linnet.core.ids import PeerId
from linnet.core.inputs import LinkDown, LinkUp, Received
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.identity.keys import SigningKey
from linnet.node.config import NodeConfig, NodeSection, TrackerlessSection
from linnet.node.library import Node
from linnet.node.subscription import Subscription
from linnet.overlay.config import Overlay
from linnet.overlay.gossip.config import DAY, TrackerlessConfig
from linnet.overlay.gossip.descriptor import sign_descriptor
from linnet.overlay.gossip.messages import (
    Descriptor,
    Intersect,
    Intersected,
    IntersectEnd,
    Pull,
    Pulled,
    Seek,
)
from linnet.overlay.gossip.private_set_intersection import RISTRETTO, Intersections
from linnet.overlay.gossip.topic_tags import epoch_of, topic_keys
from linnet.peer.config import LinkConfig
from linnet.peer.interface import Effect, Input
from linnet.streams.stream_names import topic_of
from linnet.trace.records import Kind, Record

LIMIT = 60.0
STREAM = "tea"
QUICK = TrackerlessSection(period=0.5, release_delay=1.0, seek_pause=1.0)
PATIENT = LinkConfig(control_rate=50.0)
"""A tenth of what a peer may send otherwise: a flood is one on a machine that is busy, too."""
FLOOD = 3000


class Kept:
    """A trace in memory."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def write(self, node: PeerId, record: Record, now: float) -> None:
        self.records.append(record)

    def close(self) -> None:
        """Nothing is held."""

    def rejected(self, peer: PeerId, reason: Reason) -> list[Record]:
        """What was refused of a peer for a reason."""
        return [
            each
            for each in self.records
            if (each.kind, each.peer, each.reason) == (Kind.REJECTED, peer, reason)
        ]

    async def names(self, peer: PeerId, reason: Reason) -> None:
        """Wait until a peer is named for a reason."""
        async with asyncio.timeout(LIMIT):
            while not self.rejected(peer, reason):  # noqa: ASYNC110 - no event tells it
                await asyncio.sleep(0.02)


def _config(*bootstrap: str) -> NodeConfig:
    section = NodeSection(overlay=Overlay.RING, bootstrap=bootstrap)
    return NodeConfig(node=section, trackerless=QUICK, links=PATIENT)


async def _attack(attacker: LiveNode, victim: Node, messages: Iterable[Message]) -> None:
    """Open a link, and send all of this."""
    attacker.act(Dial(victim.peer, victim.contact.hints, False))
    await attacker.happens(LinkUp, victim.peer)
    attacker.act(*(Send(victim.peer, message) for message in messages))


def _descriptor(key: SigningKey, now: float, filter: bytes = b"", life: float = DAY / 2) -> Descriptor:
    hints = ("tls://127.0.0.1:9",)
    return sign_descriptor(key, int(now * 1000), epoch_of(now), filter, 3000, 1, hints, int(now + life))


async def _hears(reader: Subscription, words: str) -> None:
    """What is published elsewhere is read here."""
    async with asyncio.timeout(LIMIT):
        async for event in reader:
            if event.body.decode() == words:
                return


async def _linked(node: Node) -> None:
    async with asyncio.timeout(LIMIT):
        while not any(ring.neighbors for ring in (await node.overlay.status()).rings):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("kind", ["searches", "pulls"])
async def test_a_flood_is_hung_up_on_and_the_node_goes_on(kind: str) -> None:
    trace = Kept()
    async with AsyncExitStack() as stack:
        victim = await stack.enter_async_context(Node(config=_config(), trace=trace))
        friend = await stack.enter_async_context(Node(config=_config(victim.address)))
        at_victim = await stack.enter_async_context(victim.subscribe(STREAM))
        at_friend = await stack.enter_async_context(friend.subscribe(STREAM))
        await _linked(friend)
        key = named_key("flooder")
        attacker = await stack.enter_async_context(LiveNode(key))
        now = victim.clock.now()
        own, nonce, reply = _descriptor(key, now), secrets.token_bytes(12), named_key("reply").public
        flood: list[Message] = [
            Seek(nonce + number.to_bytes(4, "big"), (1, 2, 3, 4), epoch_of(now), reply, 8, False)
            if kind == "searches"
            else Pull(number, own)
            for number in range(FLOOD)
        ]
        await _attack(attacker, victim, flood)
        await friend.publish(STREAM, "in the midst of it")
        await _hears(at_victim, "in the midst of it")
        await attacker.happens(LinkDown, victim.peer)
        await trace.names(attacker.peer, Reason.FLOODING)
        assert (await victim.overlay.status()).acquaintances <= 2
        status = await victim.status()
        assert [stream.rejected for stream in status.streams] == [0]
        # Who comes back at once is not let in.
        downs = len(attacker.seen(LinkDown))
        attacker.act(Dial(victim.peer, victim.contact.hints, False))
        await attacker.until(lambda: len(attacker.seen(LinkDown)) > downs)
        await victim.publish(STREAM, "and after it")
        await _hears(at_friend, "and after it")


async def test_forged_descriptors_are_refused_and_their_senders_named() -> None:
    trace = Kept()
    async with AsyncExitStack() as stack:
        victim = await stack.enter_async_context(Node(config=_config(), trace=trace))
        now = victim.clock.now()
        forgers = [await stack.enter_async_context(LiveNode(named_key(f"forger {n}"))) for n in range(4)]
        honest = _descriptor(named_key("somebody"), now)
        altered = structs.replace(_descriptor(forgers[0].key, now), hints=("tls://127.0.0.1:1",))
        full = _descriptor(forgers[1].key, now, filter=b"\xff" * 128)
        for forger, own, reason in zip(
            forgers,
            (altered, full, honest, _descriptor(forgers[3].key, now, life=30 * DAY)),
            (Reason.BAD_SIGNATURE, Reason.IMPLAUSIBLE_FILTER, Reason.NOT_ALLOWED, Reason.FUTURE_TIME),
            strict=True,
        ):
            await _attack(forger, victim, [Pull(1, own)])
            await trace.names(forger.peer, reason)
        status = await victim.overlay.status()
        assert status.acquaintances == 0
        assert status.sample == ()


async def test_who_answers_with_invented_nodes_is_named_and_left_out() -> None:
    """It introduces itself as it should; asked for its sample, it names nodes that never signed."""
    trace = Kept()
    key = named_key("liar")
    now = 0.0

    def lie(event: Input) -> list[Effect]:
        match event:
            case Received(peer, Pull(number)):
                made = [
                    structs.replace(_descriptor(named_key(f"{n}"), now), peer=secrets.token_bytes(32))
                    for n in range(10)
                ]
                return [Send(peer, Pulled(number, (_descriptor(key, now), *made)))]
            case _:
                return []

    async with AsyncExitStack() as stack:
        victim = await stack.enter_async_context(Node(config=_config(), trace=trace))
        now = victim.clock.now()
        liar = await stack.enter_async_context(LiveNode(key, machine=HandHeld(lie)))
        await _attack(liar, victim, [Pull(1, _descriptor(key, now))])
        await trace.names(liar.peer, Reason.BAD_SIGNATURE)
        assert (await victim.overlay.status()).acquaintances <= 1


async def test_of_many_intersections_that_one_begins_one_is_answered() -> None:
    trace = Kept()
    async with AsyncExitStack() as stack:
        victim = await stack.enter_async_context(Node(config=_config(), trace=trace))
        await stack.enter_async_context(victim.subscribe(STREAM))
        prober = await stack.enter_async_context(LiveNode(named_key("prober")))
        now = victim.clock.now()
        runs = Intersections(prober.peer, TrackerlessConfig(), RISTRETTO, secrets.token_bytes)
        names = [STREAM, *(f"guess {number}" for number in range(99))]
        step = runs.begin_run(victim.peer, [topic_keys(topic_of(name), None) for name in names], now)
        assert isinstance(step.send, Intersect)
        probes = [structs.replace(step.send, nonce=secrets.token_bytes(16)) for _ in range(20)]
        await _attack(prober, victim, probes)
        await prober.until(lambda: len(prober.messages(victim.peer)) >= len(probes))
        told = [each for each in prober.messages(victim.peer) if isinstance(each, Intersected | IntersectEnd)]
        assert [type(each) for each in told].count(Intersected) == 1
        refused = [each.refused for each in told if isinstance(each, IntersectEnd)]
        assert refused == [Reason.PROBING] * 19
        assert len(trace.rejected(prober.peer, Reason.PROBING)) == 19
