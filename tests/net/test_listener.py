from __future__ import annotations

import asyncio
import contextlib
import socket

import pytest

from linnet.core.errors import Refused
from linnet.core.reasons import Reason
from linnet.net.listener import LOOPBACK, listen
from linnet.testing.live import named_key

KEY = named_key("listener")


def _raise(error: OSError) -> None:
    raise error


def test_ports_are_known_before_anything_runs() -> None:
    listeners = listen([*LOOPBACK, "wss://127.0.0.1:0"], KEY)
    for listener, scheme in zip(listeners, ("tls", "wss"), strict=True):
        assert listener.hint == f"{scheme}://127.0.0.1:{listener.address.port}"
        assert listener.address.port > 0
        listener.close()


async def test_a_port_that_is_taken_is_named() -> None:
    (first,) = listen(LOOPBACK, KEY)
    first.start(1, lambda accepted, origin: accepted.close(), _raise)
    with pytest.raises(Refused, match=first.hint) as refused:
        listen(["tls://127.0.0.1:0", first.hint], KEY)
    assert refused.value.reason is Reason.NO_ADDRESS
    first.close()


@pytest.mark.parametrize("address", ["tls://no-such-host.invalid:0", "tls://192.0.2.1:0", "nonsense"])
def test_an_address_that_is_not_ours_is_refused(address: str) -> None:
    with pytest.raises(Refused):
        listen([address], KEY)


async def test_every_connection_is_handed_over_until_it_stops() -> None:
    (listener,) = listen(LOOPBACK, KEY)
    taken: asyncio.Queue[socket.socket] = asyncio.Queue()
    listener.start(8, lambda accepted, origin: taken.put_nowait(accepted), _raise)
    place = ("127.0.0.1", listener.address.port)
    with contextlib.ExitStack() as stack:
        stack.callback(listener.close)
        for _ in range(3):
            stack.enter_context(socket.create_connection(place, 5))
            stack.enter_context(await asyncio.wait_for(taken.get(), 5))
        listener.stop()
        stack.enter_context(socket.create_connection(place, 5))  # queued by the system, not for us
        await asyncio.sleep(0.05)
        assert taken.empty()
