"""A home that version 0.1.0 wrote is opened by this version, and goes on with one that stays behind.

Everything that a home can hold is in it: a stream on a ring, a sealed stream, an encrypted room, a place.
Whoever changes a format or a message finds out here.
"""

from __future__ import annotations

import re
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.node.versions import THIS, Device, unpacked

pytestmark = pytest.mark.timeout(300)

PATIENCE = ("--timeout", "10")
READ = ("--from", "beginning", "--no-state", *PATIENCE)
KILLS = (0.25, 0.45, 0.6, 0.75, 0.9, 1.1)
"""Seconds after its start at which the first start of this version is killed, one after the other."""


class Pair:
    """Ann, whose home is upgraded, and Ben, who stays with the previous version."""

    def __init__(self, at: Path, previous: Path) -> None:
        self.ann, self.ben = Device(at / "ann", previous), Device(at / "ben", previous)
        self.diary = ""

    def up(self) -> None:
        self.ann.up("--overlay", "ring")
        self.ben.up("--overlay", "ring", "--bootstrap", self.ann.address)

    def down(self) -> None:
        self.ben.down()
        self.ann.down()

    def begin(self) -> None:
        """All that the two have in common, by the previous version."""
        ann, ben = self.ann, self.ben
        for device, label in ((ann, "ann"), (ben, "ben")):
            device.run("init", "--label", label)
        self.up()
        ann.run("room", "create", "tea")
        ben.run("room", "join", ann.run("room", "invite", "tea", "--no-qr").split()[-1])
        ann.run("room", "send", "tea", "milk?")
        ben.run("room", "send", "tea", "lemon!")
        ben.until("milk?", "room", "read", "tea", *READ, "--count", "2")
        ann.until("lemon!", "room", "read", "tea", *READ, "--count", "2")
        ben.run("place", "enter", _found(r"la1\w+", ann.run("place", "host", "shop")))
        ann.run("place", "announce", "shop", "the kettle is on")
        ben.until("the kettle is on", "place", "history", "shop")
        ann.run("declare", "me/diary", "--sealed")
        self.diary = f"{_found(r'lp1[a-z0-9]+', ann.run('status', '--json'))}/diary"
        ann.run("stream", "allow", "me/diary", _found(r"lr1\w+", ben.run("stream", "request", self.diary)))
        ann.run("publish", "me/diary", "dear diary")
        ben.until(
            "dear diary",
            "subscribe",
            self.diary,
            "--from",
            "beginning",
            "--count",
            "1",
            *PATIENCE,
            "--name",
            "d",
        )
        ann.run("publish", "weather", "rain")
        self.down()


def _found(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    assert found is not None, text
    return found.group()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """Two homes that the previous version wrote and left in good order."""
    at = tmp_path_factory.mktemp("written")
    pair = Pair(at, unpacked(at / "previous"))
    try:
        pair.begin()
    finally:
        pair.down()
    return pair


@pytest.fixture
def pair(written: Pair, tmp_path: Path) -> Iterator[Pair]:
    """The same homes, of which Ann's is this version's from now on."""
    pair = Pair(tmp_path, written.ben.sources)
    for device, original in ((pair.ann, written.ann), (pair.ben, written.ben)):
        shutil.copytree(original.home, device.home, ignore=shutil.ignore_patterns("*.sock"))
        device.port = original.port  # The other one has written it down.
    pair.diary, pair.ann.sources = written.diary, THIS
    yield pair
    pair.down()


def test_it_really_is_another_version(written: Pair) -> None:
    assert (written.ben.sources / "linnet" / "places").exists()
    assert not (written.ben.sources / "linnet" / "store" / "mark.py").exists()


def test_everything_that_was_written_is_there(pair: Pair) -> None:
    ann = pair.ann
    assert "all is well" in ann.run("doctor")
    ann.up("--overlay", "ring")
    said = ann.run("room", "read", "tea", *READ, "--count", "2")
    assert "milk?" in said
    assert "lemon!" in said
    assert "the kettle is on" in ann.run("place", "history", "shop")
    assert "ben" in ann.run("stream", "readers", "me/diary") or "1" in ann.run(
        "stream", "readers", "me/diary"
    )
    ann.down()
    assert "all are sound" in ann.run("doctor", "--store")


def test_the_two_versions_go_on_together(pair: Pair) -> None:
    ann, ben = pair.ann, pair.ben
    pair.up()
    ann.run("room", "send", "tea", "sugar?")
    ben.until("sugar?", "room", "read", "tea", *READ, "--count", "3")
    ben.run("room", "send", "tea", "two, please")
    ann.until("two, please", "room", "read", "tea", *READ, "--count", "4")
    ann.run("place", "announce", "shop", "cake is served")
    ben.until("cake is served", "place", "history", "shop")
    ann.run("publish", "me/diary", "a new day")
    ben.until("a new day", "subscribe", pair.diary, "--count", "1", *PATIENCE, "--name", "d")
    ben.run("publish", "weather", "sun")
    heard = ann.until(
        "sun", "subscribe", "weather", "--from", "beginning", "--count", "1", *PATIENCE, "--name", "w"
    )
    assert "sun" in heard


def test_an_upgrade_that_is_killed_again_and_again_ends_well(pair: Pair) -> None:
    ann = pair.ann
    for pause in KILLS:
        process = ann.started("--overlay", "ring")
        time.sleep(pause)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
    assert "all are sound" in ann.run("doctor", "--store")
    pair.up()
    ann.run("room", "send", "tea", "still here")
    pair.ben.until("still here", "room", "read", "tea", *READ, "--count", "3")
    assert "the kettle is on" in ann.run("place", "history", "shop")
