from __future__ import annotations

import ssl

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from linnet.net.tls import client_context
from linnet.node.addresses import parse_http
from linnet.node.home import HomeError
from linnet.node.relay_http_server import RelayHttpServer
from linnet.testing.standin_relay import RELAY


async def hello(request: Request) -> Response:
    return PlainTextResponse("hello")


APP = Starlette(routes=[Route("/", hello)])


@pytest.mark.parametrize("address", ["127.0.0.1:0", "https://127.0.0.1:0", "[::1]:0"])
async def test_it_is_served_while_the_block_lasts(address: str) -> None:
    async with (
        RelayHttpServer(APP, parse_http(address), RELAY.device) as server,
        httpx.AsyncClient(base_url=server.url, verify=client_context(), trust_env=False) as http,
    ):
        assert server.url.startswith("https://" if address.startswith("https") else "http://")
        response = await http.get("/")
        assert response.text == "hello"
        assert "server" not in response.headers
    async with httpx.AsyncClient(base_url=server.url, verify=client_context(), trust_env=False) as http:
        with pytest.raises(httpx.ConnectError):
            await http.get("/")


async def test_no_tls_older_than_the_links() -> None:
    old = client_context(ssl.TLSVersion.TLSv1_2)
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    async with (
        RelayHttpServer(APP, parse_http("https://127.0.0.1:0"), RELAY.device) as server,
        httpx.AsyncClient(base_url=server.url, verify=old, trust_env=False) as http,
    ):
        with pytest.raises(httpx.ConnectError):
            await http.get("/")


async def test_an_address_that_cannot_be_had_is_named() -> None:
    async with RelayHttpServer(APP, parse_http("127.0.0.1:0"), RELAY.device) as server:
        with pytest.raises(HomeError, match=f"relay.http: {server.url} cannot be had"):
            async with RelayHttpServer(APP, parse_http(server.url), RELAY.device):
                pass
    with pytest.raises(HomeError, match="cannot be had"):
        async with RelayHttpServer(APP, parse_http("https://192.0.2.1:1"), RELAY.device):
            pass
