from __future__ import annotations

import asyncio
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from linnet.core.errors import ConfigError, LinnetError, Refused
from linnet.core.inputs import Asked
from linnet.core.limits import BODY_BYTES
from linnet.core.reasons import Reason
from linnet.delivery.items import CaughtUp, Ended
from linnet.event.event import Event
from linnet.identity.text import Sort, to_text
from linnet.net.clock import Clock
from linnet.net.failure import DriverStopped, MachineFailed
from linnet.node.config import NodeConfig, NodeSection
from linnet.node.home import HomeBusy, init
from linnet.node.library import Node
from linnet.node.subscription import Subscription
from linnet.peer.interface import Effect, Input, NodeStatus
from linnet.peer.peer import Peer
from linnet.streams.commands import Policy, Publish

STREAM = "weather"
LIMIT = 30.0


async def read(subscription: Subscription, count: int) -> list[bytes]:
    bodies: list[bytes] = []
    async with asyncio.timeout(LIMIT):
        async for event in subscription:
            bodies.append(event.body)
            if len(bodies) == count:
                break
    return bodies


async def eventually(holds: Callable[[NodeStatus], bool], node: Node) -> None:
    async with asyncio.timeout(LIMIT):
        while not holds(await node.status()):  # noqa: ASYNC110 - a status says no more than how it is
            await asyncio.sleep(0.01)


async def test_what_one_publishes_the_other_reads(member_config: NodeConfig) -> None:
    async with Node(config=member_config) as one, Node(config=member_config) as two:
        async with two.subscribe(STREAM, since=0) as subscription:
            outcomes = await asyncio.gather(*(one.publish(STREAM, f"{number}") for number in range(50)))
            assert await read(subscription, 50) == [b"%d" % number for number in range(50)]
        assert [outcome.first for outcome in outcomes] == list(range(50))
        confirmed = await one.publish(STREAM, [b"x", "y"], confirm=LIMIT)
        assert [fate.storage for fate in confirmed.fates if fate.delivered_at is not None] == [True]


async def test_history_is_had_by_those_who_come_late(member_config: NodeConfig) -> None:
    async with Node(config=member_config) as one:
        await one.publish(STREAM, [b"a", b"b"], confirm=LIMIT)
        async with Node(config=member_config) as late, asyncio.timeout(LIMIT):
            items = [item async for item in late.subscribe(STREAM, since=0, live=False).items()]
    assert [item.body for item in items if isinstance(item, Event)] == [b"a", b"b"]
    assert [type(item) for item in items[2:]] == [CaughtUp, Ended]


async def test_a_stream_of_ours_has_our_rules(member_config: NodeConfig) -> None:
    async with Node(config=member_config) as owner, Node(config=member_config) as guest:
        stream = f"{to_text(Sort.PERSON, owner.author)}/news"
        await owner.declare(stream, Policy(publishers=()))
        async with guest.subscribe(stream) as subscription:
            await eventually(lambda status: status.streams[0].neighbors != (), guest)
            await owner.publish(stream, b"mine")
            assert await read(subscription, 1) == [b"mine"]
            with pytest.raises(Refused) as caught:
                await guest.publish(stream, b"not mine")
    assert caught.value.reason is Reason.NOT_A_PUBLISHER


async def test_links_by_hand_and_blocks(hub: Node) -> None:
    async with Node() as node:
        await node.connect(hub.address)
        await eventually(lambda status: any(peer.up for peer in status.peers), node)
        await node.block(hub.peer)
        status = await node.status()
        assert status.blocked == (hub.peer,)
        await node.block(hub.peer, blocked=False)
        await node.disconnect(hub.peer)
        assert (await node.status()).blocked == ()


async def test_what_cannot_be_published_is_refused() -> None:
    async with Node() as node:
        with pytest.raises(Refused) as caught:
            await node.publish(STREAM, bytes(BODY_BYTES + 1))
        assert caught.value.reason is Reason.TOO_LARGE
        with pytest.raises(Refused):
            await node.publish("two\nlines", b"x")
        with pytest.raises(Refused):
            await node.subscribe("").open()


async def test_stopping_ends_every_reader() -> None:
    node = Node()
    async with asyncio.TaskGroup() as tasks, asyncio.timeout(LIMIT):
        async with node:
            subscription = node.subscribe(STREAM)
            await subscription.open()
            reading = tasks.create_task(read_to_the_end(subscription))
            await asyncio.sleep(0)
        assert await reading is Reason.SHUTDOWN
    with pytest.raises(DriverStopped):
        await node.publish(STREAM, b"x")
    with pytest.raises(DriverStopped):
        node.subscribe(STREAM)


