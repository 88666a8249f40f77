"""Linnet: publish-subscribe without servers, with a receipt for every message.

The names below are the library; each is imported from its module when it is first used, so that
``import linnet`` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from linnet.core.errors import BadText, ConfigError, LinnetError, Refused, StoreError
    from linnet.core.reasons import Reason
    from linnet.delivery.items import CaughtUp, Ended, Missed, Overdue
    from linnet.event.event import Event
    from linnet.node.attached import AttachedNode, AttachedSubscription
    from linnet.node.caller import NodeUnreachable
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
    from linnet.node.room import Room
    from linnet.node.subscription import Subscription
    from linnet.overlay.config import Overlay
    from linnet.peer.interface import NodeStatus
    from linnet.rooms.config import RelayPolicy, RoomsConfig
    from linnet.rooms.content import JoinRule, Membership
    from linnet.rooms.invitation import Invitation
    from linnet.streams.commands import Fate, Policy, Published

__all__ = [
    "AttachedNode",
    "AttachedSubscription",
    "BadText",
    "CaughtUp",
    "ConfigError",
    "Ended",
    "Event",
    "Fate",
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
    "Refused",
    "RelayPolicy",
    "RelaySection",
    "Room",
    "RoomsConfig",
    "StorageSection",
    "StoreError",
    "StreamSection",
    "Subscription",
    "TrackerSection",
]

_MODULES = {
    "linnet.core.errors": ("BadText", "ConfigError", "LinnetError", "Refused", "StoreError"),
    "linnet.core.reasons": ("Reason",),
    "linnet.delivery.items": ("CaughtUp", "Ended", "Missed", "Overdue"),
    "linnet.event.event": ("Event",),
    "linnet.node.attached": ("AttachedNode", "AttachedSubscription"),
    "linnet.node.caller": ("NodeUnreachable",),
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
    "linnet.node.room": ("Room",),
    "linnet.node.subscription": ("Subscription",),
    "linnet.overlay.config": ("Overlay",),
    "linnet.peer.interface": ("NodeStatus",),
    "linnet.rooms.config": ("RelayPolicy", "RoomsConfig"),
    "linnet.rooms.content": ("JoinRule", "Membership"),
    "linnet.rooms.invitation": ("Invitation",),
    "linnet.streams.commands": ("Fate", "Policy", "Published"),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'linnet' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
