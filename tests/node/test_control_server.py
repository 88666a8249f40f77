from __future__ import annotations

import stat
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from tests.node.versions import free_port

from linnet.node.control import bind_unix, serve_control
from linnet.node.home import HomeError
from linnet.node.web_server import bind_tcp


async def hello(request: Request) -> Response:
    return PlainTextResponse("hello")


APP = Starlette(routes=[Route("/", hello)])


async def test_the_socket_is_private_and_goes_with_the_server(tmp_path: Path) -> None:
    path = tmp_path / "c.sock"
    async with serve_control(APP, path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        transport = httpx.AsyncHTTPTransport(uds=str(path))
        async with httpx.AsyncClient(transport=transport, base_url="http://node") as http:
            assert (await http.get("/")).text == "hello"
        with pytest.raises(HomeError, match="another node answers"):
            bind_unix(path)
    assert not path.exists()


async def test_over_tcp_only_the_token_opens(tmp_path: Path) -> None:
    port = free_port()
    async with (
        serve_control(APP, tmp_path / "c.sock", port, "secret"),
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as http,
    ):
        good = await http.get("/", headers={"authorization": "Bearer secret"})
        assert good.text == "hello"
        for wrong in (
            {},
            {"authorization": "Bearer"},
            {"authorization": "secret"},
            {"authorization": "Bearer x"},
        ):
            bad = await http.get("/", headers=wrong)
            assert (bad.status_code, bad.json()["error"]["reason"]) == (401, "unauthorized")
            assert "secret" not in bad.text


def test_a_dead_socket_is_replaced_and_nothing_else_is(tmp_path: Path) -> None:
    path = tmp_path / "c.sock"
    bind_unix(path).close()
    assert path.exists()
    bind_unix(path).close()
    path.unlink()
    path.write_text("precious")
    with pytest.raises(HomeError, match="is no socket"):
        bind_unix(path)
    assert path.read_text() == "precious"
    with pytest.raises(HomeError, match="cannot be the control socket"):
        bind_unix(tmp_path / "none" / "c.sock")
    with pytest.raises(HomeError, match="cannot be the control socket"):
        bind_unix(tmp_path / ("x" * 120))


async def test_a_taken_port_is_named_and_leaves_no_socket(tmp_path: Path) -> None:
    port = free_port()
    with (
        bind_tcp("127.0.0.1", port, "it"),
        pytest.raises(HomeError, match=f"control.port: {port} cannot be had"),
    ):
        async with serve_control(APP, tmp_path / "c.sock", port, "secret"):
            pass
    assert not (tmp_path / "c.sock").exists()
