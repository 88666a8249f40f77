"""What relays come to know, beside what a homeserver would."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from linnet.sim.rooms.metadata import run_metadata
from linnet.sim.rooms.scenario import RoomScenario

SMALL = RoomScenario(peers=5, relays=2, messages=30, bans=0, demotions=0, latency="constant:10", quiet=90.0)


def test_without_a_limit_relays_hold_about_what_a_homeserver_does() -> None:
    report = run_metadata(SMALL, None)
    assert report.relay.control_events == report.homeserver.control_events
    assert 0.8 < report.held_share <= 1.0
    assert 0.8 < report.hours_share <= 1.0


def test_retention_leaves_control_events_and_little_else() -> None:
    report = run_metadata(SMALL, 30.0)
    assert report.held_share == 0.0
    assert 0.0 < report.hours_share < 0.5
    assert report.relay.plain_state == 0.0
    assert report.relay.events_seen > 0
    assert report.relay.control_events == report.homeserver.control_events


def test_a_run_replays() -> None:
    assert run_metadata(SMALL, 30.0) == run_metadata(SMALL, 30.0)


def test_without_relays_there_is_nothing_to_compare() -> None:
    with pytest.raises(ValueError, match="without relays"):
        run_metadata(replace(SMALL, relays=0), None)
