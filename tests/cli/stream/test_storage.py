"""What storage nodes have confirmed is checked, and what they refuse is told: over real links and disks."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.shell import Linnet
from tests.cli.village import until

from linnet.cli.status import check_text
from linnet.core.ids import PeerId
from linnet.core.limits import MIB
from linnet.core.reasons import Reason
from linnet.streams.commands import StorageCheck, StorageOutcome


def made(where: Path, name: str) -> Linnet:
    shell = Linnet(where / name)
    shell.ok("init", "--label", name)
    return shell


def test_a_storage_node_shows_what_it_has_confirmed(tmp_path: Path) -> None:
    hub, ada = made(tmp_path, "hub"), made(tmp_path, "ada")
    with hub.up("--tracker-role", "--store", "news"), ada.up("--tracker", hub.address):
        said = ada.fails(1, "stream", "check", "elsewhere")
        assert "elsewhere: no storage node is known" in said
        until(lambda: "delivered" in ada.ok("publish", "news", "one", "--confirm", "10"))
        said = ada.ok("stream", "check", "news")
        assert "showed what it has confirmed (number" in said
        (check,) = ada.json("stream", "check", "news")["checks"]
        assert check["outcome"] == "kept"


def test_a_storage_node_without_room_says_so_and_goes_on(tmp_path: Path) -> None:
    hub, ada = made(tmp_path, "hub"), made(tmp_path, "ada")
    (hub.home / "linnet.toml").write_text(f"[delivery]\ndisk_reserve = {2**62}\n")
    with hub.up("--tracker-role", "--store", "news"), ada.up("--tracker", hub.address):
        ada.ok("publish", "news", "first")
        said = ada.fails(1, "publish", "news", "more", "--confirm", "5")
        assert "(its disk is almost full)" in said
        assert "news takes no newer events of some publishers: the disk is almost full" in hub.ok("status")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 MiB."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small file system")
    where = tmp_path / "disk"
    where.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", where], check=False, timeout=60)
    if made.returncode:
        pytest.skip("no file system may be mounted here")
    yield where
    subprocess.run(["umount", "--lazy", where], check=True, timeout=60)


def test_who_writes_more_than_fits_does_not_end_a_storage_node(disk: Path, tmp_path: Path) -> None:
    hub, ada = made(disk, "hub"), made(tmp_path, "ada")
    (hub.home / "linnet.toml").write_text(f"[delivery]\ndisk_reserve = {24 * MIB}\n")
    with hub.up("--tracker-role", "--store", "news"), ada.up("--tracker", hub.address):
        lines = b"".join(b"%d " % number + b"x" * 50_000 + b"\n" for number in range(1600))
        assert len(lines) > 64 * MIB
        ada.ok("publish", "news", "-", "--lines", given=lines)
        until(lambda: "the disk is almost full" in hub.ok("status"))
        assert "(its disk is almost full)" in ada.fails(1, "publish", "news", "more", "--confirm", "5")
        kept = next(each["kept_events"] for each in hub.json("status")["streams"] if each["stream"] == "news")
        assert 100 < kept < 1600
        assert shutil.disk_usage(disk).free > 4 * MIB
        assert "showed what it has confirmed" in ada.ok("stream", "check", "news")


@pytest.mark.parametrize(
    ("check", "words"),
    [
        (StorageCheck(PeerId(bytes(32)), StorageOutcome.KEPT, 1.0, 7), "confirmed (number 7)"),
        (
            StorageCheck(PeerId(bytes(32)), StorageOutcome.GONE, 1.0, 7, Reason.QUOTA),
            "no longer has what it has confirmed (number 7): its room was used up",
        ),
        (
            StorageCheck(PeerId(bytes(32)), StorageOutcome.WRONG, 1.0, 7, Reason.EQUIVOCATION),
            "signed what is not true, and counts no more",
        ),
        (
            StorageCheck(PeerId(bytes(32)), StorageOutcome.UNCHECKED, 1.0, None, Reason.UNSUPPORTED),
            "nothing that can be checked: its version is older",
        ),
    ],
)
def test_an_outcome_in_words(check: StorageCheck, words: str) -> None:
    assert words in check_text(check)
