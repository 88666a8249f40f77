"""The endpoints of rooms over two real nodes, and requests that are wrong."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.node.village import LIMIT, member, relay, until

from linnet.identity.text import Sort, to_text
from linnet.node.control import Control
from linnet.node.control_server import ControlServer
from linnet.node.library import Node

STRANGER = to_text(Sort.PERSON, b"s" * 32)


class Api:
    """The control API of one node, in process."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.person = to_text(Sort.PERSON, node.author)
        transport = httpx.ASGITransport(Control(node, lambda: None).app())
        self.http = httpx.AsyncClient(transport=transport, base_url="http://node", timeout=LIMIT)

    async def post(self, path: str, status: int = 200, **body: object) -> dict[str, Any]:
        return self._read(await self.http.post(f"/v1/rooms{path}", json=body), status)

    async def get(self, path: str, status: int = 200, **query: str) -> dict[str, Any]:
        return self._read(await self.http.get(f"/v1/rooms{path}", params=query), status)

    def _read(self, response: httpx.Response, status: int) -> dict[str, Any]:
        found: dict[str, Any] = response.json()
        assert response.status_code == status, found
        return found


@pytest.fixture
async def ada() -> AsyncIterator[Api]:
    async with asyncio.timeout(60), Node(config=member("ada")) as node:
        yield Api(node)


@pytest.fixture
async def bea() -> AsyncIterator[Api]:
    async with asyncio.timeout(60), Node(config=member("bea")) as node:
        yield Api(node)


async def joined(ada: Api, bea: Api) -> str:
    """A room with both of them in it."""
    room = (await ada.post("", name="tea", topic="cake"))["room"]
    invitation = await ada.post(f"/{room}/invite")
    assert (invitation["room"], invitation["name"], invitation["person"]) == (room, "tea", None)
    assert (await bea.post("/join", invitation=invitation["text"]))["room"] == room
    await until(ada.node.rooms.statuses, lambda rooms: bool(rooms[0].online))
    return str(room)


async def test_from_an_invitation_to_the_ledger(ada: Api, bea: Api) -> None:
    room = await joined(ada, bea)
    sent = await ada.post(f"/{room}/send", texts=["one"], bodies=[base64.b64encode(b"\xff").decode()])
    assert (len(sent["ids"]), sent["neighbors"], sent["relays"]) == (2, 1, [])
    await until(
        lambda: ada.get(f"/{room}/ledger", event=sent["ids"][0]),
        lambda ledger: ledger["events"][0]["members"][0]["fate"] == "delivered",
    )
    (event,) = (await ada.get(f"/{room}/ledger", limit="1"))["events"]
    assert [(fate["person"], fate["label"]) for fate in event["members"]] == [(bea.person, "bea")]
    (listed,) = (await bea.get(""))["rooms"]
    assert (listed["name"], listed["membership"], listed["members"]) == ("tea", "join", 2)
    status = (await bea.http.get("/v1/status")).json()
    assert [each["room"] for each in status["rooms"]] == [room]


async def test_what_holds_and_who_is_there(ada: Api, bea: Api) -> None:
    room = await joined(ada, bea)
    people = {each["person"]: each for each in (await ada.get(f"/{room}/members"))["members"]}
    assert (people[ada.person]["level"], people[ada.person]["label"]) == (None, "ada")
    await ada.post(f"/{room}/level", level=50, person=bea.person)
    await ada.post(f"/{room}/level", level=0, kind="mood")
    await ada.post(f"/{room}/state", kind="mood", text="sunny")
    await ada.post(f"/{room}/rule", rule="public")
    await ada.post(f"/{room}/retention", seconds=60)
    state = await ada.get(f"/{room}/state")
    values = {entry["kind"]: entry.get("text") or entry.get("content") for entry in state["entries"]}
    assert values["mood"] == "sunny"
    assert values["join_rules"] == {"rule": "public"}
    assert values["retention"] == {"max_lifetime_ms": 60_000}
    assert state["power"]["users"] == {bea.person: 50}
    assert state["power"]["events"]["mood"] == 0
    await until(lambda: bea.get(f"/{room}/state"), lambda theirs: bool(theirs["digest"] == state["digest"]))


async def test_out_and_back_in(ada: Api, bea: Api) -> None:
    room = await joined(ada, bea)
    await ada.post(f"/{room}/membership", person=bea.person, membership="ban", reason="spam")
    await until(lambda: bea.get(""), lambda found: found["rooms"][0]["membership"] == "ban")
    refused = await bea.post(f"/{room}/send", 403, texts=["but"])
    assert set(refused["error"]) == {"reason", "detail", "hint", "elsewhere"}
    await ada.post(f"/{room}/membership", person=bea.person, membership="leave")
    invitation = await ada.post(f"/{room}/invite", person=bea.person, announce=True, lifetime=60)
    assert invitation["person"] == bea.person
    await bea.post("/join", invitation=invitation["text"])
    said = (await ada.post(f"/{room}/send", texts=["oh"]))["ids"][0]
    await ada.post(f"/{room}/redact", event=said, reason="typo")
    read = await ada.http.get(f"/v1/rooms/{room}/read", params={"since": "0", "live": "false"})
    lines = {line.get("id"): line for line in map(json.loads, read.text.splitlines())}
    assert lines[said]["unreadable"] == "redacted"
    assert "text" not in lines[said]
    assert await bea.post(f"/{room}/leave") == {"done": True}


