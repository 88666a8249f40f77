"""A disk that is full: the application is told so, and what was acknowledged is there."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.node.killed_world import until

from linnet.cli.play.nodes import LiveNode
from linnet.event.signing import decode_unit, recall_unit
from linnet.event.soundness import is_sound
from linnet.node.client import ControlError
from linnet.node.room_types import CreateRoomRequest
from linnet.store.sqlite import SqliteStore
from linnet.streams.names import topic_of

LIMIT = 60
_PUBLISHER = """
import asyncio, resource, sys
from linnet import Node
from linnet.core.errors import StoreError

async def main():
    acknowledged = 0
    try:
        async with Node(home=sys.argv[1]) as node:
            await node.publish("news", b"first")
            print("acknowledged 0", flush=True)
            if len(sys.argv) > 2:
                size = int(sys.argv[2])
                resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
            try:
                for number in range(1, 100_000):
                    await node.publish("news", f"{number} ".encode() * 2000)
                    print("acknowledged", number, flush=True)
            except BaseException as error:
                print("publish raised", type(error).__name__, flush=True)
                raise
    except StoreError as error:
        print("node raised", type(error).__name__, flush=True)

asyncio.run(main())
"""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of four megabytes."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small file system; RLIMIT_FSIZE is tried beside")
    where = tmp_path / "disk"
    where.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", where], check=False, timeout=LIMIT
    )
    if made.returncode:
        pytest.skip("no file system may be mounted here; RLIMIT_FSIZE is tried beside")
    yield where
    subprocess.run(["umount", "--lazy", where], check=True, timeout=LIMIT)


def _publish(home: Path, *words: str) -> list[str]:
    subprocess.run(
        [sys.executable, "-m", "linnet", "init", "--home", str(home)],
        check=True,
        timeout=LIMIT,
        capture_output=True,
    )
    done = subprocess.run(
        [sys.executable, "-c", _PUBLISHER, str(home), *words],
        check=False,
        timeout=LIMIT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def _stored(home: Path) -> list[int]:
    store = SqliteStore(home / "events.db", is_sound)
    try:
        found = store.log.read(topic_of("news"), 0, 100_000)
        events = [event for _, entry in found for event in recall_unit(decode_unit(entry.raw)).events]
    finally:
        store.close()
    return [0 if event.body == b"first" else int(event.body.split()[0]) for event in events]


def _judge(lines: list[str], home: Path) -> None:
    assert lines[-2:] == ["publish raised StoreError", "node raised StoreError"], lines[-4:]
    acknowledged = [int(line.split()[1]) for line in lines if line.startswith("acknowledged")]
    assert len(acknowledged) > 5
    stored = _stored(home)
    assert stored[: len(acknowledged)] == acknowledged
    assert len(stored) <= len(acknowledged) + 1, "one more at most, of which nobody was told"


def test_a_disk_that_is_full_is_told_to_who_publishes(small_disk: Path) -> None:
    home = small_disk / "home"
    lines = _publish(home)
    for each in (home / "trace").glob("*"):
        each.unlink()  # Room for the store to be opened again.
    _judge(lines, home)


def test_a_file_that_may_not_grow_is_told_to_who_publishes(tmp_path: Path) -> None:
    home = tmp_path / "home"
    _judge(_publish(home, str(1024 * 1024)), home)


def test_a_node_whose_disk_is_full_ends(tmp_path: Path) -> None:
    """It would answer nobody, and whoever looks after it would not start it again."""
    node = LiveNode("full", tmp_path / "home", relay=False)
    try:
        node.start()
        room = node.control.create_room(CreateRoomRequest("full")).room
        assert node.pid is not None
        _, most = resource.prlimit(node.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(node.pid, resource.RLIMIT_FSIZE, (1, most))
        with pytest.raises(ControlError, match=r"events\.db cannot be written"):
            node.control.send_to_room(room, [b"one too many"])
        assert until(lambda: not node.is_up, LIMIT)
    finally:
        node.kill()
