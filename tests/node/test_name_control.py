"""The endpoints of names; by their commands they are called in tests/cli/name, too."""

from __future__ import annotations

import httpx
import pytest
from starlette.applications import Starlette
from tests.node.conftest import NET

from linnet.identity.text import Sort, to_text
from linnet.node.config import NodeConfig
from linnet.node.control import Control
from linnet.node.library import Node
from linnet.node.name_types import PublishNameRequest, RemoveNameRequest, ResolveNameRequest

PLACE = to_text(Sort.TOPIC, b"p" * 32)
ERIN = to_text(Sort.PERSON, b"e" * 32)


def _client(app: Starlette) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://node")


async def test_a_zone_over_the_api() -> None:
    async with Node(config=NodeConfig(net=NET)) as node, _client(Control(node, lambda: None).app()) as http:
        own = to_text(Sort.PERSON, node.author)
        assert (await http.get("/v1/names")).json() == {"zone": own, "names": []}
        said = await http.post("/v1/names/publish", json={"label": "Music", "place": PLACE, "password": "pw"})
        assert (said.json()["label"], said.json()["handed"]) == ("music", [])
        [name] = (await http.get("/v1/names")).json()["names"]
        assert (name["place"], name["contacts"], name["protected"]) == (PLACE, [node.address], True)
        found = await http.post("/v1/names/resolve", json={"address": "music", "password": "pw"})
        assert (found.json()["place"], found.json()["path"][0]["via"]) == (PLACE, "own")
        lost = (await http.post("/v1/names/resolve", json={"address": f"x.{ERIN}"})).json()
        assert (lost["place"], lost["fault"], lost["label"], lost["zone"]) == (None, "unanswered", "x", ERIN)
        removed = await http.post("/v1/names/remove", json={"label": "music", "password": "pw"})
        assert removed.json()["removed"]


async def test_petnames_over_the_api() -> None:
    async with Node(config=NodeConfig(net=NET)) as node, _client(Control(node, lambda: None).app()) as http:
        known = {"petnames": [{"name": "erin", "person": ERIN}]}
        assert (await http.post("/v1/petnames/set", json={"name": "erin", "person": ERIN})).json() == known
        assert (await http.get("/v1/petnames")).json() == known
        other = {"name": "erin", "person": to_text(Sort.PERSON, b"o" * 32)}
        assert (await http.post("/v1/petnames/set", json=other)).json()["error"]["reason"] == "in_use"
        assert (await http.post("/v1/petnames/remove", json={"name": "erin"})).json() == {"petnames": []}
        gone = await http.post("/v1/petnames/remove", json={"name": "erin"})
        assert (gone.status_code, gone.json()["error"]["reason"]) == (409, "unknown")


async def test_what_is_wrong_is_told_and_no_password_is_repeated() -> None:
    async with Node(config=NodeConfig(net=NET)) as node, _client(Control(node, lambda: None).app()) as http:
        for path, body, status in (
            ("publish", {"label": "a b", "place": PLACE, "password": "swordfish"}, 400),
            ("publish", {"label": "x", "place": "lt1", "password": "swordfish"}, 400),
            ("publish", {"label": "x", "place": PLACE, "lifetime": 1e9, "password": "swordfish"}, 413),
            ("resolve", {"address": "a..b", "password": "swordfish"}, 400),
            ("resolve", {"address": ["swordfish"]}, 400),
        ):
            answer = await http.post(f"/v1/names/{path}", json=body)
            assert answer.status_code == status, answer.text
            assert "swordfish" not in answer.text


@pytest.mark.parametrize(
    "request_",
    [
        PublishNameRequest("x", password="swordfish"),
        RemoveNameRequest("x", "swordfish"),
        ResolveNameRequest("x.y", "swordfish"),
    ],
)
def test_requests_do_not_show_passwords(request_: object) -> None:
    assert repr(request_) == f"{type(request_).__name__}(…)"
