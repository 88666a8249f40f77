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
from linnet.event.signing import decode_unit, is_sound, recall_unit
from linnet.net.clock import Clock
from linnet.node.client import ControlError
from linnet.node.doctor import (
    LITTLE_BYTES,
    LITTLE_FILES,
    NEEDED_BYTES,
    NEEDED_FILES,
    disk_check,
    home_checks,
    judge,
)
from linnet.node.home import init
from linnet.rooms.commands import CreateRoom, SendToRoom
from linnet.store.sqlite import SqliteStore
from linnet.streams.stream_names import topic_of

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
    node = LiveNode(tmp_path / "full", relay=False)
    try:
        node.start()
        room = node.control.ask(CreateRoom("full")).room
        assert node.pid is not None
        _, most = resource.prlimit(node.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(node.pid, resource.RLIMIT_FSIZE, (1, most))
        with pytest.raises(ControlError, match=r"events\.db cannot be written"):
            node.control.ask(SendToRoom(room, (b"one too many",)))
        assert until(lambda: not node.is_up, LIMIT)
    finally:
        node.kill()


def test_doctor_names_a_disk_that_is_full(small_disk: Path) -> None:
    home = small_disk / "home"
    _publish(home)
    checks = {check.name: check for check in home_checks(home, Clock().now())}
    disk = checks["disk"]
    assert not disk.ok
    assert disk.detail.startswith("is full: 0.")
    assert f"MB free where {home} lies" in disk.detail
    assert "free space" in disk.advice


def test_doctor_names_a_disk_that_takes_no_more_files(small_disk: Path) -> None:
    home = init(small_disk / "home", Clock().now()).home.path
    done = subprocess.run(
        ["mount", "-o", "remount,nr_inodes=12", small_disk], check=False, timeout=LIMIT, capture_output=True
    )
    if done.returncode:
        pytest.skip("the number of files cannot be set here")
    disk = disk_check(home)
    assert (disk.ok, "inodes" in disk.detail) == (False, True)


@pytest.mark.parametrize(
    ("free", "files", "ok", "word"),
    [
        (NEEDED_BYTES - 1, None, False, "is full"),
        (NEEDED_BYTES, None, True, "warning, little room"),
        (LITTLE_BYTES - 1, None, True, "warning, little room"),
        (LITTLE_BYTES, None, True, "67.1 MB free"),
        (LITTLE_BYTES, NEEDED_FILES - 1, False, "takes no more files: room for 7"),
        (LITTLE_BYTES, NEEDED_FILES, True, "warning, room for 8"),
        (LITTLE_BYTES, LITTLE_FILES - 1, True, "warning, room for 999"),
        (LITTLE_BYTES, LITTLE_FILES, True, "67.1 MB free"),
    ],
)
def test_what_is_little_and_what_is_none(free: int, files: int | None, ok: bool, word: str) -> None:
    check = judge(Path("/home"), free, files)
    assert (check.ok, bool(check.advice)) == (ok, not ok)
    assert check.detail.startswith(word)
