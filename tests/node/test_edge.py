"""A node on the edge and its proxies, over real sockets."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.edge.secrets_of import found_in, key_secrets, room_secrets, sealed_secrets
from tests.node.conftest import NET, STREAM
from tests.node.village import QUICK as ROOMS
from tests.node.village import until

from linnet.core.errors import Refused
from linnet.core.reasons import Reason
from linnet.delivery.config import DeliveryConfig
from linnet.edge.commands import EdgeStatus
from linnet.identity.text import Sort, to_text
from linnet.net.clock import Clock
from linnet.node.config import (
    EdgeSection,
    NodeConfig,
    NodeSection,
    ProxySection,
    RelaySection,
    TrackerSection,
)
from linnet.node.home import init
from linnet.node.keyfiles import load_key
from linnet.node.library import Node
from linnet.node.subscription import Subscription
from linnet.rooms.config import RelayPolicy
from linnet.streams.commands import Policy

LIMIT = 30.0
DELIVERY = DeliveryConfig(heads_period=0.3, gap_grace=0.1)
QUICK = EdgeSection(failover_after=0.3, answer_timeout=0.5)


async def read(subscription: Subscription, count: int) -> list[str]:
    bodies: list[str] = []
    async with asyncio.timeout(LIMIT):
        async for event in subscription:
            bodies.append(event.body.decode())
            if len(bodies) == count:
                break
    return bodies


@pytest.fixture
async def tracker() -> AsyncIterator[Node]:
    async with Node(config=NodeConfig(tracker=TrackerSection(enabled=True), net=NET)) as node:
        yield node


def core(tracker: Node, proxy: bool = False) -> NodeConfig:
    section = ProxySection(enabled=proxy, open=proxy)
    node = NodeSection(trackers=(tracker.address,))
    return NodeConfig(node=node, proxy=section, delivery=DELIVERY, net=NET)


def mobile(*proxies: str) -> NodeConfig:
    section = replace(QUICK, proxies=proxies)
    return NodeConfig(edge=section, delivery=DELIVERY, net=NET)


@asynccontextmanager
async def apart(home: Path, tracker: Node) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """A proxy in a process of its own, and its address; it is killed at the latest at the end."""
    init(home, Clock().now())
    options = ("--role", "proxy", "--allow", "anyone", "--tracker", tracker.address, "--json")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "linnet.cli", "up", "--home", str(home), *options, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        yield process, json.loads(await process.stdout.readline())["address"]
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_the_only_proxy_is_killed_in_mid_stream_and_the_next_goes_on_without_loss(
    tracker: Node, tmp_path: Path
) -> None:
    async with AsyncExitStack() as stack:
        first, address = await stack.enter_async_context(apart(tmp_path / "first", tracker))
        second = await stack.enter_async_context(Node(config=core(tracker, proxy=True)))
        sender = await stack.enter_async_context(Node(config=core(tracker)))
        phone = await stack.enter_async_context(Node(config=mobile(address, second.address)))
        reader = await stack.enter_async_context(phone.subscribe(STREAM, since=0, name="app"))
        await until(phone.edge.status, lambda status: status.proxies[0].served == 1)
        identity = phone.identity
        sent = [f"{number}" for number in range(60)]
        for number, body in enumerate(sent):
            await sender.publish(STREAM, body)
            if number == 25:
                first.kill()
                await first.wait()
        assert await read(reader, 60) == sent
        await phone.publish(STREAM, "back", confirm=LIMIT)
        status = await phone.edge.status()
        assert [proxy.up for proxy in status.proxies] == [False, True]
        assert phone.identity == identity
        links = (await phone.status()).peers
        assert [peer.peer for peer in links if peer.up] == [second.identity.peer]
        assert (await phone.status()).listens == ()
        assert [client.streams for client in (await second.edge.status()).clients] == [(STREAM,)]


async def test_sleep_and_wake_and_a_restart_of_the_proxy_in_between(tracker: Node, tmp_path: Path) -> None:
    init(tmp_path / "proxy", Clock().now())
    async with Node(config=core(tracker)) as sender, AsyncExitStack() as stack:
        before = await stack.enter_async_context(AsyncExitStack())
        proxy = await before.enter_async_context(Node(tmp_path / "proxy", core(tracker, proxy=True)))
        listening = proxy.address.partition("@")[2]
        phone = await stack.enter_async_context(Node(config=mobile(proxy.address)))
        reader = await stack.enter_async_context(phone.subscribe(STREAM))
        await until(phone.edge.status, lambda status: status.proxies[0].served == 1)
        await phone.edge.sleep()
        await until(proxy.edge.status, lambda status: not status.clients[0].up)
        await before.aclose()
        again = core(tracker, proxy=True)
        again = replace(again, node=replace(again.node, listen=(listening,)))
        proxy = await stack.enter_async_context(Node(tmp_path / "proxy", again))
        await sender.publish(STREAM, ["while", "asleep"], confirm=LIMIT)
        assert (await phone.edge.status()).asleep
        await phone.edge.wake()
        assert await read(reader, 2) == ["while", "asleep"]


async def test_only_a_node_on_the_edge_sleeps(tracker: Node) -> None:
    assert await tracker.edge.status() == EdgeStatus(False, False, False, (), ())
    with pytest.raises(Refused) as caught:
        await tracker.edge.sleep()
    assert caught.value.reason is Reason.NOT_ALLOWED


async def test_a_proxy_finds_nothing_of_a_sealed_stream_that_it_could_read(
    tracker: Node, tmp_path: Path
) -> None:
    """Every file that the proxy wrote is looked through after it has served both ends of it."""
    home, home_of_owner = tmp_path / "proxy", tmp_path / "owner"
    init(home, Clock().now())
    init(home_of_owner, Clock().now())
    secrets = [f"the eagle lands at {number} o'clock" for number in range(20)]
    async with AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(Node(home, core(tracker, proxy=True)))
        owner = await stack.enter_async_context(Node(home_of_owner, mobile(proxy.address)))
        reader = await stack.enter_async_context(Node(config=mobile(proxy.address)))
        stream = f"{to_text(Sort.PERSON, owner.author)}/diary"
        await owner.declare(stream, Policy(), sealed=True)
        asked = await reader.sealed.request(stream)
        await owner.sealed.allow(stream, asked.line)
        subscription = await stack.enter_async_context(reader.subscribe(stream, since=0, name="app"))
        for secret in secrets:
            await owner.publish(stream, secret, confirm=LIMIT)
        assert await read(subscription, 20) == secrets
        [client] = {client.streams for client in (await proxy.edge.status()).clients}
        assert client == (stream,)
        keys = [*sealed_secrets(owner.store.cells), *sealed_secrets(reader.store.cells)]
        keys += key_secrets(reader.identity.device)
    assert len(keys) >= 3 + 4
    for sort in ("person", "device"):
        keys += key_secrets(load_key(home_of_owner / f"{sort}.key", sort))
    written = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    assert sum(map(len, written.values())) > 20 * 100
    for path, content in written.items():
        assert not [secret for secret in secrets if secret.encode() in content], path
        assert b"eagle" not in content, path
        assert found_in(content, keys) == [], path


async def test_two_mobiles_talk_in_an_encrypted_room_through_a_proxy_that_can_read_nothing(
    tmp_path: Path,
) -> None:
    home = tmp_path / "proxy"
    init(home, Clock().now())
    both = NodeConfig(
        proxy=ProxySection(enabled=True, open=True),
        relay=RelaySection(enabled=True, policy=RelayPolicy.OPEN, fetch_timeout=0.1),
        rooms=ROOMS,
        net=NET,
    )
    async with AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(Node(home, both))
        config = replace(mobile(proxy.address), rooms=ROOMS)
        ann = await stack.enter_async_context(Node(config=config))
        bob = await stack.enter_async_context(Node(config=config))
        await until(ann.edge.status, lambda status: status.proxies[0].up)
        await until(bob.edge.status, lambda status: status.proxies[0].up)
        room = await ann.rooms.create("tea")
        await room.add_relay(proxy.address)
        there = await bob.rooms.join((await room.invite(bob.author)).text)
        heard = await stack.enter_async_context(there.read(since=0, name="app", state=False))
        await until(room.security, lambda told: len(told.devices) == 2)
        await room.send("the eagle has landed")
        async with asyncio.timeout(LIMIT):
            async for event in heard:
                assert event.body == b"the eagle has landed"
                break
        for phone in (ann, bob):
            links = (await phone.status()).peers
            assert [peer.peer for peer in links] == [proxy.identity.peer]
        keys = [secret for phone in (ann, bob) for secret in key_secrets(phone.identity.device)]
        kept = [room_secrets(phone.store.cells, room.id) for phone in (ann, bob)]
    assert all(kept), "each has secrets of the group"
    keys += [*kept[0], *kept[1]]
    for path in home.rglob("*"):
        content = path.read_bytes() if path.is_file() else b""
        assert b"eagle" not in content, path
        assert found_in(content, keys) == [], path
