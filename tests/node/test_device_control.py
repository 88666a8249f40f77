"""The endpoints of our own devices over a real node."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from tests.node.control_api import http_of
from tests.node.village import member

from linnet.core.ids import DeviceId
from linnet.identity.cards import revoke
from linnet.identity.keys import SigningKey
from linnet.identity.text import Sort, to_text
from linnet.net.clock import Clock
from linnet.node.home import init
from linnet.node.library import Node

PERSON = SigningKey(b"p" * 32)
LOST = DeviceId(b"lost one")


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    async with Node(init(tmp_path / "home", Clock().now(), member("laptop"), PERSON).home.path) as opened:
        yield opened


@pytest.fixture
async def http(node: Node) -> AsyncIterator[httpx.AsyncClient]:
    async with http_of(node, "/v1") as client:
        yield client


def word(device: DeviceId = LOST, person: SigningKey = PERSON) -> dict[str, object]:
    said = revoke(person, device, 7)
    return {"device": device.hex(), "at": said.at, "signature": base64.b64encode(said.sig).decode()}


async def test_revoking_is_told_room_by_room_and_listed(node: Node, http: httpx.AsyncClient) -> None:
    room = await node.create_room("tea")
    found = (await http.get("/devices")).json()
    (this,) = found["devices"]
    assert found["person"] == to_text(Sort.PERSON, PERSON.public)
    assert found["rooms"] == [room.text]
    assert (this["label"], this["this"], this["online"], this["revoked"]) == ("laptop", True, True, False)
    assert this["device"] == to_text(Sort.DEVICE, node.peer)
    reply = (await http.post("/devices/revoke", json=word())).json()
    (outcome,) = reply["rooms"]
    assert (reply["device"], outcome["name"], outcome["outcome"]) == (LOST.hex(), "tea", "revoked")
    assert outcome["event"].startswith("le1")
    assert (outcome["neighbors"], outcome["relays"], outcome["reason"]) == (0, [], None)
    (again,) = (await http.post("/devices/revoke", json=word())).json()["rooms"]
    assert (again["outcome"], again["event"]) == ("already", None)
    _, lost = (await http.get("/devices")).json()["devices"]
    assert (lost["id"], lost["device"], lost["not_after"]) == (LOST.hex(), None, None)
    assert (lost["revoked"], lost["revoked_in"]) == (True, [room.text])


@pytest.mark.parametrize(
    ("wrong", "status", "reason"),
    [
        (word(person=SigningKey(b"x" * 32)), 409, "bad_signature"),
        (word() | {"device": "zz"}, 400, "bad_request"),
        (word() | {"device": "00" * 8}, 409, "bad_signature"),
        (word() | {"at": -1}, 400, "bad_request"),
        (word() | {"signature": ""}, 400, "bad_request"),
        ({}, 400, "bad_request"),
    ],
)
async def test_what_the_person_has_not_signed_changes_nothing(
    http: httpx.AsyncClient, wrong: dict[str, object], status: int, reason: str
) -> None:
    answer = await http.post("/devices/revoke", json=wrong)
    assert (answer.status_code, answer.json()["error"]["reason"]) == (status, reason)
    assert len((await http.get("/devices")).json()["devices"]) == 1


async def test_a_device_does_not_revoke_itself(node: Node, http: httpx.AsyncClient) -> None:
    answer = await http.post("/devices/revoke", json=word(node.identity.card.device))
    assert answer.status_code == 403
    assert "revoke it from another" in answer.json()["error"]["detail"]
