"""Two nodes on one local network, over the loopback of this machine: heard, met, linked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.net.live import LiveNode, ordered_keys
from tests.net.test_multicast import free_port, loopback

from linnet.core.effects import Announce, Dial, HangUp, Meet
from linnet.core.ids import PeerId
from linnet.core.inputs import DialFailed, Heard, LinkDown, LinkUp, LocalNetwork, Met, NetworkIs, NotMet
from linnet.core.reasons import Reason
from linnet.edge.announcement import (
    DAY,
    day_of,
    lan_hint,
    lan_key,
    make_announcement,
    node_secret,
    read_announcement,
)
from linnet.identity.keys import SigningKey
from linnet.net.address import parse_address
from linnet.net.admission import Networks
from linnet.net.clock import Clock
from linnet.net.config import LanConfig, NetConfig
from linnet.net.failure import LinkFailure
from linnet.net.tls import client_context
from linnet.net.tls_transport import encrypt, open_socket


class Neighbor(LiveNode):
    """A node that watches the loopback as if it were a local network."""

    def __init__(self, key: SigningKey, port: int, clock: Clock | None = None) -> None:
        lan = LanConfig(interfaces=(loopback().name,), port=port, scan_period=0.05, grace=0.2)
        super().__init__(key, addresses=(), clock=clock, lan=lan)

    async def here(self) -> LocalNetwork:
        """The network that it is on."""
        found = await self.until(lambda: [each for each in self.inputs if isinstance(each, NetworkIs)])
        [network] = found[-1].networks
        return network

    def lan_key(self, network: LocalNetwork) -> SigningKey:
        return lan_key(node_secret(self.key), network.network, network.day)

    async def announce(self) -> bytes:
        """Announce what the machine would, and return the key."""
        here = await self.here()
        key = self.lan_key(here)
        self.act(Announce(here.network, make_announcement(key, here.port, b"nonce---")))
        return key.public

    async def heard(self, lan: bytes) -> Heard:
        """The announcement of somebody else's key."""
        return await self.until(
            lambda: next(
                (
                    each
                    for each in self.inputs
                    if isinstance(each, Heard) and read_announcement(each.datagram).lan == lan
                ),
                None,
            )
        )

    async def meet(self, heard: Heard) -> Meet:
        """Meet whoever was heard."""
        here = await self.here()
        said = read_announcement(heard.datagram)
        hints = (lan_hint(said.lan, heard.source, said.port),)
        meet = Meet(here.network, said.lan, self.lan_key(here).public, hints)
        self.act(meet)
        return meet

    def forget(self) -> None:
        """What happened, but for where it is."""
        self.inputs[:] = [each for each in self.inputs if isinstance(each, NetworkIs)]

    async def happened(self, *events: object) -> None:
        await self.until(lambda: all(event in self.inputs for event in events))


@asynccontextmanager
async def pair() -> AsyncIterator[tuple[Neighbor, Neighbor]]:
    small, large = ordered_keys(2)
    port = free_port()
    async with Neighbor(small, port) as one, Neighbor(large, port) as two:
        await one.here()
        await two.here()
        yield one, two


async def heard_by(one: Neighbor, two: Neighbor) -> Heard:
    """What one hears of two; a machine without multicast on its loopback is passed over."""
    lan = await two.announce()
    try:
        return await one.heard(lan)
    except TimeoutError:
        failures = [record.note for record in two.records if record.reason is Reason.UNREACHABLE]
        if failures:
            pytest.skip(f"this machine has no multicast on its loopback: {failures[0]}")
        raise


def near(heard: Heard) -> str | None:
    """By what a neighbour at this address is counted."""
    return Networks(()).of(f"{heard.source}:1")


async def test_those_who_hear_each_other_meet_and_are_linked() -> None:
    async with pair() as (one, two):
        heard = await heard_by(one, two)
        meet = await one.meet(heard)
        await one.happened(
            Met(meet.network, meet.lan, two.peer), LinkUp(two.peer, two.machine.hello, True, near(heard))
        )
        await two.happened(
            Met(meet.network, meet.own, one.peer), LinkUp(one.peer, one.machine.hello, False, near(heard))
        )


