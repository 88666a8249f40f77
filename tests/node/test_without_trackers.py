"""Four real nodes over sockets, and no tracker: a stream, an encrypted room, a restart without addresses."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import pytest

from linnet.net.config import NetConfig
from linnet.node.config import NodeConfig, NodeSection, TrackerlessSection
from linnet.node.home import init
from linnet.node.library import Node
from linnet.node.subscription import Subscription
from linnet.overlay.config import Overlay
from linnet.rooms.config import RoomsConfig

pytestmark = pytest.mark.timeout(240)
LIMIT = 200.0
STREAM = "weather"
QUICK = TrackerlessSection(period=1.0, release_delay=1.0, seek_pause=2.0)
ROOMS = RoomsConfig(receipt_delay=0.05, announce_delay=0.1, recovery_delay=0.1)


def _config(label: str, *bootstrap: str, listen: str = "tls://127.0.0.1:0") -> NodeConfig:
    return NodeConfig(
        node=NodeSection(label=label, overlay=Overlay.RING, bootstrap=bootstrap, listen=(listen,)),
        trackerless=QUICK,
        rooms=ROOMS,
        net=NetConfig(linger=0.5),
    )


async def _four(stack: AsyncExitStack) -> list[Node]:
    """Everyone knows the addresses of the first two, but for these themselves."""
    first = await stack.enter_async_context(Node(config=_config("n0")))
    second = await stack.enter_async_context(Node(config=_config("n1", first.address)))
    rest = [
        await stack.enter_async_context(Node(config=_config(label, first.address, second.address)))
        for label in ("n2", "n3")
    ]
    return [first, second, *rest]


async def _until(look: Callable[[], Awaitable[bool]]) -> None:
    while not await look():  # noqa: ASYNC110 - no event tells it
        await asyncio.sleep(0.05)


async def _read(subscription: Subscription, count: int) -> list[str]:
    """So many events."""
    heard: list[str] = []
    async for event in subscription:
        heard.append(event.body.decode())
        if len(heard) == count:
            break
    return heard


async def _has_neighbors(node: Node, count: int = 1) -> bool:
    return any(len(ring.neighbors) >= count for ring in (await node.overlay.status()).rings)


async def test_a_stream_is_delivered_to_all_and_no_tracker_is_asked() -> None:
    async with asyncio.timeout(LIMIT), AsyncExitStack() as stack:
        nodes = await _four(stack)
        readers = [await stack.enter_async_context(node.subscribe(STREAM)) for node in nodes]
        for node in nodes:
            await _until(partial(_has_neighbors, node, 3))
        for number, node in enumerate(nodes):
            await node.publish(STREAM, [f"{number} a", f"{number} b"])
        for reader in readers:
            heard = await _read(reader, 8)
            assert sorted(heard) == [f"{number} {part}" for number in range(4) for part in "ab"]
            assert all(heard.index(f"{number} a") < heard.index(f"{number} b") for number in range(4))
        for node in nodes:
            status = await node.status()
            assert [stream.tracker for stream in status.streams] == [None]
            assert status.streams[0].duplicates < 8 * 3


async def test_an_encrypted_room_is_delivered_to_all_its_members() -> None:
    async with asyncio.timeout(LIMIT), AsyncExitStack() as stack:
        founder, *others = await _four(stack)
        room = await founder.create_room("tea")
        joined = [room, *[await other.join_room((await room.invite()).text) for other in others]]
        readers = [await stack.enter_async_context(each.read()) for each in joined]
        await joined[-1].send("I can read")  # What is said before, its keys do not open.
        for reader in readers:
            assert await _read(reader, 1) == ["I can read"]
        for number, each in enumerate(joined):
            await each.send(f"from {number}")
        for reader in readers:
            assert sorted(await _read(reader, 4)) == [f"from {number}" for number in range(4)]
        for node in (founder, *others):
            assert [each.topic for each in (await node.overlay.status()).rings] == [room.id]


async def test_a_node_that_restarts_finds_the_others_from_what_it_wrote_down(tmp_path: Path) -> None:
    async with asyncio.timeout(LIMIT), AsyncExitStack() as stack:
        nodes = await _four(stack)
        readers = [await stack.enter_async_context(node.subscribe(STREAM)) for node in nodes]
        home = init(tmp_path / "home", nodes[0].clock.now()).home.path
        begun = _config("back", nodes[0].address)
        async with Node(home, begun) as node, node.subscribe(STREAM, name="mine"):
            await _until(lambda: _has_neighbors(node))
            await _until(lambda: _knows(node, 3))
        await nodes[1].publish(STREAM, "while away")
        async with Node(home, _config("back")) as node, node.subscribe(STREAM, name="mine") as mine:
            assert node.config.node.bootstrap == ()
            assert await _read(mine, 1) == ["while away"]
            await node.publish(STREAM, "I am back")
            # It stays until they have it: what is published at the last moment may wait for its next start.
            for reader in readers:
                # Of two publishers either may come first.
                assert sorted(await _read(reader, 2)) == ["I am back", "while away"]


async def _knows(node: Node, count: int) -> bool:
    return len((await node.overlay.status()).sample) >= count
