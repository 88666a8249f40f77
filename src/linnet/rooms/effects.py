"""What a relay asks of the node machine around it, until it has an outbox."""

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
