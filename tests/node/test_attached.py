"""A program beside a running node: the calls of a node, over the control API of one in another process."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from linnet.core.errors import Refused
from linnet.core.reasons import Reason
from linnet.delivery.items import CaughtUp, Ended
from linnet.event.event import Event
from linnet.net.clock import Clock
from linnet.node.attached import AttachedNode, AttachedSubscription
from linnet.node.caller import NodeUnreachable
from linnet.node.home import HomeBusy, init
from linnet.node.library import Node

LIMIT = 30.0


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The home of a lone node that runs in a process of its own."""
    path = tmp_path_factory.mktemp("attached") / "home"
    init(path, Clock().now())
    code = (
        "import asyncio; from pathlib import Path; from linnet.node.running import run_node; "
        f"asyncio.run(run_node(Path({str(path)!r}), ready=lambda node: print('up', flush=True)))"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "up"
        yield path
        process.terminate()


async def take(subscription: AttachedSubscription, count: int) -> list[bytes]:
    bodies: list[bytes] = []
    async with asyncio.timeout(LIMIT):
        async for event in subscription:
            bodies.append(event.body)
            if len(bodies) == count:
                break
    return bodies


async def test_what_is_published_beside_it_is_read_beside_it(home: Path) -> None:
    async with Node.attach(home) as node:
        async with node.subscribe("rain") as live:
            outcome = await node.publish("rain", ["a", b"b"], confirm=LIMIT)
            assert (outcome.first, len(outcome.ids)) == (0, 2)
            assert (outcome.unsent, outcome.unconfirmed) == (Reason.NO_ADDRESS, Reason.NO_STORAGE)
            assert await take(live, 2) == [b"a", b"b"]
        assert await take(node.subscribe("rain", since=0), 2) == [b"a", b"b"]
        items = [item async for item in node.history("rain").items()]
        assert [item.body for item in items if isinstance(item, Event)] == [b"a", b"b"]
        assert [type(item) for item in items[2:]] == [CaughtUp, Ended]
        (stream,) = [each for each in (await node.status()).streams if each.stream == "rain"]
        assert stream.alone == "no_address"


async def test_a_durable_one_goes_on_behind_what_was_handled(home: Path) -> None:
    async with Node.attach(home) as node:
        async with node.subscribe("log", name="mine") as log:
            assert not log.resumed
            await node.publish("log", ["1", "2", "3"])
            items = log.items()
            async with asyncio.timeout(LIMIT):
                first = await anext(items)
                await anext(items)  # The first counts as handled, the second does not yet.
            assert isinstance(first, Event)
        async with node.subscribe("log", name="mine") as log:
            assert log.resumed
            assert await take(log, 2) == [b"2", b"3"]


async def test_who_stops_waiting_lets_go(home: Path) -> None:
    async with Node.attach(home) as node:
        quiet = node.subscribe("nothing")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(quiet.items()), 0.2)
        await node.publish("nothing", b"after all")


async def test_what_is_declined_is_refused_as_by_a_node_of_ones_own(home: Path) -> None:
    async with Node.attach(home) as node:
        with pytest.raises(Refused) as caught:
            await take(node.subscribe("x", since=5.0, name="mine"), 1)
        assert caught.value.reason is Reason.UNSUPPORTED


async def test_a_second_node_in_the_home_is_told_how_to_attach(home: Path) -> None:
    with pytest.raises(HomeBusy, match=r"Node\.attach\("):
        async with Node(home):
            pass


async def test_where_no_node_runs_it_says_how_to_start_one(tmp_path: Path) -> None:
    with pytest.raises(NodeUnreachable, match="linnet up"):
        async with Node.attach(tmp_path / "none"):
            pass


async def test_it_is_used_within_its_block(home: Path) -> None:
    node = AttachedNode(home)
    with pytest.raises(NodeUnreachable, match="async with"):
        await node.publish("rain", b"x")
