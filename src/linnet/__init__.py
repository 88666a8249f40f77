"""Linnet: publish-subscribe without servers, with a receipt for every message.

The names below are the library; each is imported from its module when it is first used, so that
``import linnet`` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from linnet.api.errors import NodeUnreachable
    from linnet.core.errors import BadText, ConfigError, LinnetError, Refused, StoreError
    from linnet.core.reasons import Reason
    from linnet.delivery.items import (
        CaughtUp,
        CutOff,
        Ended,
        Forked,
        Missed,
        Overdue,
        RelayFaulty,
        StorageDiffers,
        StorageTold,
    )
    from linnet.delivery.receipts import Fate, ReceiverFate
    from linnet.event.event import Event
    from linnet.node.attached import AttachedNode
    from linnet.node.config import (
        LanSection,
        NodeConfig,
        NodeSection,
        RelaySection,
        StorageSection,
        StreamSection,
        TrackerSection,
    )
    from linnet.node.home import HomeBusy, HomeError
    from linnet.node.library import Node
    from linnet.node.rooms import Room
    from linnet.node.subscription import Subscription
    from linnet.overlay.config import Overlay
    from linnet.peer.interface import NodeStatus
    from linnet.rooms.config import RelayPolicy, RoomsConfig
    from linnet.rooms.event_types import JoinRule, Membership
    from linnet.rooms.invitations import Invitation
    from linnet.streams.commands import Policy, Published

__all__ = [
    "AttachedNode",
    "BadText",
    "CaughtUp",
    "ConfigError",
    "CutOff",
    "Ended",
    "Event",
    "Fate",
    "Forked",
    "HomeBusy",
    "HomeError",
    "Invitation",
    "JoinRule",
    "LanSection",
    "LinnetError",
    "Membership",
    "Missed",
    "Node",
    "NodeConfig",
    "NodeSection",
    "NodeStatus",
    "NodeUnreachable",
    "Overdue",
    "Overlay",
    "Policy",
    "Published",
    "Reason",
    "ReceiverFate",
    "Refused",
    "RelayFaulty",
    "RelayPolicy",
    "RelaySection",
    "Room",
    "RoomsConfig",
    "StorageDiffers",
    "StorageSection",
    "StorageTold",
    "StoreError",
    "StreamSection",
    "Subscription",
    "TrackerSection",
]

_MODULES = {
    "linnet.core.errors": ("BadText", "ConfigError", "LinnetError", "Refused", "StoreError"),
    "linnet.core.reasons": ("Reason",),
    "linnet.delivery.receipts": ("Fate", "ReceiverFate"),
    "linnet.delivery.items": (
        "CaughtUp",
        "CutOff",
        "Ended",
        "Forked",
        "Missed",
        "Overdue",
        "RelayFaulty",
        "StorageDiffers",
        "StorageTold",
    ),
    "linnet.event.event": ("Event",),
    "linnet.node.attached": ("AttachedNode",),
    "linnet.api.errors": ("NodeUnreachable",),
    "linnet.node.home": ("HomeBusy", "HomeError"),
    "linnet.node.config": (
        "LanSection",
        "NodeConfig",
        "NodeSection",
        "RelaySection",
        "StorageSection",
        "StreamSection",
        "TrackerSection",
    ),
    "linnet.node.library": ("Node",),
    "linnet.node.rooms": ("Room",),
    "linnet.node.subscription": ("Subscription",),
    "linnet.overlay.config": ("Overlay",),
    "linnet.peer.interface": ("NodeStatus",),
    "linnet.rooms.config": ("RelayPolicy", "RoomsConfig"),
    "linnet.rooms.event_types": ("JoinRule", "Membership"),
    "linnet.rooms.invitations": ("Invitation",),
    "linnet.streams.commands": ("Policy", "Published"),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'linnet' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
