"""What can be chosen about matching at scale."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from linnet.lab.errors import LabError

MOST = 100_000_000


class MatchParameters(Struct, frozen=True, kw_only=True):
    """How much is matched."""

    events: int = 100_000
    subscriptions: int = 100_000
    data: str = ""
    """A folder with real streams; without one, records are drawn."""
    plain: int = 1_000
    """Events, and subscriptions, of the plain join beside it; 0: none is run."""
    sample: int = 100
    """Events whose matches are worked out by the shipped index as well."""
    capacity: int = 20_000
    """Predicates of one piece, about: what one task has in memory."""
    seed: int = 1

    def checked(self) -> MatchParameters:
        """These parameters; `LabError` says what cannot be run."""
        if self.data and not Path(self.data).is_dir():
            raise LabError(f"--data {self.data}: there is no such folder")
        if not 1 <= self.events <= MOST or not 1 <= self.subscriptions <= MOST:
            raise LabError(f"--events and --subscriptions: give 1 to {MOST}")
        if not 0 <= self.plain <= 20_000:
            raise LabError("--plain: give 0 to 20000; it grows with the square of that")
        if not 1 <= self.sample <= 10_000:
            raise LabError("--sample: give 1 to 10000")
        if not 10 <= self.capacity <= 1_000_000:
            raise LabError("--capacity: give 10 to 1000000")
        return self