async def read_to_the_end(subscription: Subscription) -> Reason | None:
    try:
        async for _ in subscription:
            pass
    except Refused as error:
        return error.reason
    return None


async def test_a_durable_subscription_goes_on_after_a_restart(
    tmp_path: Path, member_config: NodeConfig
) -> None:
    init(tmp_path / "home", Clock().now(), member_config)
    async with Node(config=member_config) as publisher:
        async with Node(tmp_path / "home") as reader:
            identity = reader.peer
            async with reader.subscribe(STREAM, name="r", since=0) as subscription:
                assert not subscription.resumed
                await publisher.publish(STREAM, [b"1", b"2", b"3"])
                assert await read(subscription, 2) == [b"1", b"2"]
        async with Node(tmp_path / "home") as reader:
            assert reader.peer == identity
            async with reader.subscribe(STREAM, name="r", since=0) as subscription:
                assert subscription.resumed
                # The second was in hand and never said to be handled: it comes again.
                assert await read(subscription, 2) == [b"2", b"3"]


async def test_two_nodes_do_not_share_a_home(tmp_path: Path) -> None:
    init(tmp_path / "home", Clock().now())
    async with Node(tmp_path / "home") as node:
        assert node.home is not None
        assert stat.S_IMODE(node.home.store.stat().st_mode) & 0o077 == 0
        with pytest.raises(HomeBusy):
            async with Node(tmp_path / "home"):
                pass
    async with Node(tmp_path / "home"):
        pass


async def test_a_home_that_is_not_there_is_made(tmp_path: Path) -> None:
    config = NodeConfig(node=NodeSection(label="mine"))
    async with Node(tmp_path / "new" / "home", config) as node:
        assert node.home is not None
        author = node.author
    async with Node(tmp_path / "new" / "home") as again:
        assert (again.author, again.config.node.label) == (author, "mine")
    (tmp_path / "other").mkdir()
    with pytest.raises(LinnetError):
        async with Node(tmp_path / "other"):
            pass


async def test_two_that_only_dial_are_told_so_at_once(hub: Node) -> None:
    config = NodeConfig(node=NodeSection(trackers=(hub.address,), listen=()))
    async with Node(config=config) as one, Node(config=config) as two, two.subscribe("apart"):
        outcome = await one.publish("apart", b"hello?")
        assert outcome.unsent is Reason.UNREACHABLE_INBOUND
        for node in (one, two):
            await eventually(lambda status: status.streams[0].alone is Reason.UNREACHABLE_INBOUND, node)


async def test_a_wrong_configuration_stops_the_start() -> None:
    with pytest.raises(ConfigError, match=r"node\.listen\[0\]"):
        async with Node(config=NodeConfig(node=NodeSection(listen=("nonsense",)))):
            pass


async def test_a_taken_port_is_named_and_leaves_nothing_behind(tmp_path: Path, hub: Node) -> None:
    config = NodeConfig(node=NodeSection(listen=(hub.listens[0],)))
    init(tmp_path / "home", Clock().now(), config)
    with pytest.raises(Refused, match="cannot listen at"):
        async with Node(tmp_path / "home"):
            pass
    async with Node(tmp_path / "home", NodeConfig()):
        pass


class Broken(Peer):
    """A node machine with a bug, which one publish meets."""

    def handle(self, event: Input, now: float) -> list[Effect]:
        if isinstance(event, Asked) and isinstance(event.command, Publish) and event.command.stream == "bug":
            raise ZeroDivisionError
        return super().handle(event, now)


async def meet_the_bug(home: Path) -> None:
    async with asyncio.timeout(LIMIT), Node(home, machine=Broken) as node:
        await node.publish(STREAM, b"kept")
        with pytest.raises(DriverStopped):
            await node.publish("bug", b"x")
        await asyncio.Event().wait()


async def test_a_bug_ends_the_node_with_a_report_and_loses_nothing(tmp_path: Path) -> None:
    init(tmp_path / "home", Clock().now())
    with pytest.raises(MachineFailed, match="handling Asked raised ZeroDivisionError"):
        await meet_the_bug(tmp_path / "home")
    async with Node(tmp_path / "home") as node:
        assert (await node.publish(STREAM, b"next")).first == 1