async def test_a_device_is_dialled_by_its_key_at_a_hint_of_the_local_network() -> None:
    async with pair() as (one, two):
        heard = await heard_by(one, two)
        meet = await one.meet(heard)
        await one.happened(LinkUp(two.peer, two.machine.hello, True, near(heard)))
        one.act(HangUp(two.peer, Reason.NOT_NEEDED))
        await one.until(lambda: any(isinstance(each, LinkDown) for each in one.inputs))
        await two.until(lambda: any(isinstance(each, LinkDown) for each in two.inputs))
        one.forget()
        one.act(Dial(two.peer, meet.hints, False))
        await one.happened(LinkUp(two.peer, two.machine.hello, True, near(heard)))
        other = PeerId(b"o" * 32)
        one.act(Dial(other, meet.hints, False))
        await one.happened(DialFailed(other, Reason.WRONG_KEY))


async def test_meeting_again_leaves_the_link_as_it_is() -> None:
    async with pair() as (one, two):
        heard = await heard_by(one, two)
        meet = await one.meet(heard)
        await one.happened(LinkUp(two.peer, two.machine.hello, True, near(heard)))
        await two.happened(LinkUp(one.peer, one.machine.hello, False, near(heard)))
        one.forget()
        two.forget()
        await one.meet(heard)
        await one.happened(Met(meet.network, meet.lan, two.peer))
        await two.happened(Met(meet.network, meet.own, one.peer))
        back = await heard_by(two, one)
        two.forget()
        await two.meet(back)
        await two.happened(Met(meet.network, meet.own, one.peer))
        assert not any(isinstance(each, LinkUp | LinkDown) for each in [*one.inputs, *two.inputs])


async def test_both_may_meet_each_other_at_once() -> None:
    async with pair() as (one, two):
        first, second = await heard_by(one, two), await heard_by(two, one)
        await asyncio.gather(one.meet(first), two.meet(second))
        await one.until(lambda: any(isinstance(each, LinkUp) for each in one.inputs))
        await two.until(lambda: any(isinstance(each, LinkUp) for each in two.inputs))
        ups = [each for each in one.inputs if isinstance(each, LinkUp)]
        downs = [each for each in one.inputs if isinstance(each, LinkDown)]
        assert len(ups) - len(downs) <= 1


async def test_whoever_does_not_know_the_key_is_shown_nothing() -> None:
    async with pair() as (one, two):
        here = await two.here()
        context = client_context()
        address = parse_address(f"tls://127.0.0.1:{here.port}")
        with pytest.raises(LinkFailure) as failure:
            await encrypt(await open_socket(address), address, context, NetConfig())
        assert failure.value.reason is Reason.TLS_FAILED
        stranger = parse_address(lan_hint(b"s" * 32, "127.0.0.1", here.port))
        with pytest.raises(LinkFailure) as failure:
            await encrypt(await open_socket(stranger), stranger, context, NetConfig())
        assert failure.value.reason is Reason.TLS_FAILED
        del one


async def test_a_key_that_was_not_announced_here_is_not_dialled() -> None:
    async with pair() as (one, two):
        here = await two.here()
        hint = lan_hint(two.lan_key(here).public, "127.0.0.1", here.port)
        one.act(Dial(two.peer, (hint,), False))
        await one.happened(DialFailed(two.peer, Reason.NO_ADDRESS))


async def test_an_announcement_that_is_repeated_by_another_leads_to_nobody() -> None:
    async with pair() as (one, two):
        here, there = await one.here(), await two.here()
        forged = SigningKey(b"f" * 32).public
        hints = (lan_hint(forged, "127.0.0.1", there.port),)
        one.act(Meet(here.network, forged, one.lan_key(here).public, hints))
        await one.happened(NotMet(here.network, forged, Reason.TLS_FAILED))


async def test_a_new_day_brings_a_new_key_and_a_new_port() -> None:
    class Calendar(Clock):
        days = 0.0

        def now(self) -> float:
            return super().now() + self.days * DAY

    clock = Calendar()
    async with Neighbor(ordered_keys(1)[0], free_port(), clock) as node:
        today = await node.here()
        assert today.day == day_of(clock.now())
        clock.days = 1.0
        await node.until(lambda: sum(isinstance(each, NetworkIs) for each in node.inputs) == 2)
        tomorrow = await node.here()
        assert tomorrow.network == today.network
        assert tomorrow.day == today.day + 1
        assert tomorrow.port != today.port
        assert node.lan_key(tomorrow).public != node.lan_key(today).public


async def test_a_node_that_watches_nothing_says_so_when_asked_to_announce() -> None:
    async with LiveNode(ordered_keys(1)[0]) as node:
        node.act(Announce(bytes(32), b"x"))
        [record] = await node.until(lambda: [each for each in node.records if each.reason])
        assert record.reason is Reason.UNSUPPORTED
