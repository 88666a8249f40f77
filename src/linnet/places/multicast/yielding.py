"""The words of a hand-over: a co-host asks the device that speaks to let it speak (decision 0018)."""

from __future__ import annotations

from msgspec import msgpack

from linnet.core.errors import RemoteError
from linnet.core.ids import PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.identity.cards import Card, CardCheck, check_card, check_dates
from linnet.identity.keys import SigningKey, verify
from linnet.places.deed import Deed
from linnet.places.messages import Yield

_TAG = b"linnet/place/yield/1"
_encode = msgpack.Encoder().encode


def sign_yield(key: SigningKey, card: Card, place: TopicId, term: int) -> Yield:
    """Ask for the voice after this term."""
    fields = (place, term, card)
    return Yield(*fields, key.sign(_TAG + _encode(fields)))


def check_yield(asked: Yield, deed: Deed, link: PeerId, now: float, check: CardCheck = check_card) -> None:
    """Raise `RemoteError` unless the deed lets whoever asks speak, and it is the device on this link.

    Only there, so that nobody can play it again from elsewhere.
    """
    card = asked.card
    if asked.place != deed.place:
        raise RemoteError(Reason.UNKNOWN, "another place")
    if card.device_key != link:
        raise RemoteError(Reason.REPLAYING, "the card is of another device than the one on this link")
    if deed.rank(card.person) is None:
        raise RemoteError(Reason.NOT_A_PUBLISHER, "the deed does not let this person speak")
    check_dates(card, now)
    check(card)
    verify(card.device_key, _TAG + _encode((asked.place, asked.term, card)), asked.sig)
