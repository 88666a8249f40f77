"""Keys and people over the control API of two and three real nodes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from tests.node.village import LIMIT, member, until

from linnet.identity.text import Sort, to_text
from linnet.node.control import Control
from linnet.node.library import Node


class Api:
    """The control API of one node, in process."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.person = to_text(Sort.PERSON, node.author)
        transport = httpx.ASGITransport(Control(node, lambda: None).app())
        self.http = httpx.AsyncClient(transport=transport, base_url="http://node", timeout=LIMIT)

    async def get(self, path: str, status: int = 200) -> dict[str, Any]:
        return self._read(await self.http.get(f"/v1{path}"), status)

    async def post(self, path: str, status: int = 200, **body: object) -> dict[str, Any]:
        return self._read(await self.http.post(f"/v1{path}", json=body), status)

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
    """A room with both of them in it, both with keys."""
    room = await ada.node.create_room("tea")
    await bea.node.join_room((await room.invite()).text)
    await until(lambda: bea.get(f"/rooms/{room.text}/security"), lambda found: bool(found["holds_keys"]))
    return room.text


async def test_who_holds_keys_and_what_a_thief_could_read(ada: Api, bea: Api) -> None:
    room = await joined(ada, bea)
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
    room = await joined(ada, bea)
    await ada.get(f"/rooms/{room}/security")
    theirs, ours = await ada.get(f"/people/{bea.person}"), await bea.get(f"/people/{ada.person}")
    assert theirs["safety_number"] == ours["safety_number"]
    assert len(theirs["safety_number"].replace(" ", "")) == 60
    assert theirs["safety_words"] == ours["safety_words"]
    assert (theirs["labels"], len(theirs["devices"]), theirs["verified_at"]) == (["bea"], 1, None)
    assert (await ada.post(f"/people/{bea.person}/verified", verified=True))["verified_at"] is not None
    for path in ("members", "state"):
        people = (await ada.get(f"/rooms/{room}/{path}"))["members"]
        assert {each["label"]: each["verified"] for each in people} == {"ada": False, "bea": True}
    assert (await ada.post(f"/people/{bea.person}/verified", verified=False))["verified_at"] is None


async def test_somebody_else_under_a_verified_name_is_told_to_who_reads(ada: Api, bea: Api) -> None:
    room = await joined(ada, bea)
    await ada.post(f"/people/{bea.person}/verified", verified=True)
    async with Node(config=member("Bea")) as eve:
        await eve.join_room((await ada.node.rooms.by_id((await ada.node.room("tea")).id).invite()).text)
        await until(lambda: ada.get(f"/rooms/{room}/members"), lambda found: len(found["members"]) == 3)
        await until(lambda: ada.get(f"/rooms/{room}/security"), lambda found: bool(found["warnings"]))
        read = {"since": "0", "live": "false"}
        url = f"/v1/rooms/{room}/read"
        lines = [(await ada.http.get(url, params=read)).text.splitlines() for _ in range(2)]
    told = [[line for line in each if '"type":"warning"' in line] for each in lines]
    assert [len(each) for each in told] == [1, 0], "it is told once"
    assert '"alarm":"verified_name"' in told[0][0]
    assert to_text(Sort.PERSON, eve.author) in told[0][0]
    (standing,) = (await ada.get(f"/rooms/{room}/security"))["warnings"]
    assert (standing["alarm"], standing["other"]) == ("verified_name", bea.person)


async def test_what_is_wrong_is_told(ada: Api) -> None:
    await ada.get("/people/nobody", 400)
    await ada.post(f"/people/{ada.person}/verified", 400, verified="yes")
    await ada.get(f"/rooms/{to_text(Sort.TOPIC, bytes(32))}/security", 404)
    assert (await ada.get(f"/people/{ada.person}"))["safety_number"] is None
