"""What lies on the disk of a node that runs: not the keys that were used, nor what was taken back."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

from tests.node.village import LIMIT, member, until

from linnet.event.event import Event
from linnet.net.clock import Clock
from linnet.node import home as homes
from linnet.node.library import Node
from linnet.node.rooms import Room

SAID = "the spare key lies under the third stone"


def raw(home: Path) -> bytes:
    """The bytes of the store as a thief with the disk has them."""
    files = [home / name for name in ("events.db", "events.db-wal", "events.db-shm")]
    return b"".join(path.read_bytes() for path in files if path.exists())


def keys(home: Path) -> dict[tuple[str, bytes], bytes]:
    """The state of the room's group as it is kept."""
    with sqlite3.connect(f"file:{home / 'events.db'}?mode=ro", uri=True) as db:
        rows = db.execute("SELECT space, key, value FROM cell WHERE space LIKE 'group.state/%'").fetchall()
    db.close()
    return {(space, key): value for space, key, value in rows}


def replaced(before: dict[tuple[str, bytes], bytes], after: dict[tuple[str, bytes], bytes]) -> list[bytes]:
    """What stood there, and does not any more: 16 bytes out of each key that was used."""
    found = []
    for old in before.values():
        for at in range(len(old) - 16):
            piece = old[at : at + 16]
            if len(set(piece)) > 8 and not any(piece in value for value in after.values()):
                found.append(piece)
    return found


async def gone(home: Path, pieces: list[bytes]) -> None:
    async def left() -> int:
        held = await asyncio.to_thread(raw, home)
        return sum(piece in held for piece in pieces)

    await until(left, lambda count: count == 0)


async def heard(room: Room, body: bytes) -> Event:
    async with asyncio.timeout(LIMIT), room.read(since=0) as reading:
        async for event in reading:
            if event.body == body:
                return event
    raise AssertionError


async def test_used_keys_and_what_was_taken_back_are_gone_while_it_runs_and_after(
    tmp_path: Path,
) -> None:
    for name in ("ada", "bea"):
        homes.init(tmp_path / name, Clock().now(), member(name))
    async with (
        asyncio.timeout(60),
        Node(tmp_path / "ada") as ada,
        Node(tmp_path / "bea") as bea,
    ):
        room = await ada.create_room("tea")
        joined = await bea.join_room((await room.invite()).text)
        await until(ada.rooms.statuses, lambda rooms: bool(rooms[0].online))
        await room.send("first")
        await heard(joined, b"first")
        await joined.send("and back")
        await heard(room, b"and back")
        before = {name: keys(tmp_path / name) for name in ("ada", "bea")}
        sent = await room.send(SAID)
        await heard(joined, SAID.encode())
        for name in ("ada", "bea"):
            pieces = replaced(before[name], keys(tmp_path / name))
            assert pieces, "no key was used: this shows nothing"
            await gone(tmp_path / name, pieces)
            assert SAID.encode() in raw(tmp_path / name), "it is kept to be read"
        await room.redact(sent.ids[0])
        for name in ("ada", "bea"):
            await gone(tmp_path / name, [SAID.encode()])
    for name in ("ada", "bea"):
        assert SAID.encode() not in raw(tmp_path / name)
        assert not any(
            piece in raw(tmp_path / name) for piece in replaced(before[name], keys(tmp_path / name))
        )
