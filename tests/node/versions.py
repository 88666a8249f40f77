"""The command line of one version of Linnet, with a home: each in processes of its own."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tarfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
THIS = ROOT / "src"
PREVIOUS = ROOT / "tests" / "vectors" / "linnet-0.1.0.tar.xz"
LIMIT = 60


def unpacked(below: Path) -> Path:
    """The sources of version 0.1.0."""
    with tarfile.open(PREVIOUS) as archive:
        for member in archive:
            content = archive.extractfile(member) if member.isfile() else None
            if content is not None:  # Our own archive, with nothing but files below src.
                target = below / member.name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content.read())
    return below / "src"


def free_port() -> int:
    """A port that nobody uses at the moment."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


class Device:
    """A home that any version may run, always at the same port."""

    def __init__(self, home: Path, sources: Path) -> None:
        self.home = home
        self.sources = sources
        self.port = free_port()
        self.address = ""
        self._node: subprocess.Popen[str] | None = None
        self.log = home.with_suffix(".log")

    def run(self, *words: str, fails: bool = False) -> str:
        """What a command prints."""
        done = subprocess.run(
            self._command(*words),
            env=self._environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT,
        )
        assert fails or done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def up(self, *words: str) -> None:
        """Run the node, and wait until it can be used."""
        self._node = self.started(*words)
        assert self._node.stdout is not None
        line = self._node.stdout.readline()
        assert line, self.log.read_text()
        self.address = json.loads(line)["address"]

    def started(self, *words: str) -> subprocess.Popen[str]:
        """A node that has just been started."""
        with self.log.open("a") as log:
            return subprocess.Popen(
                self._command("up", "--listen", f"127.0.0.1:{self.port}", "--json", *words),
                env=self._environment(),
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def down(self) -> None:
        """Stop the node in good order."""
        node, self._node = self._node, None
        if node is not None:
            node.terminate()
            node.communicate(timeout=LIMIT)
            assert node.returncode == 0, self.log.read_text()

    def until(self, text: str, *words: str) -> str:
        """What a command prints, as soon as it prints this too."""
        end = time.monotonic() + LIMIT
        while True:
            said = self.run(*words, fails=True)
            if text in said:
                return said
            assert time.monotonic() < end, f"{words} never said {text!r}, but {said!r}"

    def _command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "linnet", *words]

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(self.sources), "LINNET_HOME": str(self.home)}
