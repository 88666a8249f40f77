"""Rooms through random histories: joins, bans, demotions, partitions, crashes, loss; then all agree."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.rooms.histories import History

from linnet.rooms.config import RoomsConfig

SOAK = bool(os.environ.get("LINNET_SOAK"))
ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("seed", range(400 if SOAK else 12))
def test_all_who_are_inside_agree(seed: int) -> None:
    history = History(seed)
    history.play()
    history.check()


@pytest.mark.parametrize("seed", range(1000, 1200 if SOAK else 1005))
def test_all_who_are_inside_agree_though_messages_are_lost(seed: int) -> None:
    history = History(seed, loss=0.05)
    history.play()
    history.check()


@pytest.mark.parametrize("seed", range(2000, 2200 if SOAK else 2004))
def test_all_who_are_inside_agree_with_relays(seed: int) -> None:
    history = History(seed, relays=2)
    history.play()
    history.check()


@pytest.mark.parametrize("seed", range(3000, 3050 if SOAK else 3002))
def test_long_histories(seed: int) -> None:
    history = History(seed, loss=0.02, relays=1, steps=300)
    history.play()
    history.check()


@pytest.mark.parametrize("seed", range(4000, 4200 if SOAK else 4003))
def test_little_room_to_wait_and_small_pages(seed: int) -> None:
    small = RoomsConfig(waiting_events=3, page_events=2, page_bytes=1500, mesh=2)
    history = History(seed, loss=0.02, relays=seed % 2, config=small)
    history.play()
    history.check()


def test_a_history_is_the_same_in_every_process() -> None:
    digests = []
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "tests.rooms.histories", "5"]
        done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)
        digests.append(done.stdout)
    assert len(digests[0].strip()) == 64
    assert digests[0] == digests[1]
