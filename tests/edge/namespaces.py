"""Small local networks of this machine alone: namespaces, joined by bridges. Nothing is left behind."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator

import pytest

_numbers = itertools.count()


class Lab:
    """Namespaces with links to bridges; each bridge is one local network."""

    def __init__(self) -> None:
        self._prefix = f"ln{os.getpid() % 100_000}x{next(_numbers)}"
        self._spaces: list[str] = []
        self._wires = itertools.count()

    def space(self, name: str) -> str:
        """A new namespace, in which only the loopback is up."""
        space = f"{self._prefix}-{name}"
        ip("netns", "add", space)
        self._spaces.append(space)
        self.inside(space, "link", "set", "lo", "up")
        return space

    def bridge(self, name: str) -> str:
        """A local network: a namespace of its own that has nothing but the bridge."""
        space = self.space(name)
        self.inside(space, "link", "add", "br0", "type", "bridge", "mcast_snooping", "0")
        self.inside(space, "link", "set", "br0", "up")
        return space

    def plug(self, space: str, bridge: str, device: str, address: str | None) -> None:
        """Join a namespace to a local network by this device; None: it has no IPv4."""
        other = f"v{next(self._wires)}"
        ip("link", "add", device, "netns", space, "type", "veth", "peer", "name", other, "netns", bridge)
        self.inside(bridge, "link", "set", other, "master", "br0", "up")
        if address is not None:
            self.inside(space, "address", "add", address, "dev", device)
        self.inside(space, "link", "set", device, "up")

    def unplug(self, space: str, device: str) -> None:
        """Pull the cable."""
        self.inside(space, "link", "delete", device)

    def inside(self, space: str, *words: str) -> None:
        """Run `ip` in a namespace."""
        ip("-n", space, *words)

    def close(self) -> None:
        """Remove everything; devices go with their namespaces."""
        for space in reversed(self._spaces):
            with contextlib.suppress(subprocess.CalledProcessError):
                ip("netns", "delete", space)


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True, timeout=120)


@contextlib.contextmanager
def lab() -> Iterator[Lab]:
    """A lab, or a word why there can be none here."""
    if shutil.which("ip") is None:
        pytest.skip("network namespaces need the program ip (iproute2), which is not installed here")
    made = Lab()
    try:
        try:
            probe = made.bridge("probe")
            made.plug(made.space("probed"), probe, "eth0", "10.78.0.1/24")
        except subprocess.CalledProcessError as error:
            pytest.skip(f"this machine does not let us make network namespaces: {error.stderr.strip()}")
        yield made
    finally:
        made.close()
