"""What content asks of the node."""

from __future__ import annotations

from typing import TypeAlias

from linnet.content.commands import ContentResult, Match
from linnet.content.directory import Locate
from linnet.content.messages import ContentMessage
from linnet.core.effects import CancelTimer, Deliver, Hold, Release, Reply, Send, SetTimer
from linnet.core.timers import Tick
from linnet.delivery.commands import Declined
from linnet.trace.records import Record

OWNER = "content"
PURPOSE = "content"

ContentEffect: TypeAlias = (
    Send[ContentMessage]
    | Hold
    | Release
    | SetTimer[Tick]
    | CancelTimer[Tick]
    | Deliver[Match]
    | Reply[ContentResult]
    | Reply[Declined]
    | Record
    | Locate
)
