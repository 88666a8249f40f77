"""The device cards that this node knows, and which of them were revoked."""

from __future__ import annotations

import msgspec

from linnet.core.errors import InvalidEvent, RemoteError
from linnet.core.ids import AuthorId, DeviceId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.identity.cards import (
    Card,
    CardCheck,
    Revocation,
    check_card,
    check_dates,
    check_revocation,
    is_good,
)

_CARDS = "card"
_SPARE = "card spare"
_REVOCATIONS = "revocation"
_encode = msgspec.msgpack.Encoder().encode
_decode_card = msgspec.msgpack.Decoder(Card).decode
_decode_cards = msgspec.msgpack.Decoder(tuple[Card, ...]).decode
_decode_revocation = msgspec.msgpack.Decoder(Revocation).decode

MAX_CARDS = 1_000_000
"""Devices that a node remembers: what a large public stream may have, and a few hundred megabytes."""


SPARE_CARDS = 2
"""Further cards of one device that are held: one that a wrong clock dated into the future, and the one
before it. A renewal is needed once a year."""


class CardBook:
    """Cards by author and device. A card is checked once, when it is learned.

    Clocks may be wrong for a while, the issuer's and ours. So a card that is good now stands before one that
    ends later, and the other is held beside it until the clock says otherwise (docs/adr/0028).
    """

    def __init__(self, cells: Cells, check: CardCheck = check_card) -> None:
        self._cells = cells
        self._check = check
        self._cards: dict[bytes, Card] = {}
        self._spare: dict[bytes, tuple[Card, ...]] = {}
        self._now: float | None = None
        self._revoked: dict[bytes, Revocation] = {}
        for key, value in cells.scan(_CARDS):
            self._cards[key] = _decode_card(value)
        for key, value in cells.scan(_SPARE):
            self._spare[key] = _decode_cards(value)
        self._written: dict[bytes, Card] = dict(self._cards)
        for key, value in cells.scan(_REVOCATIONS):
            self._revoked[key] = _decode_revocation(value)

    def learn(self, card: Card, own: bool = False) -> None:
        """Remember a card; `RemoteError` if it is false. The better one of a device stands for it.

        That is one which is good now, as far as the book knows the time, then the one that ends later. Our
        `own` card stands before every other: our home has just judged it.
        """
        key = card.person + card.device
        known = self._cards.get(key)
        if known == card:
            return
        spare = self._spare.get(key, ())
        if card not in spare:
            self._check(card)
        if known is None:
            if len(self._cards) >= MAX_CARDS:
                raise RemoteError(Reason.TOO_MANY, f"{MAX_CARDS} devices are known already")
            self._cards[key] = card
            return
        better = card if own or self._rank(card) > self._rank(known) else known
        self._choose(key, better, (card, known, *spare))

    def _rank(self, card: Card) -> tuple[bool, int]:
        return self._now is not None and is_good(card, self._now), card.not_after

    def _choose(self, key: bytes, chosen: Card, cards: tuple[Card, ...]) -> None:
        self._cards[key] = chosen
        others = dict.fromkeys(card for card in cards if card != chosen)
        self._spare[key] = tuple(others)[:SPARE_CARDS]

    def keep(self, author: AuthorId, device: DeviceId) -> None:
        """Write a card beside the log, for as long as its events are there."""
        key = author + device
        card = self._cards[key]
        if self._written.get(key) is not card:
            self._written[key] = card
            self._cells.put(_CARDS, key, _encode(card))
            if key in self._spare:
                self._cells.put(_SPARE, key, _encode(self._spare[key]))

    def find(self, author: AuthorId, device: DeviceId) -> Card | None:
        """The card of a device that ends last, whatever its dates: for what it said, whenever that was."""
        key = author + device
        card = self._cards.get(key)
        spare = self._spare.get(key) if card is not None else None
        return card if card is None or not spare else max((card, *spare), key=_end)

    def shown(self, author: AuthorId, device: DeviceId) -> Card | None:
        """The card of a device to go by now, as far as the book knows the time: what others are sent."""
        return self._cards.get(author + device)

    def card_for(self, author: AuthorId, device: DeviceId, now: float | None) -> Card:
        """The card that an event needs; `InvalidEvent` says why there is none that is good.

        With no `now` its dates are not judged: expiry never touches history.
        """
        key = author + device
        card = self._cards.get(key)
        if card is None:
            raise InvalidEvent(Reason.UNKNOWN_DEVICE, "no card came with the device's first event")
        if now is None:
            return card
        if key in self._revoked:
            raise InvalidEvent(Reason.CARD_REVOKED, "the person revoked this device")
        self._now = now
        if card.not_before <= now <= card.not_after:
            return card
        spare = self._spare.get(key, ())
        good = [each for each in (card, *spare) if is_good(each, now)]
        if not good:
            try:
                check_dates(card, now)
            except RemoteError as error:
                raise InvalidEvent(error.reason, error.detail) from error
        best = max(good, key=_end)
        if best is not card:
            self._choose(key, best, (card, *spare))
        return best

    def revoke(self, revocation: Revocation) -> bool:
        """Take a person's word that a device is theirs no longer; whether it is news.

        `RemoteError` if it is false, or if there are too many.
        """
        key = revocation.person + revocation.device
        if key in self._revoked:
            return False
        check_revocation(revocation)
        if len(self._revoked) >= MAX_CARDS:
            raise RemoteError(Reason.TOO_MANY, f"{MAX_CARDS} revocations are known already")
        self._revoked[key] = revocation
        self._cells.put(_REVOCATIONS, key, _encode(revocation))
        return True

    def revocation_of(self, author: AuthorId, device: DeviceId) -> Revocation | None:
        """The revocation of a device, if it was revoked."""
        return self._revoked.get(author + device)


def _end(card: Card) -> int:
    return card.not_after


def kept_card(cells: Cells, author: AuthorId, device: DeviceId) -> Card | None:
    """The card of a device as it is written beside the log, for those who only look."""
    raw = cells.get(_CARDS, author + device)
    return None if raw is None else _decode_card(raw)


def kept_cards(cells: Cells, author: AuthorId) -> list[Card]:
    """The cards of all devices of a person that are written beside the log."""
    return [_decode_card(raw) for key, raw in cells.scan(_CARDS) if key.startswith(author)]


def kept_revocations(cells: Cells, author: AuthorId) -> list[Revocation]:
    """What a person has taken back of their devices, as this node was told."""
    return [_decode_revocation(raw) for key, raw in cells.scan(_REVOCATIONS) if key.startswith(author)]
