"""What groups ask of the node."""

from __future__ import annotations

from typing import TypeAlias

from linnet.content.commands import Match
from linnet.content.directory import Locate
from linnet.content.fast.commands import FastResult
from linnet.content.fast.messages import FastMessage
from linnet.core.effects import CancelTimer, Deliver, Hold, Release, Reply, Send, SetTimer
from linnet.core.timers import Tick
from linnet.delivery.commands import Declined
from linnet.trace.records import Record

OWNER = "fast"
PURPOSE = "fast"

FastEffect: TypeAlias = (
    Send[FastMessage]
    | Hold
    | Release
    | SetTimer[Tick]
    | CancelTimer[Tick]
    | Deliver[Match]
    | Reply[FastResult]
    | Reply[Declined]
    | Record
    | Locate
)
