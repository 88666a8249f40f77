"""What a judge says."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Rule(StrEnum):
    """What every way to subscribe promises, in its own terms."""

    MISSING = "missing"
    """Something acknowledged did not arrive, and nobody said so."""
    TOLD_LOST = "told as lost"
    """Something acknowledged that others hold was told as lost."""
    INVENTED = "invented"
    """Something arrived that nobody said."""
    DOUBLED = "doubled"
    """Something arrived twice where it must not."""
    REORDERED = "reordered"
    """Something arrived in another order than promised."""
    OLD = "old"
    """Something arrived that was said before it was asked for."""
    STATE = "state"
    """State is not what follows from what was said."""
    FORBIDDEN = "forbidden"
    """Somebody has what they may not have, or did what they may not do."""
    STUCK = "stuck"
    """Somebody who asked got no answer at all."""
    BUDGET = "budget"
    """Somebody did more than a quiet or broken situation allows."""
    FAILED = "failed"
    """A machine raised an error."""


class Complaint(Struct, frozen=True):
    """One promise that was not kept."""

    rule: Rule
    text: str
