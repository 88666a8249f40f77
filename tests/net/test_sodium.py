"""libsodium: it is there when it is needed, once, and its file is not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from linnet.net.sodium import load

PROGRAM = """
import os, sys
from random import Random
from linnet.net.clock import Clock
from linnet.net.config import NetConfig
from linnet.net.driver import Driver
from linnet.overlay.gossip.private_set_intersection import RISTRETTO
from linnet.peer.config import PeerConfig
from linnet.peer.peer import Peer
from linnet.store.memory import MemoryStore
from linnet.testing.identities import known_identity
identity, store = known_identity("ann"), MemoryStore()
machine = Peer(PeerConfig(), identity, store, Random(1))
Driver(machine, identity.device, store, None, [], [], NetConfig(), print, Clock())
assert "rbcl" not in sys.modules
point = RISTRETTO.hash_to_group(b"x")
if child := os.fork():
    os.waitpid(child, 0)
print(RISTRETTO.multiply(RISTRETTO.reduce(b"\\x07" + bytes(63)), point).hex(), flush=True)
if sys.argv[1:]:
    os.kill(os.getpid(), 9)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a library in use cannot be removed there")
@pytest.mark.parametrize("killed", [(), ("killed",)], ids=["ends", "is killed"])
def test_a_process_leaves_nothing_in_the_temporary_folder(tmp_path: Path, killed: tuple[str, ...]) -> None:
    """However it ends, and though a child of it goes on with what is mapped."""
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", PROGRAM, *killed]
    done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True)
    assert done.stderr == ""
    lines = done.stdout.split()
    assert len(lines) == 2
    assert len(set(lines)) == 1
    assert list(tmp_path.iterdir()) == []


def test_loading_again_is_the_same_library() -> None:
    assert load() is load()
