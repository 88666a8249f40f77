"""What places ask of the node machine around them, which passes most of it on to the driver."""

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
from linnet.delivery.commands import Declined, Done
from linnet.delivery.items import Item
from linnet.delivery.messages import Data
from linnet.places.commands import PlaceResult
from linnet.places.items import PlaceItem
from linnet.places.messages import PlaceMessage
from linnet.trace.records import Record

PlacePromise: TypeAlias = (
    Send[Data | PlaceMessage] | Deliver[Item | PlaceItem] | Reply[PlaceResult | Done | Declined] | Record
)
PlaceEffect: TypeAlias = (
    Send[Data | PlaceMessage]
    | Hold
    | Release
    | Blame
    | SetTimer[Tick]
    | CancelTimer[Tick]
    | Deliver[Item | PlaceItem]
    | Reply[PlaceResult | Done | Declined]
    | Record
    | AfterCommit[PlacePromise]
)
