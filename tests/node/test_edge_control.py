"""How the edge is told over the control API; by its commands it is asked in tests/cli/test_edge.py."""

from __future__ import annotations

from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.edge.proxy_commands import ClientStatus, EdgeStatus, ProxyStatus
from linnet.identity.text import Sort, from_text
from linnet.node.edge_control import edge_view
from linnet.node.edge_types import RefusalView


def test_ids_and_reasons_are_told_as_text() -> None:
    refusals = (("tea", Reason.NOT_ALLOWED),)
    proxy = ProxyStatus(
        PeerId(b"q" * 32), ("tls://q:1",), True, False, 2, refusals, 10, 100, Reason.UNREACHABLE
    )
    client = ClientStatus(PeerId(b"m" * 32), True, ("tea", "rain"), 5, 50, 1_700_000_000.0)
    view = edge_view(EdgeStatus(True, False, True, (proxy,), (client,)))
    assert (view.edge, view.proxy, view.asleep) == (True, False, True)
    [told] = view.proxies
    assert from_text(Sort.DEVICE, told.proxy) == proxy.peer
    assert (told.refusals, told.last_failure) == ((RefusalView("tea", "not_allowed"),), "unreachable")
    [served] = view.clients
    assert from_text(Sort.DEVICE, served.client) == client.peer
    assert (served.streams, served.kept_bytes, served.most_bytes) == (("tea", "rain"), 5, 50)
