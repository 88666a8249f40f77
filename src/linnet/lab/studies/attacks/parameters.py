"""What can be chosen about the study of attacks."""

from __future__ import annotations

from msgspec import Struct

from linnet.lab.errors import LabError
from linnet.sim.attacks.catalogue import ATTACKS

MOST_REPEATS = 1000
NAMES = tuple(dict.fromkeys(attack.name for attack in ATTACKS))
"""Every attack that can be asked for."""


class AttacksParameters(Struct, frozen=True, kw_only=True):
    """Which attacks are run, and how often."""

    names: tuple[str, ...] = ()
    """The attacks; none: all."""
    repeats: int = 5
    """Runs of each attack and share, with other seeds."""
    seed: int = 1

    def checked(self) -> AttacksParameters:
        """These parameters; `LabError` says what cannot be run."""
        unknown = [name for name in self.names if name not in NAMES]
        if unknown:
            raise LabError(f"--attacks {unknown[0]}: one of {', '.join(NAMES)}")
        if not 1 <= self.repeats <= MOST_REPEATS:
            raise LabError(f"--repeats: give 1 to {MOST_REPEATS}")
        return self
