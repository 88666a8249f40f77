"""Local networks, as a program asks about them: where we are, who else is there, what may be said there."""

from __future__ import annotations

from linnet.core.errors import Refused
from linnet.core.ids import TopicId
from linnet.core.reasons import Reason
from linnet.delivery.commands import Done
from linnet.edge.commands import AllowOnNetwork, ExamineLan, LanStatus, NetworkStatus
from linnet.node.answers import expected
from linnet.node.batching import Ask


class Lan:
    """The local networks of one node. Everything raises `Refused` with why it cannot be."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def status(self) -> LanStatus:
        """The networks that this device is on, or that something is allowed on."""
        return expected(await self._ask(ExamineLan()), LanStatus)

    async def allow(self, topic: TopicId, network: bytes | None, is_allowed: bool) -> NetworkStatus:
        """Let a topic be spoken of on a network, or not; None: the one network that this device is on."""
        if network is None:
            network = chosen(await self.status()).network
        expected(await self._ask(AllowOnNetwork(topic, network, is_allowed)), Done)
        for each in (await self.status()).networks:
            if each.network == network:
                return each
        return NetworkStatus(network, "", False, False, (), 0, ())


def chosen(status: LanStatus) -> NetworkStatus:
    """The one network that this device is on; `Refused` if there are none or several."""
    if not status.is_enabled:
        raise Refused(Reason.UNSUPPORTED, "this node leaves local networks alone: [lan] enabled = false")
    here = [each for each in status.networks if each.is_here]
    if len(here) == 1:
        return here[0]
    if not here:
        raise Refused(Reason.UNREACHABLE, "this device is on no local network now")
    named = "; ".join(f"{each.network.hex()[:8]} ({each.name})" for each in here)
    raise Refused(Reason.TOO_MANY, f"this device is on several networks, say which: {named}")
