"""What rooms ask of the node machine around them, which passes most of it on to the driver."""

from __future__ import annotations

from typing import TypeAlias

from linnet.core.effects import (
    AfterCommit,
    Blame,
    CancelTimer,
    Deliver,
    Hold,
    Release,
    Reply,
    Send,
    SetTimer,
)
from linnet.core.timers import Tick
from linnet.delivery.items import Item
from linnet.delivery.messages import Data
from linnet.overlay.messages import OverlayMessage
from linnet.overlay.trackerless.messages import TrackerlessMessage
from linnet.rooms.messages import RoomMessage
from linnet.rooms.relay_notices import RelayNotice
from linnet.rooms.results import RoomResult
from linnet.trace.records import Record

RoomPromise: TypeAlias = Send[Data | RoomMessage] | Deliver[Item] | Reply[RoomResult] | Record
RoomEffect: TypeAlias = (
    Send[Data | RoomMessage | OverlayMessage | TrackerlessMessage]
    | Hold
    | Release
    | Blame
    | SetTimer[Tick]
    | CancelTimer[Tick]
    | Deliver[Item]
    | Reply[RoomResult]
    | Record
    | AfterCommit[RoomPromise]
)
RoomStep: TypeAlias = RoomEffect | RelayNotice
"""With the notices of the use of relays among them, which `linnet.rooms.room` heeds."""
