from __future__ import annotations

import os
import stat
import subprocess

import pytest
from tests.cli.shell import Linnet


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
