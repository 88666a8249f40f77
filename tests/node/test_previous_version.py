"""The last version that was released to users, in its own process, against this one.

What it lacks (a protocol, a reason, a command) must not keep the two from doing what both can.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

ROOT = Path(__file__).parents[2]
PREVIOUS = "f638a2d6141e8217c1aefc80ca91e8cd016809ce"
"""The commit of that version: streams, rooms and relays, before there was a lab."""
LIMIT = 30
ALL_THAT_IS_SAID = ("--from", "beginning", "--no-state", "--timeout", "20")


@pytest.fixture(scope="module")
def previous(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources of the previous version."""
    if shutil.which("git") is None:
        pytest.skip("there is no git here, so the previous version cannot be had")
    packed = subprocess.run(
        ["git", "-C", str(ROOT), "archive", "--format=zip", PREVIOUS, "src"],
        capture_output=True,
        check=False,
        timeout=LIMIT,
    )
    if packed.returncode:
        pytest.skip(f"the history does not reach back to {PREVIOUS}: a shallow clone, or an archive")
    below = tmp_path_factory.mktemp("previous")
    with zipfile.ZipFile(io.BytesIO(packed.stdout)) as archive:
        archive.extractall(below)
    return below / "src"


class Version:
    """The command line of one version, with a home."""

    def __init__(self, sources: Path, home: Path) -> None:
        self._home = home
        self._environment = {**os.environ, "PYTHONPATH": str(sources), "LINNET_HOME": str(home)}
        self._node: subprocess.Popen[str] | None = None
        self.address = ""
        self.run("init")

    def run(self, *words: str) -> str:
        """What a command prints."""
        done = subprocess.run(
            [sys.executable, "-m", "linnet.cli", *words],
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def up(self, *words: str) -> None:
        """Run the node."""
        self._node = subprocess.Popen(
            [sys.executable, "-m", "linnet.cli", "up", "--listen", "127.0.0.1:0", *words],
            env=self._environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._node.stdout is not None
        self.address = _address(self._node.stdout)

    def down(self) -> None:
        """Stop the node."""
        if self._node is not None:
            self._node.terminate()
            self._node.communicate(timeout=LIMIT)


def _address(printed: IO[str]) -> str:
    lines: list[str] = []
    for line in printed:
        lines.append(line)
        if line.startswith("ready"):
            words = [word for line in lines for word in line.split()]
            return next(word for word in words if word.startswith("ld1") and "@" in word)
    raise AssertionError(f"the node never was ready: {lines}")


@pytest.fixture
def both(previous: Path, tmp_path: Path) -> Iterator[tuple[Version, Version]]:
    """A node of the previous version, tracker and storage, and one of this version."""
    old, new = Version(previous, tmp_path / "old"), Version(ROOT / "src", tmp_path / "new")
    try:
        old.up("--tracker-role", "--store", "weather")
        new.up("--tracker", old.address)
        yield old, new
    finally:
        new.down()
        old.down()


def test_it_really_is_another_version(previous: Path) -> None:
    assert (previous / "linnet" / "rooms").exists()
    assert not (previous / "linnet" / "lab").exists()


def test_both_versions_hear_each_other(both: tuple[Version, Version]) -> None:
    old, new = both
    new.run("publish", "weather", "rain", "--confirm", "10")
    assert "rain" in old.run("subscribe", "weather", "--from", "beginning", "--count", "1")
    old.run("publish", "weather", "sun")
    heard = new.run("subscribe", "weather", "--from", "beginning", "--count", "2")
    assert "rain" in heard
    assert "sun" in heard
    assert old.address.partition("@")[0][:10] in new.run("peers")


@pytest.mark.parametrize("founded_by", ["the previous version", "this version"])
def test_both_versions_are_in_a_room(both: tuple[Version, Version], founded_by: str) -> None:
    founder, guest = both if founded_by == "the previous version" else reversed(both)
    founder.run("room", "create", "tea", "--rule", "public")  # Encrypted ones are newer than the other.
    guest.run("room", "join", founder.run("room", "invite", "tea", "--no-qr").strip())
    founder.run("room", "send", "tea", "milk?")
    guest.run("room", "send", "tea", "lemon!")
    for each in both:
        heard = each.run("room", "read", "tea", *ALL_THAT_IS_SAID, "--count", "2")
        assert "milk?" in heard
        assert "lemon!" in heard
