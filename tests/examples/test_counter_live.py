"""The shared counter between two live nodes, over pipes: with homes that are restarted, and over HTTP."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest
from examples.counter import COUNTER, AddToCounter, ExamineCounter, ExamineFates, OpenCounter, ReadCounter
from examples.counter.__main__ import main
from examples.counter.counter import amount_of

from linnet.delivery.items import Ended, Item
from linnet.event.event import Event
from linnet.node.config import NodeConfig, NodeSection, TrackerSection
from linnet.node.control import Control, serve_control
from linnet.node.library import Node
from linnet.testing.nodes import PIPES

LIMIT = 30.0
NAME = "visitors"


def config(*trackers: str, is_tracker: bool = False) -> NodeConfig:
    return NodeConfig(
        node=NodeSection(listen=PIPES, trackers=trackers), tracker=TrackerSection(enabled=is_tracker)
    )


async def until_value(node: Node, value: int) -> None:
    async with asyncio.timeout(LIMIT):
        while (await node.ask(ExamineCounter(NAME))).value != value:  # noqa: ASYNC110 - no event tells it
            await asyncio.sleep(0.02)


async def until_acknowledged(node: Node, receiver: Node) -> None:
    async with asyncio.timeout(LIMIT):
        while True:
            fates = (await node.ask(ExamineFates(NAME))).fates
            if any(each.receiver == receiver.peer and each.delivered_at is not None for each in fates):
                return
            await asyncio.sleep(0.02)


def amounts(items: list[Item | Ended]) -> list[int]:
    return [amount_of(item) for item in items if isinstance(item, Event)]


async def test_two_nodes_count_together_over_a_restart_from_disk(tmp_path: Path) -> None:
    homes = tmp_path / "ada", tmp_path / "bea"
    async with Node(config=config(is_tracker=True)) as tracker:
        known = config(tracker.address)
        async with (
            Node(homes[0], known, protocols=[COUNTER]) as ada,
            Node(homes[1], known, protocols=[COUNTER]) as bea,
        ):
            await ada.ask(OpenCounter(NAME))
            await bea.ask(OpenCounter(NAME))
            assert (await ada.ask(AddToCounter(NAME, 5))).value == 5
            await until_value(bea, 5)
            await bea.ask(AddToCounter(NAME, 2))
            await until_value(ada, 7)
            await until_acknowledged(ada, bea)
            await until_acknowledged(bea, ada)
            async with ada.read(ReadCounter(0, NAME, "mine")) as reader:
                assert not reader.resumed
                items = await reader.take(8)
                await reader.consume(len(items))
                assert amounts(items) == [5, 2]
            async with bea.read(ReadCounter(0, NAME)) as reader:
                assert amounts(await reader.take(8)) == [5, 2]
        async with Node(homes[0], protocols=[COUNTER]) as ada:
            assert (await ada.ask(AddToCounter(NAME, 10))).value == 17
            async with Node(homes[1], protocols=[COUNTER]) as bea:
                await until_value(bea, 17)
                await until_acknowledged(ada, bea)
                async with ada.read(ReadCounter(0, NAME, "mine")) as reader:
                    assert reader.resumed
                    assert amounts(await reader.take(8)) == [10]


async def test_it_is_asked_over_http_as_what_ships(tmp_path: Path) -> None:
    path = tmp_path / "c.sock"
    async with (
        Node(config=config(), protocols=[COUNTER]) as node,
        serve_control(Control(node, lambda: None).app(), path),
        httpx.AsyncClient(
            transport=httpx.AsyncHTTPTransport(uds=str(path)), base_url="http://node", timeout=LIMIT
        ) as http,
    ):
        opened = await http.post(f"/v1/counters/{NAME}/open", json={})
        assert (opened.status_code, opened.json()["value"]) == (200, 0)
        added = (await http.post(f"/v1/counters/{NAME}/add", json={"amount": 3})).json()
        assert (added["number"], added["value"]) == (0, 3)
        too_much = await http.post(f"/v1/counters/{NAME}/add", json={"amount": 2**40})
        assert too_much.status_code == 400
        status = (await http.get(f"/v1/counters/{NAME}")).json()
        assert [share["total"] for share in status["shares"]] == [3]
        refused = await http.post("/v1/counters/another/add", json={})
        assert refused.json()["error"]["reason"] == "not_joined"
        described = (await http.get("/v1/openapi.json")).json()["paths"]
        assert "/v1/counters/{counter}/add" in described
        async with http.stream("GET", f"/v1/counters/{NAME}/read") as lines:
            read = lines.aiter_lines()
            assert "subscribed" in await anext(read)
            assert added["event"] in await anext(read)
            node.end_subscriptions()


async def test_a_node_without_it_does_not_offer_it() -> None:
    async with Node(config=config()) as node:
        assert not any("counters" in operation.path for operation in node.operations)


async def test_the_demonstration_ends_with_both_reading_the_sum(capsys: pytest.CaptureFixture[str]) -> None:
    async with asyncio.timeout(LIMIT):
        await main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["ada reads 7", "bea reads 7"]
