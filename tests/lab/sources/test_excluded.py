"""Lists of users to leave out."""

from __future__ import annotations

from pathlib import Path

import pytest

from linnet.lab.errors import LabError
from linnet.lab.sources.excluded import read_users


def test_users_of_a_list(tmp_path: Path) -> None:
    path = tmp_path / "bots.csv"
    path.write_text('id,user\n1,0\n2,"bot, the"\n3,0\n')
    assert read_users(path) == {"0", "bot, the"}


def test_a_list_without_users_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bots.csv"
    path.write_text("name\n1\n")
    with pytest.raises(LabError, match="no column user"):
        read_users(path)
