"""A look through the store of a home: told in full, and noted for the node where it may be."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from linnet.api.node_commands import Check
from linnet.core.errors import StoreError
from linnet.net.clock import Clock
from linnet.node.config import NodeConfig
from linnet.node.doctor import home_checks, quick_look, store_checks
from linnet.node.health import NodeFacts, node_checks
from linnet.node.home import Home, held, init
from linnet.node.library import Node

SAID = [f"event {n}" for n in range(20)]


@pytest.fixture
async def home(tmp_path: Path) -> Home:
    home = init(tmp_path / "home", Clock().now()).home
    async with Node(home.path) as node:
        for text in SAID:
            await node.publish("news", text)
    return home


def spoil(home: Home, *positions: int) -> None:
    with closing(sqlite3.connect(home.store)) as db, db:
        for position in positions:
            db.execute("UPDATE unit SET raw = x'00' WHERE position = ?", (position,))


async def test_a_sound_store(home: Home) -> None:
    seen: list[tuple[int, int]] = []
    (check,) = store_checks(home.path, lambda done, total: seen.append((done, total)))
    assert check.ok
    assert re.fullmatch(r"20 units and \d+ values were read, all are sound", check.detail)
    assert seen == [(20, 20)]


async def test_what_is_damaged_is_noted_and_left_out_by_the_node(home: Home) -> None:
    spoil(home, 3, 4)
    (check,) = store_checks(home.path)
    assert not check.ok
    assert check.detail.startswith("2 of 20 units are damaged: 2 of ")
    assert "noted" in check.advice
    async with Node(home.path) as node:
        await node.publish("news", "on")
        assert [damage.first for damage in node.store.log.left_out] == []
        status = await node.status()
        assert status.peer == node.peer


async def test_beside_a_running_node_nothing_is_written(home: Home) -> None:
    spoil(home, 3)
    with held(home):
        (check,) = store_checks(home.path)
    assert not check.ok
    assert "stop the node" in check.advice
    with closing(sqlite3.connect(home.store)) as db:
        assert db.execute("SELECT count(*) FROM cell WHERE space = 'damaged'").fetchone() == (0,)


async def test_a_file_that_is_broken_is_told(home: Home) -> None:
    data = bytearray(home.store.read_bytes())
    data[100:140] = bytes(40)
    home.store.write_bytes(data)
    assert any(not check.ok and check.advice for check in store_checks(home.path))


async def test_units_of_no_chain_are_not_called_sound(home: Home) -> None:
    with closing(sqlite3.connect(home.store)) as db, db:
        db.execute("UPDATE unit SET chain = 77")
    (check,) = store_checks(home.path)
    assert not check.ok
    assert check.detail == f"{home.store} is damaged: 20 of 20 units belong to no chain"
    assert "put back a copy" in check.advice


async def test_what_a_running_node_found_damaged_is_named_by_doctor(home: Home) -> None:
    spoil(home, 3, 4)
    async with Node(home.path) as node:
        read = [item async for item in node.history("news")]
        assert read
        told = node_checks(NodeFacts(await node.status(), NodeConfig(), 0.0, damaged=node.store.damaged))
        (check,) = (each for each in told if each.name == "stored events")
    assert not check.ok
    assert check.detail.startswith("2 units of the store are damaged: 2 of ")
    assert "linnet doctor --store" in check.advice


async def test_a_small_store_is_read_whole_by_plain_doctor(home: Home) -> None:
    def check() -> Check:
        (found,) = (each for each in home_checks(home.path, Clock().now()) if each.name == "stored events")
        return found

    assert check().ok
    assert re.search(r"20 units and \d+ values were read, all are sound$", check().detail)
    spoil(home, 3)
    assert not check().ok
    assert "1 of 20 units are damaged" in check().detail
    assert "linnet doctor --store" in check().advice


async def test_a_large_store_is_not_read_by_plain_doctor(home: Home) -> None:
    spoil(home, 3)
    size = home.store.stat().st_size
    assert "linnet doctor --store reads all of them" in quick_look(home.store, size - 1)
    with pytest.raises(StoreError, match="1 of 20 units are damaged"):
        quick_look(home.store, size)
