"""The endpoints of names; by their commands they are called in tests/cli/name, too."""

from __future__ import annotations

import pytest
from tests.node.conftest import NET
from tests.node.control_api import http_of

from linnet.api.name_commands import LookUpAddress, PublishLabel, WithdrawLabel
from linnet.identity.text import Sort, to_text
from linnet.node.config import NodeConfig
from linnet.node.library import Node

PLACE = to_text(Sort.TOPIC, b"p" * 32)
ERIN = to_text(Sort.PERSON, b"e" * 32)


async def test_a_zone_over_the_api() -> None:
    async with Node(config=NodeConfig(net=NET)) as node, http_of(node) as http:
        own = to_text(Sort.PERSON, node.author)
        assert (await http.get("/v1/names")).json() == {"zone": own, "names": []}
        said = await http.post("/v1/names/publish", json={"label": "Music", "place": PLACE, "password": "pw"})
        assert (said.json()["label"], said.json()["handed"]) == ("music", [])
        [name] = (await http.get("/v1/names")).json()["names"]
        assert (name["place"], name["contacts"], name["protected"]) == (PLACE, [node.address], True)
        found = await http.post("/v1/names/resolve", json={"address": "music", "password": "pw"})
        assert (found.json()["place"], found.json()["path"][0]["via"]) == (PLACE, "own")
        lost = (await http.post("/v1/names/resolve", json={"address": f"x.{ERIN}"})).json()
        assert (lost["type"], lost["fault"], lost["label"]) == ("not_resolved", "unanswered", "x")
        assert lost["zone"] == ERIN
        removed = await http.post("/v1/names/remove", json={"label": "music", "password": "pw"})
        assert removed.json()["removed"]


async def test_petnames_over_the_api() -> None:
    async with Node(config=NodeConfig(net=NET)) as node, http_of(node) as http:
        known = {"petnames": [{"name": "erin", "person": ERIN}]}
        assert (await http.post("/v1/petnames/set", json={"name": "erin", "person": ERIN})).json() == known
        assert (await http.get("/v1/petnames")).json() == known
        other = {"name": "erin", "person": to_text(Sort.PERSON, b"o" * 32)}
        assert (await http.post("/v1/petnames/set", json=other)).json()["error"]["reason"] == "in_use"
        assert (await http.post("/v1/petnames/remove", json={"name": "erin"})).json() == {"petnames": []}
        gone = await http.post("/v1/petnames/remove", json={"name": "erin"})
        assert (gone.status_code, gone.json()["error"]["reason"]) == (409, "unknown")


async def test_what_is_wrong_is_told_and_no_password_is_repeated() -> None:
    async with Node(config=NodeConfig(net=NET)) as node, http_of(node) as http:
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
        PublishLabel("x", password="swordfish"),
        WithdrawLabel("x", "swordfish"),
        LookUpAddress("x.y", "swordfish"),
    ],
)
def test_requests_do_not_show_passwords(request_: object) -> None:
    assert repr(request_) == f"{type(request_).__name__}(…)"
