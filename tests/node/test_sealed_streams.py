"""Sealed streams through the library, on real sockets."""

from __future__ import annotations

import asyncio

import pytest

from linnet.core.errors import Refused
from linnet.core.reasons import Reason
from linnet.delivery.items import Unreadable
from linnet.event.event import Event
from linnet.identity.text import Sort, to_text
from linnet.node.config import NodeConfig
from linnet.node.library import Node
from linnet.streams.commands import Policy

LIMIT = 30.0


async def test_a_reader_is_let_in_and_put_out(member_config: NodeConfig) -> None:
    async with (
        asyncio.timeout(LIMIT),
        Node(config=member_config) as owner,
        Node(config=member_config) as reader,
    ):
        stream = f"{to_text(Sort.PERSON, owner.author)}/news"
        await owner.declare("me/news", Policy(), sealed=True)
        asked = await reader.sealed.request(stream)
        told = await owner.sealed.allow("me/news", asked.line)
        assert [each.person for each in told.changed] == [reader.author]
        async with reader.subscribe(stream) as subscription:
            items = subscription.items()
            await _until_neighbors(owner)
            await owner.publish("me/news", b"rain")
            item = await anext(items)
            if isinstance(item, Unreadable):  # its key had to be looked for
                assert item.reason is Reason.KEY_MISSING
                item = await anext(items)
            assert isinstance(item, Event)
            assert item.body == b"rain"
            gone = await owner.sealed.disallow("me/news", person=reader.author)
            assert (gone.readers, gone.epoch) == ((), told.epoch + 1)
            await owner.publish("me/news", b"snow")
            item = await anext(items)
            assert isinstance(item, Unreadable)
            assert (item.event.body, item.reason) == (b"", Reason.NOT_A_MEMBER)
        assert (await owner.sealed.readers("me/news")).readers == ()
        with pytest.raises(Refused, match="does not seal"):
            await reader.sealed.readers(stream)


async def _until_neighbors(node: Node) -> None:
    while not (await node.status()).streams[0].neighbors:  # noqa: ASYNC110 - no event tells it
        await asyncio.sleep(0.01)
