"""What a study of places is asked for."""

from __future__ import annotations

from msgspec import Struct

from linnet.lab.errors import LabError

MESSAGES = 5_000
"""Messages of a place of the large log; some are cut in two, so that it has a few more fragments."""
PIECES = 1.05
"""Fragments for each message of the script, about."""
MOST = 1_000_000_000


class PlacesParameters(Struct, frozen=True, kw_only=True):
    """How many random logs are compared, and how large the log is that is measured."""

    logs: int = 300
    """Places with a random log, for which every job is held against the shipped classes."""
    fragments: int = 1_000_000
    """Fragments of the large log, about; 0: none is made."""
    ids: int = 4
    """Messages of each place for which its state is wanted."""
    seed: int = 1

    def checked(self) -> PlacesParameters:
        """These parameters; `LabError` says what cannot be run."""
        if self.logs < 1:
            raise LabError("--logs: give at least one")
        if not 0 <= self.fragments <= MOST:
            raise LabError(f"--fragments: give 0, or up to {MOST:,}")
        if self.ids < 1:
            raise LabError("--ids: give at least one message of each place")
        return self

    @property
    def messages(self) -> int:
        """Messages of each place of the large log."""
        return max(2, min(MESSAGES, round(self.fragments / PIECES)))

    @property
    def places(self) -> int:
        """Places of the large log."""
        return max(1, round(self.fragments / (self.messages * PIECES)))
