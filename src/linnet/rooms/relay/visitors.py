"""Who is at the other end of a link, as far as it has shown: the card that is good for the link's key."""

from __future__ import annotations

from linnet.core.errors import RemoteError
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.delivery.context import Context
from linnet.identity.cards import Card, check_dates
from linnet.rooms.relay.door import Caller


class Visitors:
    """The people behind the open links of a relay."""

    def __init__(self, context: Context) -> None:
        self._book = context.cards
        self._check = context.card_check
        self._cards: dict[PeerId, Card] = {}

    def identify(self, peer: PeerId, card: Card, now: float) -> Caller:
        """Take a card for who is at the other end; `RemoteError` if it is not good for this link now."""
        if card.device_key != peer:
            raise RemoteError(Reason.UNKNOWN_DEVICE, "the card is of another device than the link")
        self._check(card)
        check_dates(card, now)
        if self._book.revocation_of(card.person, card.device) is not None:
            raise RemoteError(Reason.CARD_REVOKED, "the person revoked this device")
        self._cards[peer] = card
        return Caller(peer, card.person)

    def caller(self, peer: PeerId, cards: tuple[Card, ...], now: float) -> Caller | None:
        """Who asks: as it greeted, or as a card in its message says that is good for the link."""
        known = self._cards.get(peer)
        if known is not None:
            is_revoked = self._book.revocation_of(known.person, known.device) is not None
            return None if is_revoked else Caller(peer, known.person)
        for card in cards:
            if card.device_key == peer:
                try:
                    return self.identify(peer, card, now)
                except RemoteError:
                    return None  # whoever asks is told that it is nobody
        return None

    def down(self, peer: PeerId) -> None:
        """A link is gone."""
        self._cards.pop(peer, None)
