"""The verdicts of judges."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Rule(StrEnum):
    """The promises of every way to subscribe, in its own terms."""

    MISSING = "missing"
    """Something acknowledged did not arrive, and that was not reported."""
    TOLD_LOST = "told as lost"
    """Something acknowledged that others hold was reported as lost."""
    INVENTED = "invented"
    """Something arrived that nobody sent."""
    DOUBLED = "doubled"
    """Something arrived twice where it must not."""
    REORDERED = "reordered"
    """Something arrived in another order than promised."""
    OLD = "old"
    """Something arrived that was sent before the subscription to it."""
    STATE = "state"
    """The state differs from the one that follows from the events."""
    FORBIDDEN = "forbidden"
    """A node has what it may not have, or did what it may not do."""
    STUCK = "stuck"
    """A command got no answer at all."""
    BUDGET = "budget"
    """A node did more than a quiet or broken situation allows."""
    ACCUSED = "accused"
    """A node is proved to lie that is honest."""
    FAILED = "failed"
    """A machine raised an error."""


class Complaint(Struct, frozen=True):
    """One broken promise."""

    rule: Rule
    text: str
