"""The endpoints of rooms, their keys and people over two real nodes, and requests that are wrong."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from tests.node.control_api import LIMIT, Api
from tests.node.village import member, relay, until

from linnet.core.ids import PeerId, TopicId
from linnet.identity.text import Sort, from_text, to_text
from linnet.node.control import Control, serve_control
from linnet.node.library import Node
from linnet.rooms.stamps import StampPrice, find_stamp

STRANGER = to_text(Sort.PERSON, b"s" * 32)


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
    room = (await ada.post("/rooms", name="tea", topic="cake"))["room"]
    invitation = await ada.post(f"/rooms/{room}/invite")
    assert (invitation["room"], invitation["name"], invitation["person"]) == (room, "tea", None)
    assert (await bea.post("/rooms/join", invitation=invitation["text"]))["room"] == room
    await until(ada.node.rooms.statuses, lambda rooms: bool(rooms[0].online))
    return str(room)


async def test_from_an_invitation_to_the_ledger(ada: Api, bea: Api) -> None:
    room = await joined(ada, bea)
    sent = await ada.post(f"/rooms/{room}/send", texts=["one"], bodies=[base64.b64encode(b"\xff").decode()])
    assert (len(sent["ids"]), sent["neighbors"], sent["relays"]) == (2, 1, [])
    await until(
        lambda: ada.get(f"/rooms/{room}/ledger", event=sent["ids"][0]),
        lambda ledger: ledger["events"][0]["members"][0]["fate"] == "delivered",
    )
    (event,) = (await ada.get(f"/rooms/{room}/ledger", limit="1"))["events"]
    assert [fate["person"] for fate in event["members"]] == [bea.person]
    (listed,) = (await bea.get("/rooms"))["rooms"]
    assert (listed["name"], listed["membership"], listed["members"]) == ("tea", "join", 2)
    status = (await bea.http.get("/status")).json()
    assert [each["room"] for each in status["rooms"]] == [room]


async def test_what_holds_and_who_is_there(ada: Api, bea: Api) -> None:
    room = await joined(ada, bea)
    people = {each["person"]: each for each in (await ada.get(f"/rooms/{room}/members"))["members"]}
    assert (people[ada.person]["level"], people[ada.person]["label"]) == (None, "ada")
    await ada.post(f"/rooms/{room}/level", level=50, person=bea.person)
    await ada.post(f"/rooms/{room}/level", level=0, kind="mood")
    await ada.post(f"/rooms/{room}/state", kind="mood", text="sunny")
    await ada.post(f"/rooms/{room}/rule", rule="public")
    await ada.post(f"/rooms/{room}/retention", seconds=60)
    state = await ada.get(f"/rooms/{room}/state")
    said = {entry["kind"]: entry["event"] for entry in state["entries"]}
    values = {kind: event.get("text") or event.get("content") for kind, event in said.items()}
    assert values["mood"] == "sunny"
    assert values["join_rules"] == {"rule": "public"}
    assert values["retention"] == {"max_lifetime_ms": 60_000}
    assert state["power"]["users"] == {bea.person: 50}
    assert state["power"]["events"]["mood"] == 0
    await until(
        lambda: bea.get(f"/rooms/{room}/state"), lambda theirs: bool(theirs["digest"] == state["digest"])
    )


async def test_out_and_back_in(ada: Api, bea: Api) -> None:
    room = await joined(ada, bea)
    await ada.post(f"/rooms/{room}/membership", person=bea.person, membership="ban", reason="spam")
    await until(lambda: bea.get("/rooms"), lambda found: found["rooms"][0]["membership"] == "ban")
    refused = await bea.post(f"/rooms/{room}/send", 403, texts=["but"])
    assert set(refused["error"]) == {"reason", "detail", "hint"}
    await ada.post(f"/rooms/{room}/membership", person=bea.person, membership="leave")
    invitation = await ada.post(f"/rooms/{room}/invite", person=bea.person, announce=True, lifetime=60)
    assert invitation["person"] == bea.person
    await bea.post("/rooms/join", invitation=invitation["text"])
    said = (await ada.post(f"/rooms/{room}/send", texts=["oh"]))["ids"][0]
    await ada.post(f"/rooms/{room}/redact", event=said, reason="typo")
    read = await ada.http.get(f"/rooms/{room}/read", params={"since": "0", "live": "false"})
    lines = {line.get("id"): line for line in map(json.loads, read.text.splitlines())}
    assert lines[said]["unreadable"] == "redacted"
    assert "text" not in lines[said]
    left = await bea.post(f"/rooms/{room}/leave")
    assert (left["room"], left["members"], left["neighbors"]) == (room, 1, 1)


async def test_pieces_of_an_attachment(ada: Api, bea: Api) -> None:
    room = await joined(ada, bea)
    data, digest = base64.b64encode(b"a piece").decode(), hashlib.sha256(b"a piece").hexdigest()
    assert await ada.post(f"/rooms/{room}/chunks", data=data, digest=digest) == {"done": True}
    assert (await bea.get(f"/rooms/{room}/chunks/{digest}"))["data"] == data
    missing = await bea.get(f"/rooms/{room}/chunks/{'00' * 32}", 404, patience="0.2")
    assert missing["error"]["reason"] == "not_held"
    await bea.get(f"/rooms/{room}/chunks/xyz", 400)


async def test_a_relay_comes_goes_and_reports(ada: Api) -> None:
    room = (await ada.post("/rooms", name="tea"))["room"]
    async with Node(config=relay()) as node:
        declined = await ada.http.post(f"/rooms/{room}/relays", json={"contact": node.address})
        assert (declined.status_code, declined.json()["error"]["reason"]) == (409, "unpaid")
        key = node.address.partition("@")[0]
        asked = await ada.get(f"/rooms/{room}/relays/{key}/price")
        price = StampPrice(**asked["price"])
        assert (price.bits, asked["most"]) == (4, 24)
        ids = (PeerId(from_text(Sort.DEVICE, each)) for each in (key, asked["device"]))
        relay_id, device = ids
        stamp = find_stamp(price, relay_id, TopicId(from_text(Sort.TOPIC, room)), device)
        assert stamp is not None
        paid = {"window": stamp.window, "nonce": stamp.nonce}
        await ada.post(f"/rooms/{room}/relays", contact=node.address, stamp=paid)
        await until(
            lambda: ada.get("/rooms"), lambda found: any(r["up"] for r in found["rooms"][0]["relays"])
        )
        report = (await Api(node).http.get("/relay")).json()
        assert [each["room"] for each in report["rooms"]] == [room]
        (shown,) = (await ada.get("/rooms"))["rooms"][0]["relays"]
        await ada.post(f"/rooms/{room}/relays/drop", relay=shown["relay"])
        await until(lambda: ada.get("/rooms"), lambda found: not found["rooms"][0]["relays"])
    assert (await ada.http.get("/relay")).status_code == 403


async def test_what_is_read_comes_line_by_line(ada: Api, tmp_path: Path) -> None:
    room = (await ada.post("/rooms", name="tea"))["room"]
    await ada.post(f"/rooms/{room}/send", texts=["hello"])
    path = tmp_path / "c.sock"
    transport = httpx.AsyncHTTPTransport(uds=str(path))
    async with (
        serve_control(Control(ada.node, lambda: None).app(), path),
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
            await ada.post(f"/rooms/{room}/send", texts=["again"])
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
    room = (await ada.post("/rooms"))["room"]
    other = to_text(Sort.TOPIC, b"o" * 32)
    path = "/rooms" + path
    await ada.post(path.replace("{room}", room).replace("{other}", other), status, **body)


async def keyed(ada: Api, bea: Api) -> str:
    """A room with both of them in it, both with keys."""
    room = await ada.node.create_room("tea")
    await bea.node.join_room((await room.invite()).text)
    await until(lambda: bea.get(f"/rooms/{room.text}/security"), lambda found: bool(found["holds_keys"]))
    return room.text


async def test_who_holds_keys_and_what_a_thief_could_read(ada: Api, bea: Api) -> None:
    room = await keyed(ada, bea)
    await bea.post(f"/rooms/{room}/send", texts=["one", "two"])
    found = await bea.get(f"/rooms/{room}/security")
    assert (found["encrypted"], found["newcomers"], found["heal_pending"]) == (True, "from_now", False)
    devices = {each["label"]: each for each in found["devices"]}
    assert {label: each["standing"] for label, each in devices.items()} == {"ada": "holds", "bea": "holds"}
    assert (devices["bea"]["this"], devices["ada"]["this"]) == (True, False)
    assert 0 <= devices["ada"]["key_age"] < 60
    assert found["theft"]["messages"] == 2
    assert 0 < found["renewal_in"] <= 7 * 86_400
    members = (await ada.get(f"/rooms/{room}/members"))["members"]
    assert all(len(each["key_devices"]) == 1 for each in members)


async def test_a_public_room_says_so(ada: Api) -> None:
    room = (await ada.post("/rooms", name="square", rule="public"))["room"]
    found = await ada.get(f"/rooms/{room}/security")
    assert (found["encrypted"], found["devices"], found["theft"]) == (False, [], None)


async def test_both_see_one_number_and_note_that_they_compared(ada: Api, bea: Api) -> None:
    room = await keyed(ada, bea)
    await ada.get(f"/rooms/{room}/security")
    theirs, ours = await ada.get(f"/people/{bea.person}"), await bea.get(f"/people/{ada.person}")
    assert theirs["safety_number"] == ours["safety_number"]
    assert len(theirs["safety_number"].replace(" ", "")) == 60
    assert theirs["safety_words"] == ours["safety_words"]
    assert (theirs["labels"], len(theirs["devices"]), theirs["verified_at"]) == (["bea"], 1, None)
    assert (await ada.post(f"/people/{bea.person}/verified", verified=True))["verified_at"] is not None
    people = (await ada.get(f"/rooms/{room}/members"))["members"]
    assert {each["label"]: each["verified"] for each in people} == {"ada": False, "bea": True}
    assert (await ada.post(f"/people/{bea.person}/verified", verified=False))["verified_at"] is None


async def test_somebody_else_under_a_verified_name_is_told_to_who_reads(ada: Api, bea: Api) -> None:
    room = await keyed(ada, bea)
    await ada.post(f"/people/{bea.person}/verified", verified=True)
    async with Node(config=member("Bea")) as eve:
        await eve.join_room((await ada.node.rooms.by_id((await ada.node.room("tea")).id).invite()).text)
        await until(lambda: ada.get(f"/rooms/{room}/members"), lambda found: len(found["members"]) == 3)
        await until(lambda: ada.get(f"/rooms/{room}/security"), lambda found: bool(found["warnings"]))
        read = {"since": "0", "live": "false"}
        url = f"/rooms/{room}/read"
        lines = [(await ada.http.get(url, params=read)).text.splitlines() for _ in range(2)]
    told = [[line for line in each if '"type":"warning"' in line] for each in lines]
    assert [len(each) for each in told] == [1, 0], "it is told once"
    assert '"alarm":"verified_name"' in told[0][0]
    assert to_text(Sort.PERSON, eve.author) in told[0][0]
    (standing,) = (await ada.get(f"/rooms/{room}/security"))["warnings"]
    assert (standing["alarm"], standing["other"]) == ("verified_name", bea.person)


async def test_wrong_questions_about_keys_are_told(ada: Api) -> None:
    await ada.get("/people/nobody", 400)
    await ada.post(f"/people/{ada.person}/verified", 400, verified="yes")
    await ada.get(f"/rooms/{to_text(Sort.TOPIC, bytes(32))}/security", 404)
    assert (await ada.get(f"/people/{ada.person}"))["safety_number"] is None
