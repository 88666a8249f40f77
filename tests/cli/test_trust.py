from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.shell import Linnet
from tests.cli.village import up

from linnet.identity.text import Sort, to_text

FRIEND = to_text(Sort.DEVICE, b"f" * 32)
OTHER = to_text(Sort.DEVICE, b"o" * 32)


@pytest.fixture(scope="module")
def ring(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Linnet]:
    with up(tmp_path_factory.mktemp("trust") / "ring", "--overlay", "ring") as shell:
        yield shell


def test_trust_is_added_listed_and_removed(ring: Linnet) -> None:
    assert "you trust no device" in ring.ok("trust", "list")
    assert ring.ok("trust", "add", f"{FRIEND}@192.0.2.7:1", "--value", "0.5") == f"trust {FRIEND} with 0.5\n"
    ring.ok("trust", "add", OTHER)
    assert ring.json("trust", "list") == {
        "devices": [{"device": OTHER, "value": 1.0}, {"device": FRIEND, "value": 0.5}]
    }
    shown = ring.ok("trust", "list").splitlines()[2:]
    assert [line.split() for line in shown] == [[OTHER, "1"], [FRIEND, "0.5"]]
    assert ring.ok("trust", "remove", OTHER) == f"no longer trust {OTHER}\n"
    assert ring.json("trust", "remove", FRIEND) == {"devices": []}


def test_what_is_wrong_is_told(ring: Linnet, running: Linnet, tmp_path: Path) -> None:
    assert "above 0, at most 1" in ring.fails(2, "trust", "add", FRIEND, "--value", "0")
    assert "above 0, at most 1" in ring.fails(2, "trust", "add", FRIEND, "--value", "nan")
    assert "some are missing" in ring.fails(2, "trust", "add", FRIEND[:-4])
    assert "no trust was set in this device" in ring.fails(1, "trust", "remove", OTHER)
    assert "linnet up --overlay ring" in running.fails(1, "trust", "list")
    assert "start one with: linnet up" in Linnet(tmp_path / "none").fails(69, "trust", "list")
