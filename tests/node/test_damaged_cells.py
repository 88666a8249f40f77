"""Values that a disk gives back altered: never shown as somebody's words, nor acted on in silence."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.node.village import LIMIT, member, until

from linnet.core.errors import StoreError
from linnet.core.reasons import Reason
from linnet.delivery.items import Unreadable
from linnet.event.event import Event
from linnet.net.clock import Clock
from linnet.node import home as homes
from linnet.node.config import NodeConfig
from linnet.node.doctor import home_checks, store_checks
from linnet.node.health import NodeFacts, node_checks
from linnet.node.library import Node
from linnet.node.rooms import Room
from linnet.rooms.event_types import Newcomers
from linnet.store.sqlite import SqliteStore

SAID = b"meet me at the third bridge"
FALSE = b"meet me at the first bridge"
PEER = b"p" * 32


def alter(home: Path, space: str, before: bytes, after: bytes) -> None:
    """Other bytes in one value of a space, as a bad disk leaves them: what SQLite knows of it stays right."""
    assert len(before) == len(after)
    with closing(sqlite3.connect(home / "events.db")) as db, db:
        rows = db.execute("SELECT space, key, value FROM cell WHERE space LIKE ?", (f"{space}%",)).fetchall()
        (row,) = (row for row in rows if before in row[2])
        db.execute(
            "UPDATE cell SET value = ? WHERE space = ? AND key = ?",
            (row[2].replace(before, after), row[0], row[1]),
        )


async def history(room: Room) -> list[Event | Unreadable]:
    async with asyncio.timeout(LIMIT), room.read(since=0, live=False, state=False) as reading:
        return [item async for item in reading.items() if isinstance(item, Event | Unreadable)]


async def heard(room: Room, body: bytes) -> None:
    async with asyncio.timeout(LIMIT), room.read(since=0) as reading:
        async for event in reading:
            if event.body == body:
                return


@pytest.mark.parametrize("newcomers", Newcomers)
async def test_altered_text_of_an_encrypted_room_is_never_shown(tmp_path: Path, newcomers: Newcomers) -> None:
    for name in ("ada", "bea"):
        homes.init(tmp_path / name, Clock().now(), member(name))
    async with asyncio.timeout(60), Node(tmp_path / "ada") as ada, Node(tmp_path / "bea") as bea:
        room = await ada.create_room("tea", newcomers=newcomers)
        joined = await bea.join_room((await room.invite()).text)
        await until(ada.rooms.statuses, lambda rooms: bool(rooms[0].online))
        await room.send(SAID)
        await heard(joined, SAID)
    alter(tmp_path / "bea", "group.text/", SAID, FALSE)
    async with asyncio.timeout(60), Node(tmp_path / "bea") as bea:
        (item,) = await history(bea.rooms.by_id(joined.id))
    if newcomers is Newcomers.SHARED:  # its key is kept, for those who come later
        assert isinstance(item, Event)
        assert item.body == SAID
    else:
        assert isinstance(item, Unreadable)
        assert (item.reason, item.event.body) == (Reason.DAMAGED, b"")


async def test_what_a_node_cannot_do_without_is_refused_by_name_and_works_again_with_a_copy(
    tmp_path: Path,
) -> None:
    home = homes.init(tmp_path / "ada", Clock().now(), member("ada")).home
    async with asyncio.timeout(60), Node(home.path) as ada:
        room = await ada.create_room("tea")
        await room.send(SAID)
    (sound,) = store_checks(home.path)
    assert sound.ok
    copy = home.store.read_bytes()
    with closing(sqlite3.connect(home.store)) as db, db:
        db.execute("UPDATE cell SET value = x'00' || substr(value, 2) WHERE space LIKE 'group.state/%'")
        (count,) = db.execute("SELECT count(*) FROM cell WHERE space LIKE 'group.state/%'").fetchone()
    with pytest.raises(StoreError, match=rf"\({count} of keys of encrypted rooms\)") as raised:
        async with Node(home.path):
            pass
    assert str(home.store) in str(raised.value)
    assert "linnet doctor --store" in str(raised.value)
    assert "put back a copy" in str(raised.value)
    (check,) = store_checks(home.path)
    assert not check.ok
    assert f"{count} of keys of encrypted rooms" in check.detail
    assert check.advice.startswith("put back a copy")
    (quick,) = (each for each in home_checks(home.path, Clock().now()) if each.name == "store")
    assert not quick.ok
    assert f"{count} of keys of encrypted rooms" in quick.detail
    home.store.write_bytes(copy)
    async with asyncio.timeout(60), Node(home.path) as ada:
        shown = await history(ada.rooms.by_id(room.id))
    assert [item.body for item in shown if isinstance(item, Event)] == [SAID]


async def test_what_a_node_can_do_without_is_forgotten_and_told(tmp_path: Path) -> None:
    home = homes.init(tmp_path / "ada", Clock().now(), member("ada")).home
    async with asyncio.timeout(60), Node(home.path):
        pass
    with closing(SqliteStore(home.store)) as store:
        store.cells.put("dialed", PEER, b"once")
        store.commit(lambda: None)
    with closing(sqlite3.connect(home.store)) as db, db:
        assert db.execute("UPDATE cell SET value = x'00' WHERE space = 'dialed'").rowcount == 1
    (check,) = store_checks(home.path)
    assert (check.ok, "1 of attempts to reach peers" in check.detail) == (False, True)
    assert "linnet up" in check.advice
    async with asyncio.timeout(60), Node(home.path) as ada:
        assert (await ada.status()).peer == ada.peer
    (check,) = store_checks(home.path)
    assert check.ok


async def test_what_a_running_node_found_is_named_by_doctor(tmp_path: Path) -> None:
    home = homes.init(tmp_path / "ada", Clock().now(), member("ada")).home
    async with asyncio.timeout(60), Node(home.path) as ada:
        room = await ada.create_room("tea")
        await room.send(SAID)
    alter(home.path, "group.text/", SAID, FALSE)
    async with asyncio.timeout(60), Node(home.path) as ada:
        (item,) = await history(ada.rooms.by_id(room.id))
        assert isinstance(item, Unreadable)
        found = ada.store.damaged_cells
        told = node_checks(NodeFacts(await ada.status(), NodeConfig(), 0.0, None, damaged_cells=found))
        (check,) = (each for each in told if each.name == "stored values")
    assert not check.ok
    assert check.detail == "1 value of the store is damaged: 1 of texts of encrypted rooms"
    assert "linnet room share" in check.advice
