"""Kill -9 at any moment: what was acknowledged is there, and the file opens."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from tests.store.entries import NEWS, unit

from linnet.store.sqlite import SqliteStore

TIMES = 50 if os.environ.get("LINNET_SOAK") == "1" else 3

CHILD = """
import os, sys
from pathlib import Path
from linnet.store.sqlite import SqliteStore
from tests.store.entries import NEWS, unit

store = SqliteStore(Path(sys.argv[1]))

def acknowledge(position):
    os.write(1, b"%d\\n" % position)

while True:
    position = store.log.end() + 1
    assert store.log.append(unit(position, size=position * 37 % 2000)) == position
    store.cells.put("cursor", b"news", b"%d" % position)
    if position % 5 == 0 or store.backlog > 100_000:
        store.commit(lambda position=position: acknowledge(position))
    while store.backlog > 1_000_000:
        pass
"""


@pytest.mark.parametrize("seed", range(TIMES))
def test_a_kill_loses_nothing_that_was_acknowledged(tmp_path: Path, seed: int) -> None:
    luck = random.Random(seed)
    path = tmp_path / "store.db"
    acknowledged = 0
    for _ in range(2):  # the second life continues the file of the first
        acknowledged = max(acknowledged, live_and_die(path, luck.uniform(0.0, 0.4), luck.randint(1, 50)))
        check(path, acknowledged)


def live_and_die(path: Path, seconds: float, lines: int) -> int:
    """Let a writer run for some lines and some time more, kill it; the last position it promised."""
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(path)], stdout=subprocess.PIPE)
    assert child.stdout is not None
    said = [child.stdout.readline() for _ in range(lines)]
    time.sleep(seconds)  # a random moment is what is tested
    child.kill()
    said += child.stdout.read().splitlines(keepends=True)
    child.wait()
    child.stdout.close()
    whole = [int(line) for line in said if line.endswith(b"\n")]
    assert whole, "the writer died by itself"
    assert whole == sorted(whole)
    return whole[-1]


def check(path: Path, acknowledged: int) -> None:
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    store = SqliteStore(path)
    held = store.log.read(NEWS, 0, 10_000_000)
    assert len(held) >= acknowledged
    expected = [(position, unit(position, size=position * 37 % 2000)) for position in range(1, len(held) + 1)]
    assert held == expected
    assert store.cells.get("cursor", b"news") == b"%d" % len(held)
    assert store.log.kept(NEWS).units == store.log.end() == len(held)
    assert [(head.first, head.last) for head in store.log.heads(NEWS)] == [(1, len(held))]
    store.close()
