"""Content between real nodes: subscribing in one, publishing in another, and what survives a restart."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from linnet.content.commands import GroupAt, Via
from linnet.core.errors import ConfigError, Refused
from linnet.core.reasons import Reason
from linnet.identity.addresses import parse_contact
from linnet.node.config import ContentSection, KademliaSection, NodeConfig, NodeSection
from linnet.node.home import init
from linnet.node.library import Node

LIMIT = 60.0


def config(*bootstrap: str, name: str = "") -> NodeConfig:
    """A node that takes part in content."""
    return NodeConfig(
        node=NodeSection(label=name),
        kademlia=KademliaSection(enabled=True, bootstrap=bootstrap),
        content=ContentSection(enabled=True, resend=0.5),
    )


async def test_what_one_node_says_is_handed_to_who_wants_it_at_another() -> None:
    async with (
        asyncio.timeout(LIMIT),
        Node(config=config()) as ada,
        Node(config=config(ada.address)) as bea,
        bea.content.subscribe("price[10,20]/stock") as stocks,
    ):
        assert (stocks.predicate, stocks.resumed) == ("price[10,20]/stock", False)
        await bea.content.settled()
        unwanted = await ada.content.publish("stock/price=21", "too dear")
        assert [(fate.delivered, fate.missed, fate.reason) for fate in unwanted.fates] == [(0, 0, None)] * 2
        outcome = await ada.content.publish("stock/price=12.5", "cheap")
        assert sum(fate.delivered for fate in outcome.fates) == 1
        assert sorted(fate.attribute for fate in outcome.fates) == ["price", "stock"]
        match = await anext(aiter(stocks))
        assert (match.event, match.body, match.number) == (outcome.event, b"cheap", 1)
        assert (match.author, match.attributes) == (ada.author, "price=12.5/stock")


async def test_a_kept_subscription_takes_what_comes_while_nobody_reads_and_survives_a_restart(
    tmp_path: Path,
) -> None:
    init(tmp_path, 1_700_000_000.0)
    async with asyncio.timeout(LIMIT), Node(config=config()) as ada:
        async with Node(tmp_path, config(ada.address)) as bea:
            async with bea.content.subscribe("rain", name="garden"):
                pass
            await bea.content.settled()
            for body in ("one", "two"):
                await ada.content.publish("rain", body)
            assert [each.waiting for each in (await bea.content.status()).subscriptions] == [2]
        async with Node(tmp_path, config(ada.address)) as bea:
            async with bea.content.subscribe("rain", name="garden") as garden:
                assert garden.resumed
                matches = aiter(garden)
                assert [(await anext(matches)).body for _ in range(2)] == [b"one", b"two"]
                await garden.acknowledge()
            with pytest.raises(Refused, match="forget it first"):
                await bea.content.subscribe("snow", name="garden").open()
        async with Node(tmp_path, config(ada.address)) as bea:
            await bea.content.settled()
            assert [each.waiting for each in (await bea.content.status()).subscriptions] == [0]
            await ada.content.publish("rain", "three")
            async with bea.content.subscribe("rain", name="garden") as garden:
                match = await anext(aiter(garden))
                assert (match.body, match.number) == (b"three", 3)
            await bea.content.forget("garden")
            assert (await bea.content.status()).subscriptions == ()
            with pytest.raises(Refused, match="no kept subscription"):
                await bea.content.forget("garden")


async def test_a_node_without_content_says_which_setting_is_missing() -> None:
    async with asyncio.timeout(LIMIT), Node() as node:
        with pytest.raises(Refused) as caught:
            await node.content.publish("a")
    assert caught.value.reason is Reason.UNSUPPORTED
    assert "content.enabled = true" in caught.value.detail
    assert "kademlia.enabled = true" in caught.value.detail
    with pytest.raises(ConfigError, match=r"content.enabled: needs .* kademlia.enabled = true"):
        async with Node(config=NodeConfig(content=ContentSection(enabled=True))):
            pass


async def test_what_cannot_be_read_points_at_the_character() -> None:
    async with asyncio.timeout(LIMIT), Node(config=config()) as node:
        with pytest.raises(Refused, match=r"character 7: expected"):
            await node.content.subscribe("price[x,1]").open()
        with pytest.raises(Refused, match=r"character"):
            await node.content.publish("price[1,2]")


async def test_a_group_is_found_joined_and_heard_and_is_there_again_after_a_restart(tmp_path: Path) -> None:
    init(tmp_path, 1_700_000_000.0)
    async with asyncio.timeout(LIMIT), Node(config=config()) as bea:
        async with Node(tmp_path, config(bea.address)) as ada:
            opened = await ada.content.open_group("stock/price[0,100]")
            await ada.content.settled()
            (found,) = (await bea.content.find_groups("stock/price[10,20]")).groups
            assert (found.predicate, found.publisher.peer) == (opened.predicate, ada.peer)
            assert await ada.content.group_for("stock/price=12") == "price[0,100]/stock"
            assert await ada.content.group_for("stock/price=101") is None
            async with bea.content.subscribe("stock/price[10,20]", via=Via.FAST) as stocks:
                await bea.content.settled()
                outcome = await ada.content.publish_to_group(opened.predicate, "stock/price=12", "cheap")
                assert (outcome.wanted, outcome.reached, outcome.missed) == (1, 1, ())
                match = await anext(aiter(stocks))
                assert (match.event, match.body) == (outcome.event, b"cheap")
        async with Node(tmp_path, config(bea.address)) as ada:
            assert [each.predicate for each in (await ada.content.groups()).groups] == ["price[0,100]/stock"]
            await ada.content.close_group("stock/price[0,100]")
            assert (await ada.content.groups()).groups == ()


async def test_by_both_ways_each_event_comes_once() -> None:
    async with (
        asyncio.timeout(LIMIT),
        Node(config=config()) as ada,
        Node(config=config(ada.address)) as bea,
    ):
        await ada.content.open_group("rain")
        await ada.content.settled()
        async with bea.content.subscribe("rain", via=Via.AUTO) as rain:
            await bea.content.settled()
            await ada.content.publish("rain", "to anybody")
            await ada.content.publish_to_group("rain", "rain", "to members")
            matches = aiter(rain)
            assert [(await anext(matches)).body for _ in range(2)] == [b"to anybody", b"to members"]
            (stands,) = (await bea.content.status()).subscriptions
            assert (stands.via, stands.attribute) == (Via.AUTO, "rain")


async def test_a_group_on_no_board_is_joined_by_whoever_knows_it_also_after_a_restart(tmp_path: Path) -> None:
    init(tmp_path, 1_700_000_000.0)
    async with asyncio.timeout(LIMIT), Node(config=config()) as ada:
        opened = await ada.content.open_group("boat/knots[0,99]", listed=False)
        at = GroupAt(parse_contact(ada.address), "knots[0,99]/boat")
        async with Node(tmp_path, config(ada.address)) as bea:
            assert (await bea.content.find_groups("boat/knots[5,9]")).groups == ()
            with pytest.raises(Refused, match="scout knows no groups"):
                await bea.content.subscribe("boat/knots[5,9]", at=at).open()
            async with bea.content.subscribe("boat/knots[5,9]", "boats", Via.FAST, at):
                await bea.content.settled()
        async with (
            Node(tmp_path, config(ada.address)) as bea,
            bea.content.subscribe("boat/knots[5,9]", "boats", Via.FAST, at) as boats,
        ):
            await bea.content.settled()
            outcome = await ada.content.publish_to_group(opened.predicate, "boat/knots=7", "slow")
            assert (outcome.wanted, outcome.reached) == (1, 1)
            assert (await anext(aiter(boats))).body == b"slow"
            (stands,) = (await bea.content.status()).subscriptions
            assert stands.at == replace(at, group="boat/knots[0,99]")
