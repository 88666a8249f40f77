"""The base of simulated runs: progress, and reports that can be compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Self, TypeAlias

from msgspec import Struct
from msgspec.structs import asdict, replace

Progress: TypeAlias = Callable[[float, str], None]
"""Called with the progress of a run, from 0 to 1, and its present activity."""


def tell_nobody(done: float, what: str) -> None:
    """Ignore the progress."""


class RunReport(Struct, frozen=True, eq=False):
    """The outcome of one run. Two are equal if all fields that do not depend on the machine are equal."""

    OF_MACHINE: ClassVar[tuple[str, ...]] = ("wall_seconds",)
    """The fields that depend on the machine that ran the simulation."""

    def timeless(self) -> Self:
        """Return the report with the machine's fields set to zero."""
        return replace(self, **dict.fromkeys(self.OF_MACHINE, 0.0))

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return asdict(self.timeless()) == asdict(other.timeless())

    __hash__ = None  # type: ignore[assignment]
