"""Overlays without trackers through the library, on real sockets."""

from __future__ import annotations

import asyncio

import pytest

from linnet.core.errors import Refused
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.net.config import NetConfig
from linnet.node.config import NodeConfig, NodeSection, TrackerlessSection, TrackerSection
from linnet.node.library import Node
from linnet.overlay.config import Overlay
from linnet.overlay.gossip.commands import Trusted, TrustIs

LIMIT = 30.0
NET = NetConfig(linger=0.5)
FRIEND = PeerId(b"f" * 32)


async def test_trust_is_set_and_taken_back_and_nothing_was_told_yet() -> None:
    async with (
        asyncio.timeout(LIMIT),
        Node(config=NodeConfig(node=NodeSection(overlay=Overlay.RING), net=NET)) as node,
    ):
        assert await node.overlay.trust(FRIEND) == TrustIs((Trusted(FRIEND, 1.0),))
        assert await node.overlay.trusted() == TrustIs((Trusted(FRIEND, 1.0),))
        with pytest.raises(Refused, match="at most 1"):
            await node.overlay.trust(FRIEND, 2.0)
        assert await node.overlay.distrust(FRIEND) == TrustIs(())
        assert (await node.overlay.privacy()).epsilon == 0.0
        assert (await node.overlay.status()).sample == ()


async def test_a_node_that_follows_trackers_says_so_and_has_an_account() -> None:
    async with asyncio.timeout(LIMIT), Node(config=NodeConfig(net=NET)) as node:
        assert (await node.overlay.privacy()).runs == 0
        with pytest.raises(Refused, match="linnet up --overlay ring") as caught:
            await node.overlay.status()
        assert caught.value.reason is Reason.UNSUPPORTED
        with pytest.raises(Refused, match="linnet up --overlay ring"):
            await node.overlay.switch("tea", Overlay.RING)


async def test_a_stream_changes_its_overlay_and_the_node_says_so() -> None:
    config = NodeConfig(
        tracker=TrackerSection(enabled=True), trackerless=TrackerlessSection(enabled=True), net=NET
    )
    async with asyncio.timeout(LIMIT), Node(config=config) as node:
        await node.publish("tea", "early")
        told = await node.overlay.switch("tea", Overlay.RING)
        assert (told.overlay, told.before) == (Overlay.RING, Overlay.TRACKER)
        assert [stream.overlay for stream in (await node.status()).streams] == [Overlay.RING]
        assert [ring.topic for ring in (await node.overlay.status()).rings] == [told.topic]
        assert (await node.overlay.switch("tea", None)).overlay is Overlay.TRACKER
        with pytest.raises(Refused, match="malformed"):
            await node.overlay.switch("", Overlay.RING)
