"""Who was put out of a room while away is told so, over links that close when nobody needs them."""

from __future__ import annotations

import pytest

from linnet.core.reasons import Reason
from linnet.machine.commands import Declined
from linnet.peer.config import PeerConfig
from linnet.rooms.commands import (
    AddRelay,
    CreateRoom,
    JoinRoom,
    MakeTicket,
    RoomMade,
    SendToRoom,
    Sent,
    SetMembership,
    TicketMade,
)
from linnet.rooms.config import RelayConfig, RelayPolicy
from linnet.rooms.event_types import Membership

from .moving import Moving


@pytest.mark.parametrize("restarts", [0, 1])
@pytest.mark.parametrize("there", ["relay", "cal", "ann"])
@pytest.mark.parametrize(
    ("how", "reason"), [(Membership.BAN, Reason.BANNED), (Membership.LEAVE, Reason.NOT_A_MEMBER)]
)
def test_who_was_put_out_while_away_is_told_by_whoever_is_there(
    how: Membership, reason: Reason, there: str, restarts: int
) -> None:
    moving = Moving(commit_delay=0.05)  # As on a disk: an answer may wait while the link is let go.
    moving.add("relay", PeerConfig(relay=RelayConfig(policy=RelayPolicy.OPEN)))
    for name in ("ann", "ben", "cal"):
        moving.add(name, PeerConfig())
    room = moving.get("ann", CreateRoom("tea", newcomers=None), RoomMade).room
    for name in ("ben", "cal"):
        made = moving.get("ann", MakeTicket(room, int((moving.network.now + 3600) * 1000)), TicketMade)
        moving.get(name, JoinRoom(room, made.ticket, made.contacts), RoomMade)
    moving.get("ann", AddRelay(room, moving.contact("relay")), Sent)
    moving.run(5.0)
    for _ in range(restarts):
        moving.stop("relay", "ben")
        moving.start("relay", "ben")
        moving.run(5.0)
    moving.stop("ben")
    moving.run(1.0)
    moving.get("ann", SetMembership(room, moving.identity["ben"].card.person, how, "enough"), Sent)
    moving.run(5.0)
    moving.stop(*(name for name in ("ann", "cal", "relay") if name != there))
    moving.run(1.0)
    moving.start("ben")
    moving.run(20.0)
    said = moving.get("ben", SendToRoom(room, (b"still here",)), Declined)
    assert said.reason is reason
