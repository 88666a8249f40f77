from __future__ import annotations

import stat
from pathlib import Path

import pytest

from linnet.identity.cards import issue_card
from linnet.identity.keys import SigningKey
from linnet.node.keyfiles import KeyFileError, load_card, load_key, save_card, save_key, write_private

KEY = SigningKey(bytes(32))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_key_is_private_and_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "device.key"
    save_key(path, "device", KEY)
    assert mode(path) == 0o600
    assert load_key(path, "device").seed == KEY.seed
    assert [each.name for each in tmp_path.iterdir()] == ["device.key"]


def test_a_key_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "device.key"
    save_key(path, "device", KEY)
    with pytest.raises(FileExistsError):
        save_key(path, "device", SigningKey(b"x" * 32))
    assert load_key(path, "device").seed == KEY.seed
    assert [each.name for each in tmp_path.iterdir()] == ["device.key"]


@pytest.mark.parametrize("bits", [0o640, 0o604, 0o660, 0o644, 0o610, 0o601])
def test_a_key_that_others_can_use_is_refused(tmp_path: Path, bits: int) -> None:
    path = tmp_path / "device.key"
    save_key(path, "device", KEY)
    path.chmod(bits)
    with pytest.raises(KeyFileError, match=f"has mode 0{bits:o}.*chmod 600"):
        load_key(path, "device")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "does not begin with 'linnet device key 1'"),
        (b"linnet person key 1\nAAAA\n", "another sort of file"),
        (b"linnet device key 1\n", "has 0 bytes instead of 32"),
        (b"linnet device key 1\n!!!\n", "no base64"),
        (b"linnet device key 1\nAAAA\n", "has 3 bytes instead of 32"),
        (b"x" * 5000, "larger than 4096"),
    ],
)
def test_a_damaged_key_is_named_and_not_shown(tmp_path: Path, content: bytes, complaint: str) -> None:
    path = tmp_path / "device.key"
    write_private(path, content)
    with pytest.raises(KeyFileError, match=complaint) as caught:
        load_key(path, "device")
    assert "AAAA" not in str(caught.value)


def test_a_card_is_replaced_by_its_successor(tmp_path: Path) -> None:
    path = tmp_path / "device.card"
    old, new = issue_card(KEY, bytes(32), 1, 2), issue_card(KEY, bytes(32), 3, 4, "desk")
    save_card(path, old)
    save_card(path, new)
    assert load_card(path) == new
    write_private(path, b"linnet card 1\nAAAA\n", replace=True)
    with pytest.raises(KeyFileError, match="damaged"):
        load_card(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(KeyFileError, match=r"person\.key: cannot be read: No such file"):
        load_key(tmp_path / "person.key", "person")


def test_a_device_without_a_card_is_told_how_it_gets_one(tmp_path: Path) -> None:
    with pytest.raises(KeyFileError, match=r"there is no card yet; .*linnet id link.*linnet id accept"):
        load_card(tmp_path / "device.card")
