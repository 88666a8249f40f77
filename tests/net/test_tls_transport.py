from __future__ import annotations

import pytest
from tests.net.live import named_key

from linnet.core.errors import Refused
from linnet.core.reasons import Reason
from linnet.net.address import parse_address
from linnet.net.config import NetConfig
from linnet.net.tls_transport import TlsTransport
from linnet.net.transport import LOOPBACK, TransportListener, listen

KEY = named_key("listener")
TRANSPORTS = [TlsTransport(KEY, NetConfig())]


def port_of(listener: TransportListener) -> int:
    return parse_address(listener.hint).port


def _raise(error: OSError) -> None:
    raise error


def test_ports_are_known_before_anything_runs() -> None:
    listeners = listen([*LOOPBACK, "wss://127.0.0.1:0"], TRANSPORTS)
    for listener, scheme in zip(listeners, ("tls", "wss"), strict=True):
        assert listener.hint.startswith(f"{scheme}://127.0.0.1:")
        assert port_of(listener) > 0
        listener.close()


async def test_a_port_that_is_taken_is_named() -> None:
    (first,) = listen(LOOPBACK, TRANSPORTS)
    first.start(lambda incoming: incoming.refuse(), _raise)
    with pytest.raises(Refused, match=first.hint) as refused:
        listen(["tls://127.0.0.1:0", first.hint], TRANSPORTS)
    assert refused.value.reason is Reason.NO_ADDRESS
    first.close()


@pytest.mark.parametrize(
    "address", ["tls://no-such-host.invalid:0", "tls://192.0.2.1:0", "nonsense", "carrier-pigeon://coop:1"]
)
def test_an_address_that_is_not_ours_is_refused(address: str) -> None:
    with pytest.raises(Refused):
        listen([address], TRANSPORTS)
