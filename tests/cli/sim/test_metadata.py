"""``linnet sim metadata``."""

from __future__ import annotations

from pathlib import Path

from tests.cli.shell import Linnet

SMALL = ("--peers", "4", "--relays", "1", "--messages", "10")


def test_relays_and_homeservers_stand_side_by_side(tmp_path: Path) -> None:
    linnet = Linnet(tmp_path)
    printed = linnet.ok("sim", "metadata", *SMALL)
    assert "a homeserver" in printed
    assert "event-hours" in printed
    told = linnet.json("sim", "metadata", *SMALL, "--retention", "20")
    assert told["held_share"] == 0.0
    assert told["relay"]["control_events"] == told["homeserver"]["control_events"]
