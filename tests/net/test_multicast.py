"""Real multicast over the loopback of this machine; over bridges in test_neighborhood_live.py."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest
from tests.net.live import LIMIT

from linnet.edge.announcement import MOST_BYTES
from linnet.net.config import LanConfig
from linnet.net.interfaces import LOOPBACK, Interface, interfaces
from linnet.net.local_networks import Multicast


def free_port() -> int:
    """A port that nobody hears on, so that tests beside this one are not heard."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def loopback() -> Interface:
    return next(each for each in interfaces() if each.flags & LOOPBACK)


class Ear:
    """Keeps what a socket hears."""

    def __init__(self, multicast: Multicast) -> None:
        self.multicast = multicast
        self.heard: list[tuple[str, bytes]] = []
        self._event = asyncio.Event()
        multicast.start(self._on)

    def _on(self, source: str, datagram: bytes) -> None:
        self.heard.append((source, datagram))
        self._event.set()

    async def until(self, count: int) -> None:
        async with asyncio.timeout(LIMIT):
            while len(self.heard) < count:
                self._event.clear()
                await self._event.wait()


@pytest.fixture
async def ears() -> AsyncIterator[tuple[Ear, Ear]]:
    config = LanConfig(port=free_port())
    try:
        one, two = Multicast(loopback(), config), Multicast(loopback(), config)
        one.send(b"is multicast allowed here?")
    except OSError as error:
        pytest.skip(f"this machine has no multicast on its loopback: {error}")
    pair = Ear(one), Ear(two)
    for each in pair:
        # What was sent before is heard too: the sockets were there.
        await each.until(1)
        each.heard.clear()
    yield pair
    one.close()
    two.close()


async def test_what_one_sends_all_hear_and_itself_too(ears: tuple[Ear, Ear]) -> None:
    one, two = ears
    one.multicast.send(b"hello")
    await one.until(1)
    await two.until(1)
    assert one.heard[0][1] == two.heard[0][1] == b"hello"
    assert one.heard[0][0] == two.heard[0][0]


async def test_what_is_too_long_is_seen_to_be(ears: tuple[Ear, Ear]) -> None:
    one, two = ears
    one.multicast.send(bytes(1000))
    await two.until(1)
    assert len(two.heard[0][1]) == MOST_BYTES + 1


async def test_a_flood_is_read_in_pieces_and_leaves_others_their_turn(ears: tuple[Ear, Ear]) -> None:
    one, two = ears
    turns = 0
    for number in range(150):
        one.multicast.send(number.to_bytes(2, "big"))
    async with asyncio.timeout(LIMIT):
        while len(two.heard) < 150:
            turns += 1
            await asyncio.sleep(0)
    assert turns > 2
    assert [int.from_bytes(datagram, "big") for _, datagram in two.heard[:150]] == list(range(150))


async def test_another_group_is_not_heard(ears: tuple[Ear, Ear]) -> None:
    one, two = ears
    other = Multicast(loopback(), LanConfig(port=free_port()))
    other.send(b"elsewhere")
    other.close()
    one.multicast.send(b"here")
    await two.until(1)
    assert [datagram for _, datagram in two.heard] == [b"here"]


async def test_an_interface_without_address_is_refused() -> None:
    with pytest.raises(OSError, match="has no address"):
        Multicast(Interface("nowhere", 1, 0, ()), LanConfig())
