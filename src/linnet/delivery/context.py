"""What streams, rooms and places share at a node: its identity, store, links, and the book of known cards.

The book also says which devices were revoked.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import msgspec

from linnet.core.errors import InvalidEvent, RemoteError
from linnet.core.fair_shares import Origins
from linnet.core.ids import AuthorId, DeviceId, PeerId
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.core.stores import Cells, Store
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.forks import Forks
from linnet.delivery.storage_statements import Contradictions
from linnet.event.event import Unverified, Verified
from linnet.event.signing import Verifier
from linnet.event.times import doubt_unit
from linnet.identity.cards import (
    Card,
    CardCheck,
    Revocation,
    check_card,
    check_dates,
    check_revocation,
    is_good,
)
from linnet.identity.keys import SigningKey

_CARDS = "card"
_SPARE = "card spare"
_REVOCATIONS = "revocation"
_encode = msgspec.msgpack.Encoder().encode
_decode_card = msgspec.msgpack.Decoder(Card).decode
_decode_cards = msgspec.msgpack.Decoder(tuple[Card, ...]).decode
_decode_revocation = msgspec.msgpack.Decoder(Revocation).decode

MAX_CARDS = 1_000_000
"""The most devices that a node remembers: enough for a large public stream, at a few hundred megabytes."""


SPARE_CARDS = 2
"""Further cards that are kept for a device: one that a wrong clock dated into the future, and the one before
it. A renewal is needed once a year."""


class CardBook:
    """Cards by author and device. A card is checked once, when it is learned.

    Clocks may be wrong for a while, the issuer's and ours. So a card that is good now is preferred to one
    that ends later, and the other is kept beside it until the clock says otherwise (docs/adr/0028).
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
        """Remember a card, and choose the best one of its device; raises `RemoteError` if it is false.

        The best card is one that is good now, as far as the book knows the time, then the one that ends
        later. Our `own` card is preferred to every other: our home has just checked it.
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
        """Write a card beside the log, to be kept as long as its events."""
        key = author + device
        card = self._cards[key]
        if self._written.get(key) is not card:
            self._written[key] = card
            self._cells.put(_CARDS, key, _encode(card))
            if key in self._spare:
                self._cells.put(_SPARE, key, _encode(self._spare[key]))

    def find(self, author: AuthorId, device: DeviceId) -> Card | None:
        """Return the card of a device that ends last, whatever its dates: it covers events of any time."""
        key = author + device
        card = self._cards.get(key)
        spare = self._spare.get(key) if card is not None else None
        return card if card is None or not spare else max((card, *spare), key=_end)

    def current_card(self, author: AuthorId, device: DeviceId) -> Card | None:
        """Return the card of a device that is valid now, as far as the book knows the time, to be sent."""
        return self._cards.get(author + device)

    def fault_of(self, peer: PeerId, unit: Unverified, reason: Reason) -> Reason:
        """Return the fault of a peer that sent a unit which was rejected for this reason.

        Only the author is at fault for a fork. Others pass on what they got first.
        """
        if reason is not Reason.FORKED_CHAIN:
            return reason
        card = self.find(unit.author, unit.device)
        return reason if card is not None and card.device_key == peer else Reason.EQUIVOCATION

    def card_for(self, author: AuthorId, device: DeviceId, now: float | None) -> Card:
        """Return the card that an event needs; raises `InvalidEvent` if none is good.

        Without `now` its dates are not checked: expiry never touches history.
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
        """Take in a person's revocation of a device; return whether it is news.

        Raises `RemoteError` if it is false, or if there are too many.
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
        """Return the revocation of a device, if it was revoked."""
        return self._revoked.get(author + device)


def _end(card: Card) -> int:
    return card.not_after


def kept_card(cells: Cells, author: AuthorId, device: DeviceId) -> Card | None:
    """Return the card of a device that is stored beside the log, without a `CardBook`."""
    raw = cells.get(_CARDS, author + device)
    return None if raw is None else _decode_card(raw)


def kept_cards(cells: Cells, author: AuthorId) -> list[Card]:
    """Return the cards of all devices of a person that are stored beside the log."""
    return [_decode_card(raw) for key, raw in cells.scan(_CARDS) if key.startswith(author)]


def kept_revocations(cells: Cells, author: AuthorId) -> list[Revocation]:
    """Return the revocations of a person's devices that this node has stored."""
    return [_decode_revocation(raw) for key, raw in cells.scan(_REVOCATIONS) if key.startswith(author)]


class Context:
    """The identity and services of one node that all its topics share; holds no state of any topic."""

    def __init__(
        self,
        key: SigningKey,
        card: Card,
        store: Store,
        config: DeliveryConfig,
        rng: Random,
        verifier: Verifier,
        card_check: CardCheck = check_card,
        entropy: Entropy | None = None,
    ) -> None:
        self.key = key
        self.card = card
        self.store = store
        self.config = config
        self.rng = rng
        self.entropy: Entropy = entropy or rng.randbytes
        """Secret bytes. In production `rng` is the system's own generator, so its bytes are good as
        secrets."""
        self.verify = verifier
        self.card_check = card_check
        self.cards = CardBook(store.cells, card_check)
        self.cards.learn(card, own=True)
        self.forks = Forks(store.cells)
        self.contradictions = Contradictions(store.cells)
        self.keeping: dict[PeerId, None] = {}
        """Linked peers that understand the signed statements of storage nodes."""
        self.peer = PeerId(key.public)
        self.origins = Origins()
        self.links: dict[PeerId, None] = {self.peer: None}
        """Peers that can be sent messages now: those with an open link, and ourselves."""
        self.author: AuthorId = card.person
        self.device: DeviceId = card.device
        self.clock_behind: Callable[[], float] = float
        """Returns by how many seconds our clock is behind those of most peers; 0 if it is not, or unknown."""

    def check(self, unit: Unverified, card: Card | None, now: float | None) -> tuple[Verified, Card]:
        """Verify a unit by the card of its device, which may come with it; raises `RemoteError`.

        Without `now` the unit is history: neither the dates of the card nor a revocation are checked.
        """
        cards = self.cards
        if card is not None and card is not cards.current_card(unit.author, unit.device):
            cards.learn(card)
        known = cards.card_for(unit.author, unit.device, now)
        return self.verify(unit, known), known

    def doubt(self, verified: Verified, now: float) -> Verified:
        """Mark the events of a unit that arrives now if their times are doubtful.

        Where our clock is the one that is wrong, those of most peers are what counts. They only take marks
        away, so they are looked at for few units.
        """
        marked = doubt_unit(verified, now)
        return verified if marked is verified else doubt_unit(verified, now + self.clock_behind())
