"""Content over the control API."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.node.control_api import served
from tests.node.test_content import config

from linnet.api.content import ContentSaid, MatchView, ReadContent, SayContent
from linnet.api.errors import ControlError
from linnet.api.items import EndedView, SubscribedView
from linnet.content.commands import AttributeFate, ContentIs, ForgetContent, ListContent, SubscriptionIs
from linnet.delivery.commands import Consumed
from linnet.identity.text import Sort, to_text
from linnet.node.client import ControlClient

LIMIT = 60.0


async def test_subscribing_publishing_listing_and_forgetting(tmp_path: Path) -> None:
    call = asyncio.to_thread
    async with asyncio.timeout(LIMIT), served(tmp_path, config()) as (client, node):
        items = client.lines(ReadContent(0, "b/a=1", "kept"), manual=True)
        assert await call(next, items) == SubscribedView(1, False)
        said = await call(client.ask, SayContent("a=1/b", "hello"))
        at_one = AttributeFate("a", 1, 0, None, matches=1) in said.fates
        fates = (
            AttributeFate("a", int(at_one), 0, None, matches=int(at_one)),
            AttributeFate("b", int(not at_one), 0, None, matches=int(not at_one)),
        )
        assert said == ContentSaid(said.event, 1, 0, said.fates, matches=1)
        assert sorted(said.fates, key=lambda fate: fate.attribute) == [*fates]
        match = await call(next, items)
        assert isinstance(match, MatchView)
        person = to_text(Sort.PERSON, node.author)
        assert match == MatchView(
            1, to_text(Sort.EVENT, said.event), person, "a=1/b", match.time, 0, b"hello", "hello"
        )
        stands = SubscriptionIs("kept", "a=1/b", "a" if at_one else "b", True, 1, 0)
        assert await call(client.ask, ListContent()) == ContentIs((stands,), ("a", "b"), 1, True)
        with ControlClient(tmp_path) as other:
            await call(other.ask, Consumed(1, 1))
            assert [each.waiting for each in (await call(other.ask, ListContent())).subscriptions] == [0]
            await call(other.ask, ForgetContent("kept"))
        assert await call(next, items) == EndedView(None)
        assert (await call(client.ask, ListContent())).subscriptions == ()


async def test_what_is_declined_says_why(tmp_path: Path) -> None:
    call = asyncio.to_thread
    async with asyncio.timeout(LIMIT), served(tmp_path, config()) as (client, _):
        with pytest.raises(ControlError, match="character 6: expected") as caught:
            await call(client.ask, SayContent("price[1,2]"))
        assert caught.value.status == 400
        with pytest.raises(ControlError, match="no kept subscription 'x'"):
            await call(client.ask, ForgetContent("x"))
        with pytest.raises(ControlError, match="character 3"):
            await call(next, client.lines(ReadContent(0, "a/")))
