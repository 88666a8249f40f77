"""What content asks of the node."""

from __future__ import annotations

from typing import TypeAlias

from linnet.content.commands import ContentItem, ContentResult, InGroups
from linnet.content.directory import Locate
from linnet.content.messages import ContentMessage
from linnet.core.effects import AfterCommit, CancelTimer, Deliver, Hold, Release, Reply, Send, SetTimer
from linnet.core.timers import Tick
from linnet.delivery.commands import Declined, Done
from linnet.delivery.items import Ended
from linnet.trace.records import Record

OWNER = "content"
PURPOSE = "content"

ContentPromise: TypeAlias = (
    Send[ContentMessage]
    | Deliver[ContentItem | Ended | InGroups]
    | Reply[ContentResult]
    | Reply[Declined]
    | Reply[Done]
    | Record
)
"""What may have to wait until something is durable."""

ContentEffect: TypeAlias = (
    Send[ContentMessage]
    | Hold
    | Release
    | SetTimer[Tick]
    | CancelTimer[Tick]
    | Deliver[ContentItem | Ended | InGroups]
    | Reply[ContentResult]
    | Reply[Declined]
    | Reply[Done]
    | Record
    | AfterCommit[ContentPromise]
    | Locate
)
