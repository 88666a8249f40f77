from __future__ import annotations

import stat
from pathlib import Path

from tests.cli.identity.typed import Typed


def test_a_home_that_waits_for_its_card(shell: Typed) -> None:
    said = shell.ok("id", "ask", "--label", "phone")
    assert "linnet id link ld1" in said
    assert "--label 'phone'" in said
    assert {path.name for path in shell.home.iterdir()} == {"device.key", "linnet.toml"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in shell.home.iterdir()} == {0o600}
    assert "there is no card yet" in shell.fails(78, "up")


def test_nothing_is_overwritten(shell: Typed, tmp_path: Path) -> None:
    shell.ok("init")
    before = {path.name: path.read_bytes() for path in shell.home.iterdir()}
    assert "is there already" in shell.fails(78, "id", "ask")
    assert {path.name: path.read_bytes() for path in shell.home.iterdir()} == before