async def test_pieces_of_an_attachment(ada: Api, bea: Api) -> None:
    room = await joined(ada, bea)
    data = base64.b64encode(b"a piece").decode()
    digest = (await ada.post(f"/{room}/chunks", data=data))["digest"]
    assert (await bea.get(f"/{room}/chunks/{digest}"))["data"] == data
    missing = await bea.get(f"/{room}/chunks/{'00' * 32}", 404, patience="0.2")
    assert missing["error"]["reason"] == "not_held"
    await bea.get(f"/{room}/chunks/xyz", 400)


async def test_a_relay_comes_goes_and_reports(ada: Api) -> None:
    room = (await ada.post("", name="tea"))["room"]
    async with Node(config=relay()) as node:
        await ada.post(f"/{room}/relays", contact=node.address)
        await until(lambda: ada.get(""), lambda found: any(r["up"] for r in found["rooms"][0]["relays"]))
        report = (await Api(node).http.get("/v1/relay")).json()
        assert [each["room"] for each in report["rooms"]] == [room]
        (shown,) = (await ada.get(""))["rooms"][0]["relays"]
        await ada.post(f"/{room}/relays/drop", relay=shown["relay"])
        await until(lambda: ada.get(""), lambda found: not found["rooms"][0]["relays"])
    assert (await ada.http.get("/v1/relay")).status_code == 403


async def test_what_is_read_comes_line_by_line(ada: Api, tmp_path: Path) -> None:
    room = (await ada.post("", name="tea"))["room"]
    await ada.post(f"/{room}/send", texts=["hello"])
    path = tmp_path / "c.sock"
    transport = httpx.AsyncHTTPTransport(uds=str(path))
    async with (
        ControlServer(Control(ada.node, lambda: None).app(), path, None, None),
        httpx.AsyncClient(transport=transport, base_url="http://node", timeout=LIMIT) as http,
    ):
        url = f"/v1/rooms/{room}/read"
        whole = await http.get(url, params={"since": "0", "live": "false", "state": "false"})
        lines = [json.loads(line) for line in whole.text.splitlines()]
        assert [line["type"] for line in lines] == ["subscribed", "event", "caught_up", "ended"]
        assert (lines[1]["text"], lines[1]["label"], lines[1]["topic"]) == ("hello", "ada", room)
        async with http.stream("GET", url, params={"name": "reader", "ack": "manual"}) as response:
            arriving = response.aiter_lines()
            number = json.loads(await anext(arriving))["subscription"]
            await ada.post(f"/{room}/send", texts=["again"])
            came = [json.loads(await anext(arriving)) for _ in range(2)]
            assert [line.get("text", line["type"]) for line in came] == ["caught_up", "again"]
            consumed = await http.post(f"/v1/subscriptions/{number}/consumed", json={"items": 2})
            assert consumed.status_code == 200


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/join", {}, 400),
        ("/join", {"invitation": "li1abc"}, 400),
        ("/join", {"room": "lt1abc", "contacts": ["x"]}, 400),
        ("/join", {"room": "lt1abc", "invitation": "li1abc"}, 400),
        ("/lt1abc/send", {"texts": ["x"]}, 400),
        ("/{other}/send", {"texts": ["x"]}, 404),
        ("/{room}/level", {"level": 1}, 400),
        ("/{room}/level", {"level": 1, "kind": "ban", "person": STRANGER}, 400),
        ("/{room}/state", {"kind": "name"}, 400),
        ("/{room}/state", {"kind": "name", "text": "a", "body": "YQ=="}, 400),
        ("/{room}/invite", {"announce": True}, 400),
        ("/{room}/membership", {"person": "lp1x", "membership": "ban"}, 400),
        ("/{room}/redact", {"event": "le1x"}, 400),
        ("/{room}/relays", {"contact": "nowhere"}, 400),
        ("/{room}/relays/drop", {"relay": "ld1x"}, 400),
        ("/{room}/send", {}, 400),
    ],
)
async def test_wrong_requests_are_told(ada: Api, path: str, body: dict[str, object], status: int) -> None:
    room = (await ada.post(""))["room"]
    other = to_text(Sort.TOPIC, b"o" * 32)
    await ada.post(path.replace("{room}", room).replace("{other}", other), status, **body)
