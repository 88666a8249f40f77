from __future__ import annotations

import stat
from pathlib import Path

import pytest

from linnet.node.archive import ArchiveError, Effort, export_home, import_home
from linnet.node.config import NodeConfig, NodeSection
from linnet.node.home import Home, HomeBusy, HomeError, held, init
from linnet.node.keyfiles import load_key

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
