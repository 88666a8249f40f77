from __future__ import annotations

import asyncio
import json
import re
import socket
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from tests.cli.shell import Linnet
from tests.cli.village import up

from linnet import Node
from linnet.store.sqlite import SqliteStore


def test_a_running_node_is_well(running: Linnet) -> None:
    said = running.ok("doctor")
    for name in ("home", "clock", "configuration", "device key", "card", "store", "listening", "reachable"):
        assert f"ok    {name}: " in said
    assert said.endswith("all is well\n")


def test_a_home_without_a_node_is_checked_by_itself(shell: Linnet) -> None:
    shell.ok("init")
    said = shell.ok("doctor")
    assert "node: does not run at the moment" in said


def test_the_way_to_a_peer_is_walked(running: Linnet, shell: Linnet) -> None:
    shell.ok("init")
    said = shell.ok("doctor", running.address)
    assert said.count("\nok    tls://127.0.0.1:") == 7


def test_the_first_step_that_fails_is_named_with_advice(shell: Linnet) -> None:
    device = shell.json("init")["device"]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    result = shell.run("doctor", f"{device}@127.0.0.1:{port}")
    assert result.exit_code == 1
    assert f"FAIL  tls://127.0.0.1:{port} tcp" in result.stdout
    assert f"first that fails: tls://127.0.0.1:{port} tcp; Nothing listens" in result.stdout


def test_what_is_wrong_with_a_home_is_found(shell: Linnet) -> None:
    assert "make one: linnet init" in shell.run("doctor").stdout
    shell.ok("init")
    (shell.home / "device.key").chmod(0o644)
    result = shell.run("doctor", "--json")
    assert result.exit_code == 1
    assert '"first":"device key"' in result.stdout


def test_a_wrong_address_is_wrong_usage(shell: Linnet) -> None:
    assert "write KEY@HOST:PORT" in shell.fails(2, "doctor", "192.0.2.7:7700")


def test_a_room_and_a_place_whose_others_are_gone_are_named(tmp_path: Path) -> None:
    with up(tmp_path / "ada") as ada:
        with up(tmp_path / "bea") as bea:
            bea.ok("room", "create", "tea")
            ada.ok("room", "join", bea.ok("room", "invite", "tea").strip())
            place = bea.json("place", "host", "salon")
            ada.ok("place", "enter", place["address"])
            said = ada.ok("doctor")
            assert "ok    rooms reached: 1 room, " in said
            assert said.endswith("all is well\n")
        end = time.monotonic() + 60.0
        while time.monotonic() < end:
            found = ada.run("doctor", "--json")
            names = {each["name"] for each in json.loads(found.stdout)["checks"] if not each["ok"]}
            if {"room tea", "place salon"} <= names:
                break
        assert names == {"room tea", "place salon"}
        assert found.exit_code == 1
        said = ada.run("doctor").stdout
        assert "all is well" not in said
        assert "FAIL  room tea: no link to any member or relay since " in said
        assert "linnet connect KEY@HOST:PORT" in said


def test_a_sound_store_is_looked_through(running: Linnet, shell: Linnet) -> None:
    running.ok("publish", "weather", "rain")
    assert "values were read, all are sound" in running.ok("doctor", "--store")
    shell.ok("init")
    assert "is empty" in shell.ok("doctor", "--store")
    _say(shell, "rain")
    said = shell.ok("doctor", "--store")
    assert re.search(r"ok    all of the store: 1 unit and \d+ values were read, all are sound", said)


def _say(shell: Linnet, *texts: str) -> None:
    async def say() -> None:
        async with Node(shell.home) as node:
            for text in texts:
                await node.publish("weather", text)

    asyncio.run(say())


def test_a_damaged_store_is_told_and_noted(shell: Linnet) -> None:
    shell.ok("init")
    _say(shell, "rain", "sun")
    with closing(sqlite3.connect(shell.home / "events.db")) as db, db:
        db.execute("UPDATE unit SET raw = x'00' WHERE position = 1")
    result = shell.run("doctor", "--store", "--json")
    assert result.exit_code == 1
    (check,) = json.loads(result.stdout)["checks"]
    assert check["ok"] is False
    assert check["detail"].startswith("1 of 2 units are damaged")
    assert "fetches them again" in check["advice"]


def test_what_is_damaged_is_named_by_plain_doctor_with_the_next_step(shell: Linnet) -> None:
    shell.ok("init")
    _say(shell, "rain", "sun")
    with closing(sqlite3.connect(shell.home / "events.db")) as db, db:
        db.execute("UPDATE unit SET raw = x'00' WHERE position = 1")
    result = shell.run("doctor")
    assert result.exit_code == 1
    assert "FAIL  stored events: " in result.stdout
    assert "1 of 2 units are damaged" in result.stdout
    assert "linnet doctor --store" in result.stdout
    with shell.up():
        assert "damaged" in shell.run("history", "weather").output
        result = shell.run("doctor")
    assert result.exit_code == 1
    assert "FAIL  stored events: 1 unit of the store is damaged: 1 of " in result.stdout
    assert "linnet doctor --store" in result.stdout


def test_a_lost_store_is_told_by_every_command_that_needs_it(shell: Linnet) -> None:
    shell.ok("init")
    _say(shell, "rain")
    for part in shell.home.glob("events.db*"):
        part.unlink()
    for words in (("doctor",), ("doctor", "--store")):
        result = shell.run(*words)
        assert result.exit_code == 1
        assert "events.db is gone" in result.stdout
    assert "--without-log" in shell.fails(1, "up")


def spoil(shell: Linnet, before: bytes, after: bytes) -> None:
    path = shell.home / "events.db"
    data = path.read_bytes()
    assert data.count(before) == 1
    path.write_bytes(data.replace(before, after))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"CREATE INDEX unit_by_head", b"CREATE IND\xbaX unit_by_head"),
        (b"(id = 1),\n    position", b"(id = 1),\n    pos\x96tion"),
        (b"(id = 1),\n    position", b"(id = 1),\n    positiom"),
    ],
)
def test_a_damaged_store_is_told_in_a_line_with_advice(shell: Linnet, before: bytes, after: bytes) -> None:
    shell.ok("init")
    with closing(SqliteStore(shell.home / "events.db")):
        pass
    spoil(shell, before, after)
    kept = (shell.home / "events.db").read_bytes()
    for words in (["doctor"], ["doctor", "--store"]):
        result = shell.run(*words)
        assert result.exit_code == 1, result.output
        (line,) = (line for line in result.stdout.splitlines() if "FAIL" in line)
        assert str(shell.home / "events.db") in line
        assert "put back a copy of it" in result.stdout
    told = shell.fails(1, "up")
    assert "\n" not in told.strip()
    assert f"linnet: {shell.home / 'events.db'} " in told
    assert "put back a copy of it" in told
    assert (shell.home / "events.db").read_bytes() == kept


def test_a_value_that_is_damaged_is_told_with_its_file(shell: Linnet) -> None:
    shell.ok("init")
    with closing(SqliteStore(shell.home / "events.db")) as store:
        store.cells.put("names petname", b"ann", b"no key")
        store.commit(lambda: None)
    told = shell.fails(1, "up")
    assert f"linnet: {shell.home / 'events.db'} is damaged: a petname in the store has no key; look" in told
    assert "linnet doctor --store" in told
