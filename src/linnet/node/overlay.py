"""Overlays without trackers, as a program asks about them: whom to trust, what was told, how it stands.

::

    async with Node(config=NodeConfig(node=NodeSection(overlay=Overlay.RING, bootstrap=(address,)))) as node:
        await node.overlay.trust(friend)
        print((await node.overlay.privacy()).epsilon)
"""

from __future__ import annotations

from linnet.core.ids import PeerId
from linnet.node.answers import expected
from linnet.node.batching import Ask
from linnet.overlay.config import Overlay
from linnet.overlay.trackerless.commands import ExamineOverlay, ExaminePrivacy, ListTrust, SetTrust, TrustIs
from linnet.overlay.trackerless.privacy import BudgetIs
from linnet.overlay.trackerless.status import TrackerlessStatus
from linnet.streams.commands import OverlayIs, SwitchOverlay


class NodeOverlay:
    """How one node finds others. Everything raises `Refused` with why it cannot be."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def status(self) -> TrackerlessStatus:
        """Whom the node knows, and how each of its topics without a tracker stands."""
        return expected(await self._ask(ExamineOverlay()), TrackerlessStatus)

    async def privacy(self) -> BudgetIs:
        """What the node has told others of its interests, and what it adds up to."""
        return expected(await self._ask(ExaminePrivacy()), BudgetIs)

    async def trust(self, device: PeerId, value: float = 1.0) -> TrustIs:
        """Trust a device so much, above 0 and up to 1. Nobody is told."""
        return expected(await self._ask(SetTrust(device, value)), TrustIs)

    async def distrust(self, device: PeerId) -> TrustIs:
        """Trust a device no longer."""
        return expected(await self._ask(SetTrust(device, None)), TrustIs)

    async def trusted(self) -> TrustIs:
        """Whom the user trusts."""
        return expected(await self._ask(ListTrust()), TrustIs)

    async def switch(self, stream: str, overlay: Overlay | None) -> OverlayIs:
        """Give a stream another overlay while it goes on; None: the one that is configured.

        The stream stays in the old one for a while, so nothing is lost if the others change over too. It is
        remembered over restarts.
        """
        return expected(await self._ask(SwitchOverlay(stream, overlay)), OverlayIs)
