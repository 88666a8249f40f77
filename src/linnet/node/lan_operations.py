"""What the control API can be asked about local networks."""

from __future__ import annotations

from linnet.node.lan_types import AllowOnLanRequest, LanNetworkView, LanReply
from linnet.node.operation import Operation

LAN_OPERATIONS = (
    Operation("lan", "GET", "/v1/lan", "The local networks that this device is on.", LanReply),
    Operation(
        "allow_on_lan",
        "POST",
        "/v1/lan/allow",
        "Let a topic be spoken of on a local network, or not; kept over restarts.",
        LanNetworkView,
        body=AllowOnLanRequest,
        errors=(409, 413, 429),
    ),
)
