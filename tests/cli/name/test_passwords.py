"""Where passwords of names come from; from files in test_resolve.py, too."""

from __future__ import annotations

import getpass
import io
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.names import PasswordOptions


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def typing(monkeypatch: pytest.MonkeyPatch, *lines: str) -> Iterator[str]:
    left = iter(lines)
    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(getpass, "getpass", lambda prompt: next(left))
    return left


def test_a_terminal_is_asked_and_what_is_new_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    assert PasswordOptions().read() is None
    typing(monkeypatch, "swordfish")
    assert PasswordOptions(password=True).read() == "swordfish"
    typing(monkeypatch, "swordfish", "swordfish")
    assert PasswordOptions(password=True).read(twice=True) == "swordfish"
    typing(monkeypatch, "swordfish", "swordfisj")
    with pytest.raises(Failure, match="two passwords") as caught:
        PasswordOptions(password=True).read(twice=True)
    assert "swordfis" not in str(caught.value)
    typing(monkeypatch, "")
    with pytest.raises(Failure, match="empty"):
        PasswordOptions(password=True).read()


def test_files_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"fish\xff\xfe")
    (tmp_path / "empty").write_text("")
    for name, what in (("none", "No such file"), ("bytes", "is no text"), ("empty", "is empty")):
        with pytest.raises(Failure, match=what) as caught:
            PasswordOptions(password_file=tmp_path / name).read()
        assert caught.value.code is ExitCode.USAGE
        assert "fish" not in str(caught.value)
