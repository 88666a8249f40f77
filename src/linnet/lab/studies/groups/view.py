"""All that the parts of the report look at."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from linnet.lab.report.published import Published
from linnet.lab.studies.groups.authors import Authors
from linnet.lab.studies.groups.circle import PARTS
from linnet.lab.studies.groups.metrics import Growth, Outcomes, growth_of
from linnet.lab.studies.groups.parameters import GroupsParameters
from linnet.lab.studies.groups.workload import FIRST_UPDATE, PUBLISHED

NAMES = {
    "create": "create",
    "add": "add",
    "remove": "remove",
    "update": "update",
    "message": "message of 32 bytes",
    FIRST_UPDATE: "update, first of its sender",
}
"""Operations in words."""


class View(Struct, frozen=True):
    """Parameters, what was run, and what is published."""

    parameters: GroupsParameters
    outcomes: Outcomes
    published: Published
    authors: Authors | None = None
    """The raw measurements, if they are here."""

    @property
    def operations(self) -> tuple[str, ...]:
        """Those of which bytes were counted."""
        return (*PUBLISHED, FIRST_UPDATE)

    def bytes(self, operation: str, size: int, measure: str = "body_bytes") -> int | None:
        """What all clients sent for it."""
        return self.outcomes.count(operation, size, measure)

    def cpu(self, operation: str, size: int, role: str, parts: Sequence[str] = PARTS) -> float | None:
        """Milliseconds of one client, mean of repeats."""
        found = self.outcomes.cpu(operation, size, role, parts)
        return None if found is None else found.mean

    def printed(self, id: str) -> float | None:
        """A published number, if there is one."""
        return self.published.number(id) if id in self.published else None

    def byte_growth(self, operation: str, measure: str = "body_bytes") -> Growth | None:
        """How bytes grow with the group."""
        sizes = self.parameters.ordered
        found = {size: self.bytes(operation, size, measure) for size in sizes}
        return growth_of({size: float(value) for size, value in found.items() if value is not None})

    def cpu_growth(self, operation: str, role: str) -> Growth | None:
        """How processor time grows with the group."""
        found = {size: self.cpu(operation, size, role) for size in self.outcomes.sizes(operation)}
        return growth_of({size: value for size, value in found.items() if value is not None})

    def printed_growth(self, prefix: str, suffix: str = "") -> Growth | None:
        """How what is published grows, over the same sizes."""
        found = {size: self.printed(f"{prefix}.{size}{suffix}") for size in self.parameters.ordered}
        return growth_of({size: value for size, value in found.items() if value is not None})
