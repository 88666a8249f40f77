"""What is known before a request is: where it comes from. The rest of the door: test_relay_http.py."""

from __future__ import annotations

import pytest
from starlette.requests import Request
from tests.node.standin_relay import RELAY

from linnet.core.reasons import Reason
from linnet.node.relay_admission import Door, RelayHttpLimits
from linnet.node.relay_protocol import RelayHttpError
from linnet.sim.clock import START


def request_from(host: str | None) -> Request:
    client = None if host is None else (host, 4000)
    return Request({"type": "http", "method": "GET", "path": "/", "headers": [], "client": client})


class Entering:
    """A door with room for two requests from one address."""

    def __init__(self, limits: RelayHttpLimits) -> None:
        self.now = START
        self.door = Door(RELAY.peer, lambda: self.now, limits)

    def enter(self, host: str | None) -> Reason | None:
        try:
            with self.door.admitted(request_from(host)):
                return None
        except RelayHttpError as error:
            return error.reason if error.retry_after else None


@pytest.fixture
def entering() -> Entering:
    return Entering(RelayHttpLimits(address_rate=1.0, address_burst=2))


def test_an_address_has_a_budget(entering: Entering) -> None:
    assert [entering.enter("192.0.2.1") for _ in range(3)] == [None, None, Reason.FLOODING]
    assert entering.enter("192.0.2.2") is None
    entering.now += 1.0
    assert entering.enter("192.0.2.1") is None


def test_a_network_of_ipv6_is_one_address(entering: Entering) -> None:
    hosts = ["2001:db8::1", "2001:db8::ffff:1", "2001:db8::2", "2001:db8:0:1::1"]
    assert [entering.enter(host) for host in hosts] == [None, None, Reason.FLOODING, None]


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "testclient", None])
def test_this_machine_is_exempt(entering: Entering, host: str | None) -> None:
    assert [entering.enter(host) for _ in range(5)] == [None] * 5


def test_one_address_does_not_take_all_places() -> None:
    door = Entering(RelayHttpLimits(in_flight=3, address_in_flight=2)).door
    with (
        door.admitted(request_from("192.0.2.1")),
        door.admitted(request_from("192.0.2.1")),
    ):
        with pytest.raises(RelayHttpError, match="2 of them"), door.admitted(request_from("192.0.2.1")):
            pass
        with door.admitted(request_from("192.0.2.2")):
            pass
    with door.admitted(request_from("192.0.2.1")):
        pass


def test_a_place_is_given_back_whatever_happens() -> None:
    door = Entering(RelayHttpLimits(in_flight=1)).door
    with (
        pytest.raises(RelayHttpError, match="congested"),
        door.admitted(request_from(None)),
        door.admitted(request_from(None)),
    ):
        pass
    with door.admitted(request_from(None)):
        pass
