from __future__ import annotations

import asyncio
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from tests.store.entries import NEWS, unit

from linnet.event.event import Event
from linnet.net.clock import Clock
from linnet.net.config import NetConfig
from linnet.node.archive import ArchiveError, Effort, export_home, import_home
from linnet.node.config import NodeConfig, NodeSection, StorageSection, TrackerSection
from linnet.node.home import Home, HomeBusy, HomeError, held, init
from linnet.node.keyfiles import load_key
from linnet.node.library import Node
from linnet.store.sqlite import SqliteStore

NOW = 1_700_000_000.0
CHEAP = Effort(operations=1, memory=8192)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    opened = init(tmp_path / "home", NOW, NodeConfig(node=NodeSection(label="desk")))
    opened.home.store.write_bytes(bytes(range(256)) * 3000)
    Path(f"{opened.home.store}-wal").write_bytes(b"the last writes")
    return opened.home


@pytest.mark.parametrize("passphrase", [None, "correct horse"])
def test_with_the_log_the_same_device_goes_on_elsewhere(
    tmp_path: Path, home: Home, passphrase: str | None
) -> None:
    file = tmp_path / "node.archive"
    export_home(home.path, file, passphrase, effort=CHEAP)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert (load_key(home.device_key, "device").seed in file.read_bytes()) is (passphrase is None)
    restored = import_home(file, tmp_path / "new", NOW, passphrase).home
    names = ["device.card", "device.key", "events.db", "events.db-wal", "linnet.toml", "person.key"]
    assert sorted(each.name for each in restored.path.iterdir()) == names
    for name in names:
        assert (restored.path / name).read_bytes() == (home.path / name).read_bytes(), name
        assert stat.S_IMODE((restored.path / name).stat().st_mode) == 0o600


def test_without_the_log_it_is_a_new_device_of_the_person(tmp_path: Path, home: Home) -> None:
    file = tmp_path / "node.archive"
    export_home(home.path, file, with_log=False)
    assert load_key(home.device_key, "device").seed not in file.read_bytes()
    opened = import_home(file, tmp_path / "new", NOW)
    assert opened.identity.author == load_key(home.person_key, "person").public
    assert opened.identity.peer != load_key(home.device_key, "device").public
    assert opened.config.node.label == opened.identity.card.label == "desk"
    assert not opened.home.store.exists()


def test_a_home_without_its_person_key_goes_only_with_its_log(tmp_path: Path, home: Home) -> None:
    home.person_key.unlink()
    with pytest.raises(ArchiveError, match="export with the log"):
        export_home(home.path, tmp_path / "a", with_log=False)
    export_home(home.path, tmp_path / "b")
    opened = import_home(tmp_path / "b", tmp_path / "new", NOW)
    assert not opened.has_person_key
    assert opened.identity.peer == load_key(home.device_key, "device").public


def test_nothing_is_overwritten(tmp_path: Path, home: Home) -> None:
    file = tmp_path / "node.archive"
    export_home(home.path, file)
    with pytest.raises(ArchiveError, match="is there already"):
        export_home(home.path, file)
    with pytest.raises(HomeError, match="is there already"):
        import_home(file, home.path, NOW)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["home", "node.archive"]


def test_a_running_node_is_not_exported(tmp_path: Path, home: Home) -> None:
    with held(home), pytest.raises(HomeBusy):
        export_home(home.path, tmp_path / "a")
    with pytest.raises(HomeError, match="no home"):
        export_home(tmp_path / "none", tmp_path / "a")


def test_a_wrong_passphrase_is_told(tmp_path: Path, home: Home) -> None:
    file = tmp_path / "node.archive"
    export_home(home.path, file, "right", effort=CHEAP)
    with pytest.raises(ArchiveError, match="is sealed"):
        import_home(file, tmp_path / "new", NOW)
    with pytest.raises(ArchiveError, match="passphrase is another"):
        import_home(file, tmp_path / "new", NOW, "wrong")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("passphrase", [None, "p"])
