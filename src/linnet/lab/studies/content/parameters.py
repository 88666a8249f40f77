"""What can be chosen about the study of content."""

from __future__ import annotations

from msgspec import Struct

from linnet.lab.errors import LabError

NODES = (60,)
"""Of the published scenarios."""
STAGED_NODES = 75
BACKUPS = (1, 2, 3, 5)
"""Of the published replication."""
LONG_NODES = 30
LEAST, MOST = 15, 10_000
MOST_BACKUPS = 8


class ContentParameters(Struct, frozen=True, kw_only=True):
    """How much is run."""

    nodes: tuple[int, ...] = NODES
    """Nodes of each network in which the scenarios are run."""
    staged: int = STAGED_NODES
    """Nodes of the network of replication; 0: none."""
    backups: tuple[int, ...] = BACKUPS
    """Backups of a node in it, each in a run of its own."""
    long: int = LONG_NODES
    """Nodes of the long run; 0: none."""
    repeats: int = 1
    """Runs of each, with other seeds."""
    seed: int = 1

    def checked(self) -> ContentParameters:
        """These parameters; `LabError` says what cannot be run."""
        if not self.nodes or any(not LEAST <= each <= MOST for each in self.nodes):
            raise LabError(f"--nodes: give some from {LEAST} to {MOST}")
        if len(dict.fromkeys(self.nodes)) != len(self.nodes):
            raise LabError("--nodes: give each once")
        for option, size in (("--staged", self.staged), ("--long", self.long)):
            if size and not LEAST <= size <= MOST:
                raise LabError(f"{option}: give 0, or {LEAST} to {MOST}")
        if any(not 0 <= each <= MOST_BACKUPS for each in self.backups):
            raise LabError(f"--backups: give some from 0 to {MOST_BACKUPS}")
        if self.repeats < 1:
            raise LabError("--repeats: give 1 or more")
        return self
