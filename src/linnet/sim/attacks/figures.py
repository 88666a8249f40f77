"""What an attack on a simulated network gains and costs, in the same figures for every attack."""

from __future__ import annotations

from msgspec import Struct


class AttackFigures(Struct, frozen=True, kw_only=True):
    """The outcome of one attack, beside the same run without it."""

    attack: str
    """The name of the attack, as in `linnet sim rooms --attack NAME`."""
    share: float
    """The share of the nodes or relays that attack, from 0 to 1."""
    honest_due: int
    """The number of deliveries that are due between honest nodes."""
    delivered: int
    """The due deliveries that came although the attack ran."""
    delivered_without: int
    """The due deliveries that came in the same run without the attack."""
    worst_seconds: float
    """The longest time from an event to its delivery at an honest node."""
    told_after_seconds: float | None
    """The time from the first lie until an honest node noticed it; None if none did."""
    attacker_bytes: int
    """The bytes that the attackers sent."""
    honest_bytes: int
    """The bytes that the honest nodes sent."""
