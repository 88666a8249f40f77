from __future__ import annotations

from pathlib import Path

import pytest

from linnet.core.errors import LocalError
from linnet.node.part_files import PartFile


def test_a_file_has_its_name_when_it_is_whole(tmp_path: Path) -> None:
    with PartFile(tmp_path / "a", 5) as file:
        file.add(b"he")
        assert not file.target.exists()
        file.add(b"llo")
    assert file.target.read_bytes() == b"hello"
    assert list(tmp_path.iterdir()) == [file.target]
    with pytest.raises(LocalError, match="is there already"):
        PartFile(tmp_path / "a", 5)


def test_what_was_interrupted_is_gone_on_with(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match="has 2 of 5 bytes"), PartFile(tmp_path / "a", 5) as file:
        file.add(b"he")
    with pytest.raises(LocalError, match="has 3 of 5 bytes"), PartFile(tmp_path / "a", 5) as file:
        file.add(b"l")
    with PartFile(tmp_path / "a", 5) as file:
        assert file.done == 3
        file.add(b"lo")
    assert file.target.read_bytes() == b"hello"


def test_one_that_is_too_long_is_begun_anew(tmp_path: Path) -> None:
    (tmp_path / "a.part").write_bytes(b"something else")
    with PartFile(tmp_path / "a", 2) as file:
        assert file.done == 0
        file.add(b"ok")
    assert file.target.read_bytes() == b"ok"
