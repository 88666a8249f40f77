"""Checking a signature once for all nodes of a simulation, instead of once for each.

The result is the one that `linnet.event.signing.verify_unit` gives, forgeries included: it is
remembered by the whole unit and the whole card, never by an id that a unit only claims.
"""

from __future__ import annotations

from linnet.core.errors import InvalidEvent
from linnet.event.event import Unverified, Verified
from linnet.event.signing import verify_unit
from linnet.identity.cards import Card

REMEMBERED = 65_536
"""Results that are kept: above what is on its way at once in any scenario of ours."""


class RememberingVerifier:
    """`verify_unit` with its results remembered; one for all nodes of a network."""

    __slots__ = ("_last_card", "_last_result", "_last_unit", "_results", "checked")

    def __init__(self) -> None:
        self._results: dict[tuple[Unverified, Card], Verified | InvalidEvent] = {}
        self._last_unit: Unverified | None = None
        self._last_card: Card | None = None
        self._last_result: Verified | None = None
        self.checked = 0
        """Signatures that were really checked."""

    def __call__(self, unit: Unverified, card: Card) -> Verified:
        """See `verify_unit`; raises `InvalidEvent` alike."""
        # The very same object again is the common case by far: a flood passes it from node to node.
        if unit is self._last_unit and card is self._last_card and self._last_result is not None:
            return self._last_result
        question = (unit, card)
        result = self._results.get(question)
        if result is None:
            result = self._check(unit, card)
            if len(self._results) >= REMEMBERED:
                del self._results[next(iter(self._results))]
            self._results[question] = result
        if isinstance(result, InvalidEvent):
            raise InvalidEvent(result.reason, result.detail)
        self._last_unit, self._last_card, self._last_result = unit, card, result
        return result

    def _check(self, unit: Unverified, card: Card) -> Verified | InvalidEvent:
        self.checked += 1
        try:
            return verify_unit(unit, card)
        except InvalidEvent as error:
            return error
