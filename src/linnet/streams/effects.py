"""What streams ask of the node machine around them, which passes most of it on to the driver."""

from __future__ import annotations

from typing import TypeAlias

from linnet.core.effects import (
    AfterCommit,
    Blame,
    CancelTimer,
    Deliver,
    HangUp,
    Hold,
    Release,
    Reply,
    Send,
    SetTimer,
)
from linnet.core.timers import Tick
from linnet.delivery.items import Item
from linnet.delivery.messages import DeliveryMessage
from linnet.edge.messages import EdgeMessage
from linnet.overlay.messages import OverlayMessage
from linnet.overlay.trackerless.messages import TrackerlessMessage
from linnet.streams.commands import StreamResult
from linnet.streams.messages import StreamMessage
from linnet.trace.records import Record

StreamPromise: TypeAlias = Send[DeliveryMessage | EdgeMessage] | Deliver[Item] | Reply[StreamResult] | Record

StreamEffect: TypeAlias = (
    Send[DeliveryMessage | OverlayMessage | TrackerlessMessage | EdgeMessage | StreamMessage]
    | Hold
    | Release
    | Blame
    | HangUp
    | SetTimer[Tick]
    | CancelTimer[Tick]
    | Deliver[Item]
    | Reply[StreamResult]
    | Record
    | AfterCommit[StreamPromise]
)
