"""What can happen to the machines of the tracker overlay, and what they ask."""

from __future__ import annotations

from typing import TypeAlias

from linnet.core.effects import CancelTimer, Hold, Probe, Release, Send, SetTimer
from linnet.core.inputs import DialFailed, LinkDown, LinkUp, Probed, Received, TimerFired
from linnet.core.timers import Tick
from linnet.overlay.messages import OverlayMessage
from linnet.overlay.notices import OverlayNotice
from linnet.trace.records import Record

OverlayInput: TypeAlias = (
    LinkUp | LinkDown | DialFailed | Probed | Received[OverlayMessage] | TimerFired[Tick]
)

TrackerEffect: TypeAlias = Send[OverlayMessage] | Probe | SetTimer[Tick] | CancelTimer[Tick] | Record
"""What a tracker asks. It never dials nodes but to see whether they can be."""

MemberEffect: TypeAlias = (
    Send[OverlayMessage] | Hold | Release | SetTimer[Tick] | CancelTimer[Tick] | Record | OverlayNotice
)
"""What a node's side asks, and what it tells the machine above it, in one order."""
