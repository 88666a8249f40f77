"""What can be chosen about the study of retention."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from linnet.lab.errors import LabError
from linnet.lab.studies.retention.sweep import MINUTE, RETENTIONS

MOST_RELAYS = 100


class PresenceBy(StrEnum):
    """Who is online when."""

    MARGINS = "margins"
    PHONES = "phones"
    BOTH = "both"


class RetentionParameters(Struct, frozen=True, kw_only=True):
    """Where chats and presence come from, what is swept, and what is asked of a retention."""

    chats: Path
    """Folder with the table of messages."""
    presence: PresenceBy = PresenceBy.MARGINS
    sessions: Path | None = None
    """Folder with the table of phones' sessions, if presence wants them."""
    retentions: tuple[int, ...] = RETENTIONS
    """Milliseconds; none, our default and unlimited are always there besides."""
    relays: tuple[int, ...] = (0, 1, 2, 3)
    """Relays of a room; 0 is P2P."""
    served: float = 0.99
    """Share of what unlimited retention serves that a recommended one serves at least."""
    lively: int = MINUTE
    """Milliseconds of the median pause up to which a room is lively."""
    seed: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.served <= 1:
            raise LabError(f"a share of {self.served} of the pairs cannot be asked for: above 0, at most 1")
        if not self.relays or not all(0 <= number <= MOST_RELAYS for number in self.relays):
            raise LabError(f"numbers of relays are from 0 to {MOST_RELAYS}, not {list(self.relays)}")
        if self.lively < 0:
            raise LabError(f"a median pause of {self.lively} ms cannot be")
        if (self.presence is not PresenceBy.MARGINS) != (self.sessions is not None):
            raise LabError("presence by phones needs a folder of their sessions, and margins need none")
