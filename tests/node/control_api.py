"""The control API of a node, for tests: in process, or at a socket for a client of another thread."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx

from linnet.identity.text import Sort, to_text
from linnet.node.client import ControlClient
from linnet.node.config import NodeConfig
from linnet.node.control import Control, serve_control
from linnet.node.home import init
from linnet.node.library import Node

LIMIT = 30.0


def http_of(node: Node, version: str = "") -> httpx.AsyncClient:
    """The API of a node, in process."""
    transport = httpx.ASGITransport(Control(node, lambda: None).app())
    return httpx.AsyncClient(transport=transport, base_url=f"http://node{version}", timeout=LIMIT)


class Api:
    """The API of one node, in process."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.person = to_text(Sort.PERSON, node.author)
        self.http = http_of(node, "/v1")

    async def post(self, path: str, status: int = 200, **body: object) -> dict[str, Any]:
        return self._read(await self.http.post(path, json=body), status)

    async def get(self, path: str, status: int = 200, **query: str) -> dict[str, Any]:
        return self._read(await self.http.get(path, params=query), status)

    def _read(self, response: httpx.Response, status: int) -> dict[str, Any]:
        found: dict[str, Any] = response.json()
        assert response.status_code == status, found
        return found


@contextlib.asynccontextmanager
async def served(path: Path, config: NodeConfig) -> AsyncIterator[tuple[ControlClient, Node]]:
    """A node with a control API at the socket of its home."""
    init(path, 1_700_000_000.0)
    async with (
        Node(path, config) as node,
        serve_control(Control(node, lambda: None).app(), path / "control.sock"),
    ):
        with ControlClient(path) as client:
            yield client, node
        node.end_subscriptions()