def test_no_damaged_archive_becomes_a_home(tmp_path: Path, home: Home, passphrase: str | None) -> None:
    home.store.write_bytes(b"small")
    good = tmp_path / "good"
    export_home(home.path, good, passphrase, effort=CHEAP)
    content = good.read_bytes()
    bad = tmp_path / "bad"
    cuts = [content[:size] for size in range(0, len(content), 397)]
    flips = [
        content[:at] + bytes([content[at] ^ 0x41]) + content[at + 1 :] for at in range(0, len(content), 331)
    ]
    for damaged in [*cuts, *flips, content + b"x", b"\xff" * 100]:
        bad.write_bytes(damaged)
        with pytest.raises(ArchiveError):
            import_home(bad, tmp_path / "new", NOW, passphrase)
    assert not (tmp_path / "new").exists()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["bad", "good", "home"]


STREAM = "weather"
ALONE = NodeConfig(
    tracker=TrackerSection(enabled=True), storage=(StorageSection(STREAM),), net=NetConfig(linger=0.5)
)
"""A node that is its own tracker and storage."""


async def test_a_node_goes_on_from_its_archive_with_its_log_chains_and_cursors(tmp_path: Path) -> None:
    init(tmp_path / "old", Clock().now(), ALONE)
    async with asyncio.timeout(30), Node(tmp_path / "old") as old:
        peer = old.peer
        await old.publish(STREAM, [b"0", b"1", b"2"])
        async with old.subscribe(STREAM, since=0, name="mine") as subscription:
            async for event in subscription:
                if event.body == b"1":  # Only what came before it is handled.
                    break
    export_home(tmp_path / "old", tmp_path / "file", "correct horse", effort=CHEAP)
    import_home(tmp_path / "file", tmp_path / "new", Clock().now(), "correct horse")
    async with asyncio.timeout(30), Node(tmp_path / "new") as new:
        assert new.peer == peer
        assert (await new.publish(STREAM, b"3")).first == 3, "the chain goes on and does not fork"
        history = [item async for item in new.subscribe(STREAM, since=0, live=False).items()]
        assert [item.body for item in history if isinstance(item, Event)] == [b"0", b"1", b"2", b"3"]
        async with new.subscribe(STREAM, name="mine") as subscription:
            assert subscription.resumed
            rest: list[bytes] = []
            async for event in subscription:
                rest.append(event.body)
                if len(rest) == 3:
                    break
            assert rest == [b"1", b"2", b"3"]


KILLED = """
import os, signal, sys
from pathlib import Path
from linnet.store.sqlite import SqliteStore
from tests.store.entries import unit

store = SqliteStore(Path(sys.argv[1]))
for number in range(100):
    store.log.append(unit(number, size=5_000))
store.cells.put("cursor", b"mine", b"place")
store.commit(lambda: os.kill(os.getpid(), signal.SIGKILL))
signal.pause()
"""


def test_what_a_killed_node_wrote_last_is_in_its_archive(tmp_path: Path) -> None:
    """All of it is still in the write-ahead log then, which is longer than one record of an archive."""
    home = init(tmp_path / "old", NOW).home
    command = [sys.executable, "-c", KILLED, str(home.store)]
    assert subprocess.run(command, timeout=60, check=False).returncode == -9
    assert Path(f"{home.store}-wal").stat().st_size > 500_000 > home.store.stat().st_size
    export_home(home.path, tmp_path / "file")
    restored = import_home(tmp_path / "file", tmp_path / "new", NOW).home
    with closing(SqliteStore(restored.store)) as store:
        assert store.log.read(NEWS, 0, 200) == [(n + 1, unit(n, size=5_000)) for n in range(100)]
        assert store.cells.get("cursor", b"mine") == b"place"
        assert store.log.append(unit(100)) == 101
