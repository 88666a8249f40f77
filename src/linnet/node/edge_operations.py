"""What the control API can be asked about the edge."""

from __future__ import annotations

from linnet.node.control_types import DoneReply
from linnet.node.edge_types import EdgeReply
from linnet.node.operation import Operation

EDGE_OPERATIONS = (
    Operation("edge", "GET", "/v1/edge", "Our proxies, and those whom we serve as theirs.", EdgeReply),
    Operation(
        "sleep",
        "POST",
        "/v1/edge/sleep",
        "Let go of all links, at a node on the edge; what is said meanwhile waits at its proxies.",
        DoneReply,
        errors=(403, 409),
    ),
    Operation("wake", "POST", "/v1/edge/wake", "Turn to the proxies again.", DoneReply, errors=(403, 409)),
)
