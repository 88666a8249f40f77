"""Operations on keys wait at a relay, through real node machines, longer than what is said in the room."""

from __future__ import annotations

import pytest
from tests.rooms.circle import Circle

from linnet.rooms.commands import Sent, SetRetention
from linnet.rooms.config import RelayConfig, RelayPolicy
from linnet.rooms.event_types import GROUP, Newcomers
from linnet.trace.records import Kind

DAY = 86_400.0


@pytest.mark.parametrize(("lifetime", "reads"), [(30 * DAY, True), (60.0, False)])
def test_who_was_away_longer_than_the_retention_reads_what_is_there(lifetime: float, reads: bool) -> None:
    """Nobody else is there when ben is back. Were keys kept as messages are, it could read nothing."""
    relay = RelayConfig(RelayPolicy.OPEN, group_lifetime=lifetime, group_least=0.0)
    world = Circle("ann", "ben", "cat", "r0", relay=relay)
    world.found("ann", "ben", "r0", newcomers=Newcomers.FROM_NOW)
    world.run(20.0)
    world.get("ann", SetRetention(world.room, 60.0), Sent)
    world.run(5.0)
    world.offline("ben")
    world.run(5.0)
    world.say("ann", "old")
    world.run(120.0)
    world.join("cat", by="ann")  # from here on others hold the keys
    world.run(120.0)
    world.say("ann", "new")
    world.run(10.0)
    world.offline("ann", "cat")
    world.online("ben")
    world.run(60.0)
    assert world.heard("ben") == (["new"] if reads else [])
    gone = [record.note for _, _, record in world.notes.rows if record.kind is Kind.EXPIRED]
    assert gone.count(GROUP) > 0  # what all have read is not kept
