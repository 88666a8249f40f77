"""What the control API can be asked about the edge, by a program."""

from __future__ import annotations

from linnet.node.caller import Caller
from linnet.node.control_types import DoneReply
from linnet.node.edge_types import EdgeReply


class EdgeCalls(Caller):
    """Calls about the edge."""

    def edge(self) -> EdgeReply:
        """Our proxies, and those whom the node serves as theirs."""
        return self._get("/v1/edge", EdgeReply)

    def sleep(self) -> DoneReply:
        """Let go of all links."""
        return self._post("/v1/edge/sleep", None, DoneReply)

    def wake(self) -> DoneReply:
        """Turn to the proxies again."""
        return self._post("/v1/edge/wake", None, DoneReply)
