"""What the user asks of a node without trackers: whom to trust, what was told, how it stands."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from linnet.core.ids import PeerId
from linnet.overlay.trackerless.privacy import BudgetIs
from linnet.overlay.trackerless.status import TrackerlessStatus

NO_PART = (
    "this node takes no part in overlays without trackers; start it with: linnet up --overlay ring, "
    "or set trackerless.enabled = true"
)
"""What a node says that is asked for what it has not."""


class SetTrust(Struct, frozen=True, gc=False):
    """Trust a device so much, or no longer. Answered by `TrustIs` or `Declined`."""

    peer: PeerId
    value: float | None
    """Above 0, up to 1; None: no longer."""


class ListTrust(Struct, frozen=True, gc=False):
    """Whom does the user trust? Answered by `TrustIs`."""


class ExaminePrivacy(Struct, frozen=True, gc=False):
    """What was told to others of our interests? Answered by `BudgetIs`, by every node."""


class ExamineOverlay(Struct, frozen=True, gc=False):
    """How does it stand? Answered by `TrackerlessStatus`."""


class TrustIs(Struct, frozen=True, gc=False):
    """Whom the user trusts, and how much. It stays on this device."""

    peers: tuple[tuple[PeerId, float], ...]


TrackerlessCommand: TypeAlias = SetTrust | ListTrust | ExaminePrivacy | ExamineOverlay
TrackerlessResult: TypeAlias = TrustIs | BudgetIs | TrackerlessStatus
