"""Nodes over a transport that lets data overtake data: nobody above it notices."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import count
from random import Random

from tests.net.live import PIPES
from tests.node.village import LIMIT, member, until

from linnet.delivery.receipts import Fate
from linnet.event.event import MESSAGE, Event
from linnet.identity.keys import SigningKey
from linnet.net.config import NetConfig
from linnet.net.pipe import PipeTransport
from linnet.node.config import NodeConfig, NodeSection, TrackerSection
from linnet.node.library import Node

MESSAGES = 200
BODIES = [b"%d" % number for number in range(MESSAGES)]
_seeds = count()


def shuffling(key: SigningKey, config: NetConfig) -> list[PipeTransport]:
    return [PipeTransport(key, Random(next(_seeds)))]


async def bodies(reading: AsyncIterator[Event]) -> list[bytes]:
    heard: list[bytes] = []
    async for event in reading:
        if event.kind == MESSAGE:
            heard.append(event.body)
        if len(heard) == MESSAGES:
            break
    return heard


async def test_a_stream_is_read_in_order_and_complete() -> None:
    config = NodeConfig(node=NodeSection(listen=PIPES), tracker=TrackerSection(enabled=True))
    async with asyncio.timeout(LIMIT), Node(config=config, transports=shuffling) as hub:
        joined = NodeConfig(node=NodeSection(listen=PIPES, trackers=(hub.address,)))
        async with (
            Node(config=joined, transports=shuffling) as one,
            Node(config=joined, transports=shuffling) as two,
            two.subscribe("weather", since=0) as subscription,
        ):
            await asyncio.gather(*(one.publish("weather", body) for body in BODIES))
            assert await bodies(aiter(subscription)) == BODIES


async def test_a_room_is_read_in_order_and_every_message_is_acknowledged() -> None:
    async with (
        asyncio.timeout(LIMIT),
        Node(config=member("ada"), transports=shuffling) as ada,
        Node(config=member("bea"), transports=shuffling) as bea,
    ):
        room = await ada.create_room("tea")
        joined = await bea.join_room((await room.invite()).text)
        await until(ada.rooms.statuses, lambda rooms: bool(rooms[0].online))
        for start in range(0, MESSAGES, 20):
            await room.send(BODIES[start : start + 20])
        async with joined.read(since=0) as reading:
            assert await bodies(aiter(reading)) == BODIES
        ledger = await until(
            lambda: room.ledger(limit=MESSAGES),
            lambda found: all(fate.fate is Fate.DELIVERED for each in found.events for fate in each.members),
        )
        assert len(ledger.events) == MESSAGES
