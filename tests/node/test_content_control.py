"""Content over the control API."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.node.test_content import config

from linnet.identity.text import Sort, to_text
from linnet.node.client import ControlClient, ControlError
from linnet.node.content_types import ContentPublishReply, ContentReply, FateView, MatchView, SubscriptionView
from linnet.node.control import Control
from linnet.node.control_server import ControlServer
from linnet.node.control_types import EndedView, SubscribedView
from linnet.node.home import init
from linnet.node.library import Node

LIMIT = 60.0


@contextlib.asynccontextmanager
async def served(path: Path) -> AsyncIterator[tuple[ControlClient, Node]]:
    """A node with a control API."""
    init(path, 1_700_000_000.0)
    async with (
        Node(path, config()) as node,
        ControlServer(Control(node, lambda: None).app(), path / "control.sock", None, None),
    ):
        with ControlClient(path) as client:
            yield client, node
        node.end_subscriptions()


async def test_subscribing_publishing_listing_and_forgetting(tmp_path: Path) -> None:
    call = asyncio.to_thread
    async with asyncio.timeout(LIMIT), served(tmp_path) as (client, node):
        items = client.subscribe_content("b/a=1", "kept", manual=True)
        assert await call(next, items) == SubscribedView(1, False)
        said = await call(client.publish_content, "a=1/b", b"hello")
        at_one = FateView("a", 1, 0, None, matches=1) in said.fates
        fates = (
            FateView("a", int(at_one), 0, None, matches=int(at_one)),
            FateView("b", int(not at_one), 0, None, matches=int(not at_one)),
        )
        assert said == ContentPublishReply(said.event, 1, 0, said.fates, matches=1)
        assert sorted(said.fates, key=lambda fate: fate.attribute) == [*fates]
        match = await call(next, items)
        assert isinstance(match, MatchView)
        person = to_text(Sort.PERSON, node.author)
        assert match == MatchView(1, said.event, person, "a=1/b", match.time, 0, b"hello", "hello")
        stands = SubscriptionView("kept", "a=1/b", "a" if at_one else "b", True, 1, 0)
        assert await call(client.content) == ContentReply((stands,), ("a", "b"), 1, True)
        with ControlClient(tmp_path) as other:
            await call(other.consumed, 1, 1)
            assert [each.waiting for each in (await call(other.content)).subscriptions] == [0]
            await call(other.forget_content, "kept")
        assert await call(next, items) == EndedView(None)
        assert (await call(client.content)).subscriptions == ()


async def test_what_is_declined_says_why(tmp_path: Path) -> None:
    call = asyncio.to_thread
    async with asyncio.timeout(LIMIT), served(tmp_path) as (client, _):
        with pytest.raises(ControlError, match="character 6: expected") as caught:
            await call(client.publish_content, "price[1,2]")
        assert caught.value.status == 400
        with pytest.raises(ControlError, match="no kept subscription 'x'"):
            await call(client.forget_content, "x")
        with pytest.raises(ControlError, match="character 3"):
            await call(next, client.subscribe_content("a/"))
