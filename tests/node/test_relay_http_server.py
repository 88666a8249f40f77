from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from tests.node.standin_relay import RELAY

from linnet.identity.addresses import parse_http
from linnet.net.tls import client_context
from linnet.node.home import HomeError
from linnet.node.ports import KeptPorts
from linnet.node.relay_http import serve_relay
from linnet.node.web_server import WebServer, bind_tcp, serving


async def hello(request: Request) -> Response:
    return PlainTextResponse("hello")


APP = Starlette(routes=[Route("/", hello)])


@pytest.mark.parametrize("address", ["127.0.0.1:0", "https://127.0.0.1:0", "[::1]:0"])
async def test_it_is_served_while_the_block_lasts(address: str) -> None:
    async with (
        serve_relay(APP, parse_http(address), RELAY.device) as url,
        httpx.AsyncClient(base_url=url, verify=client_context(), trust_env=False) as http,
    ):
        assert url.startswith("https://" if address.startswith("https") else "http://")
        response = await http.get("/")
        assert response.text == "hello"
        assert "server" not in response.headers
    async with httpx.AsyncClient(base_url=url, verify=client_context(), trust_env=False) as http:
        with pytest.raises(httpx.ConnectError):
            await http.get("/")


async def test_no_tls_older_than_the_links() -> None:
    old = client_context(ssl.TLSVersion.TLSv1_2)
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    async with (
        serve_relay(APP, parse_http("https://127.0.0.1:0"), RELAY.device) as url,
        httpx.AsyncClient(base_url=url, verify=old, trust_env=False) as http,
    ):
        with pytest.raises(httpx.ConnectError):
            await http.get("/")


@contextlib.asynccontextmanager
async def patient(seconds: float, waiting: int) -> AsyncIterator[tuple[str, int]]:
    """A server that waits so long for requests, and for so many of them."""
    sock = bind_tcp("127.0.0.1", 0, "test")
    server = WebServer(APP, header_seconds=seconds, waiting=waiting, limit_concurrency=64)
    place: tuple[str, int] = sock.getsockname()
    async with serving([(sock, server)], "test"):
        yield place


async def test_who_never_ends_a_request_is_closed_and_who_asks_is_answered_again_and_again() -> None:
    async with patient(0.3, 64) as (host, port):
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n")
        async with httpx.AsyncClient(base_url=f"http://{host}:{port}", trust_env=False) as http:
            for _ in range(3):
                assert (await http.get("/")).text == "hello"
        with contextlib.suppress(ConnectionResetError):
            assert await asyncio.wait_for(reader.read(), 10.0) == b""
        writer.close()


async def test_slow_requests_keep_nobody_out() -> None:
    async with patient(60.0, 8) as (host, port):
        slow = [await asyncio.open_connection(host, port) for _ in range(200)]
        for _, writer in slow:
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow:")
        async with httpx.AsyncClient(base_url=f"http://{host}:{port}", trust_env=False) as http:
            assert (await http.get("/")).text == "hello"
        for _, writer in slow:
            writer.close()


async def test_an_address_that_cannot_be_had_is_named() -> None:
    async with serve_relay(APP, parse_http("127.0.0.1:0"), RELAY.device) as url:
        with pytest.raises(HomeError, match=f"relay.http: {url} cannot be had"):
            async with serve_relay(APP, parse_http(url), RELAY.device):
                pass
    with pytest.raises(HomeError, match="cannot be had"):
        async with serve_relay(APP, parse_http("https://192.0.2.1:1"), RELAY.device):
            pass


async def test_any_port_is_the_same_at_the_next_start_and_another_if_it_is_gone(tmp_path: Path) -> None:
    address = parse_http("https://127.0.0.1:0")

    async def served() -> tuple[str, list[str]]:
        ports = KeptPorts(tmp_path / "ports")
        async with serve_relay(APP, address, RELAY.device, ports) as url:
            return url, ports.moved

    first, _ = await served()
    assert await served() == (first, [])
    with socket.socket() as thief:
        thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        thief.bind(("127.0.0.1", int(first.rpartition(":")[2])))
        thief.listen()
        second, moved = await served()
    assert second != first
    assert first in moved[0]
    assert await served() == (second, [])
