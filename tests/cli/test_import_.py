from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.shell import Linnet


def test_the_person_alone_becomes_a_new_device(shell: Linnet, tmp_path: Path) -> None:
    made = shell.json("init")
    file = tmp_path / "person.linnet"
    shell.ok("export", str(file), "--without-log")
    said = Linnet(tmp_path / "other").ok("import", str(file))
    assert f"person  {made['person']}" in said
    assert made["device"] not in said


def test_a_sealed_file_needs_its_passphrase(
    shell: Linnet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.ok("init")
    file, secret = tmp_path / "sealed", tmp_path / "secret"
    secret.write_text("correct horse\nignored\n")
    assert "sealed by its passphrase" in shell.ok("export", str(file), "--passphrase-file", str(secret))
    other = Linnet(tmp_path / "other")
    assert "passphrase" in other.fails(1, "import", str(file))
    monkeypatch.setenv("LINNET_PASSPHRASE", "correct horse")
    other.ok("import", str(file))


def test_what_is_no_archive_is_told(shell: Linnet, tmp_path: Path) -> None:
    file = tmp_path / "text"
    file.write_text("hello")
    shell.fails(1, "import", str(file))
    shell.fails(1, "import", str(tmp_path / "absent"))
    assert not shell.home.exists()
