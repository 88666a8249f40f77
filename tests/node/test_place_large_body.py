"""A file from the host through a guest to another one, all of them processes that are killed in the middle.

It is gone on with where it was, arrives whole, and no process ever holds more of it than a few pieces.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.node.place_drop import Drop, Peaks, made_file
from tests.node.place_world import BRISK, HOST, PlaceWorld

from linnet.places.multicast.fragmentation import PIECE_BYTES

MB = 1_000_000
SOAK = bool(os.environ.get("LINNET_SOAK"))
SIZE = 200 * MB if SOAK else 8 * MB
SENT = 1.5 if SOAK else 2.0
"""Times that a piece may come on average: who began anew at each kill would have 2.0 (the first guest) and
1.6 (the second). Of a short body most is under way when somebody is killed, so there it shows less."""
CONFIG = replace(BRISK, places=replace(BRISK.places, fanout=1, upstreams=1))
"""Each sends to one other: from the host to one guest, and from that to the next."""
GROWTH = 64 * MB
"""Bytes that a process may have resident past what it has with nothing to do: caches of SQLite, its log
before a checkpoint, what is under way to one link, to the disk and to one who listens. Each is bounded."""


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.timeout(1800 if SOAK else 240)
def test_a_file_goes_on_behind_kills_and_memory_stays_bounded(tmp_path: Path) -> None:
    digest = made_file(tmp_path / "film", SIZE)
    with PlaceWorld(tmp_path, 2, 1, CONFIG) as world:
        world.set_up(2)
        peaks = Peaks(world)
        peaks.look()
        idle = dict(peaks.bytes)
        peaks.start()
        drop = Drop(world, tmp_path / "film", {0.2: "guest0", 0.4: HOST, 0.6: "guest1", 0.8: "guest0"})
        drop.send()
        fetched = {name: drop.fetch(name) for name in world.guests}
        peaks.end()
        comings = {name: drop.comings(name) for name in world.guests}
        stored = {name: drop.stored(name) for name in world.nodes}
    pieces = SIZE // PIECE_BYTES
    print(f"{pieces} pieces; came, again: {comings}; resumed at {drop.resumed_at}; stored: {stored}")
    print({name: f"{idle[name] / MB:.0f} MB idle, {peaks.bytes[name] / MB:.0f} at most" for name in idle})
    assert fetched == dict.fromkeys(world.guests, digest)
    assert world.killed == {HOST: 1, "guest0": 2, "guest1": 1}
    assert drop.resumed_at
    assert min(drop.resumed_at) > SIZE / 4
    for came, again in comings.values():
        assert came + again < SENT * pieces + 64
    assert all(peaks.bytes[name] < idle[name] + GROWTH for name in idle)
    assert all(each < 1.25 * SIZE + 24 * MB for each in stored.values())
