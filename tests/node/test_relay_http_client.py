from __future__ import annotations

import ssl
from collections.abc import AsyncIterator

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from tests.node.standin_relay import RELAY, RELAY_IDENTITY, ROOM, StandInRelay, room_unit

from linnet.identity.addresses import HttpAddress
from linnet.node.relay_http import RelayHttp, serve_relay
from linnet.node.relay_http_client import RelayHttpClient, RelayUnreachable
from linnet.node.relay_protocol import Status
from linnet.sim.clock import START
from linnet.testing.identities import known_identity

ANN = known_identity("ann")
TLS, PLAIN = HttpAddress("127.0.0.1", 0, True), HttpAddress("127.0.0.1", 0, False)


def now() -> float:
    return START


@pytest.fixture
def relay() -> StandInRelay:
    return StandInRelay(ANN)


@pytest.fixture
async def url(relay: StandInRelay) -> AsyncIterator[str]:
    """A relay under TLS."""
    face = RelayHttp(relay, RELAY_IDENTITY, now)
    async with serve_relay(face.app(), TLS, RELAY.device) as served:
        yield served


async def test_a_relay_under_tls_is_known_by_its_key(url: str, relay: StandInRelay) -> None:
    async with RelayHttpClient(url, RELAY.peer, ANN, now) as http:
        sent = await http.send(ROOM, [room_unit(ANN, 0, b"one")], [ANN.card])
        assert sent.results[0].status is Status.ACCEPTED
        assert len((await http.resync(ROOM, None)).events) == 1
    assert len(relay.asked) == 2


async def test_another_relay_is_told_nothing(url: str, relay: StandInRelay) -> None:
    async with RelayHttpClient(url, known_identity("other").peer, ANN, now) as http:
        with pytest.raises(RelayUnreachable, match="another relay than the one that is meant"):
            await http.send(ROOM, [room_unit(ANN, 0, b"one")])
        with pytest.raises(RelayUnreachable, match="another relay"):
            await http.info()
    assert relay.asked == []


async def test_with_a_proxy_its_certificate_counts(url: str) -> None:
    """The relay's own one is nobody's word, so it is not taken for a proxy's."""
    proxy = ssl.create_default_context()
    async with RelayHttpClient(url, RELAY.peer, ANN, now, proxy=proxy) as http:
        with pytest.raises(RelayUnreachable, match="certificate"):
            await http.info()


@pytest.mark.parametrize("off", [-3600.0, 3600.0])
async def test_a_clock_that_is_off_is_corrected(url: str, relay: StandInRelay, off: float) -> None:
    async with RelayHttpClient(url, RELAY.peer, ANN, lambda: START + off) as http:
        await http.resync(ROOM, None)
        await http.resync(ROOM, None)
    # Told once, asked once for the time, right from then on.
    assert [type(each.message).__name__ for each in relay.asked] == ["RelayInfo", "Resync", "Resync"]


async def test_behind_a_proxy_with_a_path_of_its_own(relay: StandInRelay) -> None:
    """What the proxy puts before the path is not signed, since it takes it away again."""
    inner = RelayHttp(relay, RELAY_IDENTITY, now).app()

    async def proxied(scope: dict[str, object], receive: object, send: object) -> None:
        path = scope["raw_path"]
        assert isinstance(path, bytes)
        bare = path.removeprefix(b"/proxy")
        inside = scope | {"raw_path": bare, "path": bare.decode(), "root_path": ""}
        await inner(inside, receive, send)  # type: ignore[arg-type]

    app = Starlette(routes=[Mount("/proxy", app=proxied)])  # type: ignore[arg-type]
    async with (
        serve_relay(app, PLAIN, RELAY.device) as url,
        RelayHttpClient(f"{url}/proxy/", RELAY.peer, ANN, now) as http,
    ):
        await http.resync(ROOM, None)


async def test_no_relay_there() -> None:
    async def page(request: Request) -> Response:
        return PlainTextResponse("welcome")

    app = Starlette(routes=[Route("/{path:path}", page)])
    async with (
        serve_relay(app, PLAIN, RELAY.device) as url,
        RelayHttpClient(url, RELAY.peer, ANN, now) as http,
    ):
        with pytest.raises(RelayUnreachable, match="not as a relay does"):
            await http.info()
    async with RelayHttpClient(url, RELAY.peer, ANN, now) as http:
        with pytest.raises(RelayUnreachable, match="does not answer"):
            await http.info()
