from __future__ import annotations

import pytest

from linnet.core.effects import Send
from linnet.core.inputs import LinkUp, Received
from linnet.peer.messages import Ping, Pong
from linnet.testing.live import LiveNode, link, ordered_keys


@pytest.mark.parametrize("scheme", ["tls", "wss"])
async def test_a_message_goes_there_and_back(scheme: str) -> None:
    one, two = ordered_keys(2)
    where = (f"{scheme}://127.0.0.1:0",)
    async with LiveNode(one, where) as first, LiveNode(two, where) as second:
        await link(first, second)
        first.act(Send(second.peer, Ping(1)))
        await second.happens(Received)
        second.act(Send(first.peer, Pong(1)))
        await first.happens(Received)
        assert first.inputs == [
            LinkUp(second.peer, second.machine.hello, True),
            Received(second.peer, Pong(1)),
        ]
        assert second.inputs == [
            LinkUp(first.peer, first.machine.hello, False),
            Received(first.peer, Ping(1)),
        ]
