"""Checking a signature once for all nodes of a simulation, instead of once for each.

The results are those of `linnet.event.signing.verify_unit` and `linnet.identity.cards.check_card`,
forgeries included: they are remembered by the whole value, never by an id that it only claims.
"""

from __future__ import annotations

from linnet.core.errors import InvalidEvent, RemoteError
from linnet.event.event import Unverified, Verified
from linnet.event.signing import verify_unit
from linnet.identity.cards import Card, check_card

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


class RememberingCardCheck:
    """`check_card` with its results remembered; one for all nodes of a network."""

    __slots__ = ("_results", "checked")

    def __init__(self) -> None:
        self._results: dict[Card, RemoteError | None] = {}
        self.checked = 0
        """Signatures that were really checked."""

    def __call__(self, card: Card) -> None:
        """See `check_card`; raises `RemoteError` alike."""
        if card not in self._results:
            if len(self._results) >= REMEMBERED:
                del self._results[next(iter(self._results))]
            self._results[card] = self._check(card)
        failure = self._results[card]
        if failure is not None:
            raise RemoteError(failure.reason, failure.detail)

    def _check(self, card: Card) -> RemoteError | None:
        self.checked += 1
        try:
            check_card(card)
        except RemoteError as error:
            return error
        return None
