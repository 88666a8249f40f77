"""Attacks on the number of sockets that a node may have open."""

from __future__ import annotations

import asyncio
import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.attacks.victim import victim
from tests.net.live import named_key
from tests.net.strangers import raw_link

from linnet.core.ids import TopicId
from linnet.net.address import parse_address
from linnet.overlay.messages import Join
from linnet.peer.messages import CODEC
from linnet.wire.frame import frame


@contextmanager
def idle_connections(hint: str, count: int) -> Iterator[list[socket.socket]]:
    """Open TCP connections on which nothing is ever said."""
    place = parse_address(hint)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    opened: list[socket.socket] = []
    try:
        opened.extend(socket.create_connection((place.host, place.port), timeout=5.0) for _ in range(count))
        yield opened
    finally:
        for each in opened:
            each.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("count", [400])
async def test_idle_connections_and_dials_for_others_end_no_node(tmp_path: Path, count: int) -> None:
    async with victim(tmp_path / "home", descriptors=256) as node:
        with idle_connections(node.hint, count):
            link = await raw_link(node.hint, node.contact.peer, named_key("attacker"))
            for number in range(105):
                topic = TopicId(number.to_bytes(32, "big"))
                join = Join(topic, (), (f"tls://127.0.0.1:{10_000 + number}",), 4, False, False)
                link.connection.write(frame(CODEC.encode(join)))
            await asyncio.sleep(3.0)
            assert node.lives
            await node.serves_newcomers()
        link.connection.close()
