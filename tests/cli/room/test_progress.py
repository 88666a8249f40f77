from __future__ import annotations

import io
import sys

import pytest

from linnet.cli.room.progress import file_bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_where_somebody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Terminal()
    monkeypatch.setattr(sys, "stderr", watched)
    with file_bar("cat.png", quiet=False) as progress:
        progress(5, 10)
    assert "cat.png" in watched.getvalue()


@pytest.mark.parametrize("quiet", [True, False])
def test_nothing_where_nobody_does(quiet: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    unseen = Terminal() if quiet else io.StringIO()
    monkeypatch.setattr(sys, "stderr", unseen)
    with file_bar("cat.png", quiet) as progress:
        progress(5, 10)
    assert unseen.getvalue() == ""
