from __future__ import annotations

from pathlib import Path

import pytest

from linnet.cli.exits import Failure
from linnet.cli.passphrases import VARIABLE, read_passphrase


def test_a_file_comes_before_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_passphrase(None) is None
    monkeypatch.setenv(VARIABLE, "from afar")
    assert read_passphrase(None) == "from afar"
    file = tmp_path / "secret"
    file.write_text("from a file\n")
    assert read_passphrase(file) == "from a file"


@pytest.mark.parametrize("content", [b"", b"\nsecond", b"\xff\xfe"])
def test_a_file_without_one_is_wrong_usage(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "secret"
    file.write_bytes(content)
    with pytest.raises(Failure):
        read_passphrase(file)
    with pytest.raises(Failure, match="cannot be read"):
        read_passphrase(tmp_path / "absent")
