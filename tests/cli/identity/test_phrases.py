from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.identity.phrases import read_phrase
from linnet.node.keyfiles import KeyFileError


def test_a_private_file_is_read_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "words"
    file.write_text("zoo\n zoo")
    file.chmod(0o600)
    assert read_phrase(file) == "zoo\n zoo"
    file.chmod(0o640)
    with pytest.raises(KeyFileError, match="so others can use it"):
        read_phrase(file)


def test_a_pipe_of_the_shell_is_a_file_too() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"zoo zoo")
    os.close(writing)
    try:
        assert read_phrase(Path(f"/dev/fd/{reading}")) == "zoo zoo"
    finally:
        os.close(reading)


def test_standard_input_must_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("zoo zoo"))
    with pytest.raises(Failure, match="--phrase-file FILE, or - for standard input") as caught:
        read_phrase(None)
    assert caught.value.code is ExitCode.USAGE
    assert read_phrase(Path("-")) == "zoo zoo"


def test_what_is_no_text_is_not_repeated(tmp_path: Path) -> None:
    file = tmp_path / "words"
    file.write_bytes(b"zoo \xff")
    file.chmod(0o600)
    with pytest.raises(Failure, match="is no text") as caught:
        read_phrase(file)
    assert caught.value.__suppress_context__
    assert "zoo" not in str(caught.value)
