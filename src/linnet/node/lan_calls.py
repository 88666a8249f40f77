"""What the control API can be asked about local networks, by a program."""

from __future__ import annotations

from linnet.node.caller import Caller
from linnet.node.lan_types import AllowOnLanRequest, LanNetworkView, LanReply


class LanCalls(Caller):
    """Calls about local networks."""

    def lan(self) -> LanReply:
        """The local networks that this device is on, or that something is allowed on."""
        return self._get("/v1/lan", LanReply)

    def allow_on_lan(self, topic: str, allowed: bool, network: str | None = None) -> LanNetworkView:
        """Let a topic be spoken of on a network, or not; None: the one that this device is on."""
        return self._post("/v1/lan/allow", AllowOnLanRequest(topic, allowed, network), LanNetworkView)
