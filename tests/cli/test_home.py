from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest
from tests.cli.shell import Linnet

from linnet.cli.exits import Failure
from linnet.cli.home import PASSPHRASE_VARIABLE, read_passphrase


def test_a_home_is_made_and_its_ids_are_told(shell: Linnet) -> None:
    said = shell.ok("init", "--label", "pi")
    assert f"home    {shell.home}" in said
    assert "person  lp1" in said
    assert "device  ld1" in said
    assert f"next    linnet up --home {shell.home}" in said
    assert stat.S_IMODE(shell.home.stat().st_mode) == 0o700
    assert 'label = "pi"' in (shell.home / "linnet.toml").read_text()


def test_nothing_is_overwritten(shell: Linnet) -> None:
    shell.ok("init")
    before = (shell.home / "device.key").read_bytes()
    assert "is there already; choose another with --home" in shell.fails(78, "init")
    assert (shell.home / "device.key").read_bytes() == before


def test_trackers_are_checked_before_anything_is_made(shell: Linnet) -> None:
    assert "write KEY@HOST:PORT" in shell.fails(78, "init", "--tracker", "nowhere")
    assert not shell.home.exists()


def test_trackers_and_addresses_go_into_the_configuration(shell: Linnet, running: Linnet) -> None:
    found = shell.json("init", "--tracker", running.address, "--listen", "127.0.0.1:7700")
    text = (shell.home / "linnet.toml").read_text()
    assert running.address in text
    assert "127.0.0.1:7700" in text
    assert found["home"] == str(shell.home)


def test_the_file_is_short_and_sections_can_be_added(shell: Linnet) -> None:
    shell.ok("init")
    file = shell.home / "linnet.toml"
    assert len(file.read_text().splitlines()) <= 12
    assert "docs/reference/configuration.md" in file.read_text()


def test_a_mount_point_is_told_with_what_to_name_instead(shell: Linnet) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may mount a file system")
    shell.home.mkdir(parents=True)
    made = subprocess.run(["mount", "-t", "tmpfs", "tmpfs", shell.home], check=False, timeout=20)
    if made.returncode:
        pytest.skip("no file system may be mounted here")
    try:
        said = shell.fails(78, "init")
        inside = Linnet(shell.home / "linnet")
        inside.ok("init")
    finally:
        subprocess.run(["umount", "--lazy", shell.home], check=True, timeout=20)
    assert said.strip() == (
        f"linnet: {shell.home}: is a mount point, which cannot be made a home as a whole; "
        f"name a directory in it: --home {shell.home}/linnet"
    )


def test_a_node_in_a_file_can_be_put_elsewhere(shell: Linnet, tmp_path: Path) -> None:
    made = shell.json("init", "--label", "moving")
    file = tmp_path / "node.linnet"
    told = shell.json("export", str(file))
    assert told["bytes"] == file.stat().st_size
    assert told["sealed"] is False
    other = Linnet(tmp_path / "other")
    found = other.json("import", str(file))
    assert (found["person"], found["device"]) == (made["person"], made["device"])


def test_no_file_is_overwritten(shell: Linnet, tmp_path: Path) -> None:
    shell.ok("init")
    file = tmp_path / "mine"
    file.write_text("precious")
    shell.fails(1, "export", str(file))
    assert file.read_text() == "precious"


def test_a_node_that_runs_is_not_exported(running: Linnet, tmp_path: Path) -> None:
    assert "runs here already" in running.fails(78, "export", str(tmp_path / "busy"))


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


def test_a_file_comes_before_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_passphrase(None) is None
    monkeypatch.setenv(PASSPHRASE_VARIABLE, "from afar")
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
