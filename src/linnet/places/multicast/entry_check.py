"""The first word at the door of a place: signed, for this place, by the device at the other end of the link.

Toth 2013, section 3.5, has a join request that names the peer it comes from, so that nobody can replay it
from elsewhere. Here the card's device is that peer, and it must be fresh and not older than its last one.
"""

from __future__ import annotations

from msgspec import msgpack

from linnet.core.errors import RemoteError
from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.identity.cards import Card, CardCheck, check_card, check_dates
from linnet.identity.keys import SigningKey, verify
from linnet.places.messages import Enter

FRESH_MS = 120_000
"""How far the clocks of both may be apart, the way of the message included."""
DEVICES = 65_536
"""Devices whose last word is remembered; none needs to be for longer than it is fresh."""

_TAG = b"linnet/place/enter/1"
_encode = msgpack.Encoder().encode


def make_enter(
    key: SigningKey,
    card: Card,
    place: TopicId,
    at_ms: int,
    *,
    known: int = 0,
    upto: int = 0,
    state: int = 0,
    text: bytes = b"",
    prekeys: bytes | None = None,
    term: int = 0,
    opening: EventId | None = None,
    stranded: bool = False,
) -> Enter:
    """A request to be let in, signed by the device of this card."""
    fields = (place, card, at_ms, known, upto, state, text, prekeys)
    more = (term, opening, stranded)
    return Enter(*fields, key.sign(_TAG + _encode((*fields, *more))), *more, patient=True)


class EntryCheck:
    """Checks who stands at the door of one place."""

    def __init__(self, place: TopicId, check: CardCheck = check_card) -> None:
        self._place = place
        self._check = check
        self._last: dict[PeerId, int] = {}
        """When each device last asked, as it said, those who asked last at the end."""

    def __len__(self) -> int:
        return len(self._last)

    def check(self, enter: Enter, link: PeerId, now: float) -> None:
        """Return if it may be answered; raise `RemoteError` with the reason otherwise."""
        card = enter.card
        if enter.place != self._place:
            raise RemoteError(Reason.UNKNOWN, "another place")
        if card.device_key != link:
            raise RemoteError(Reason.REPLAYING, "the card is of another device than the one on this link")
        now_ms = int(now * 1000)
        if abs(enter.at_ms - now_ms) > FRESH_MS:
            reason = Reason.FUTURE_TIME if enter.at_ms > now_ms else Reason.STALE
            raise RemoteError(reason, f"said {abs(enter.at_ms - now_ms)} ms from now")
        if enter.at_ms < self._last.get(link, 0):
            raise RemoteError(Reason.STALE, "older than what this device said before")
        check_dates(card, now)
        self._check(card)
        fields = (
            enter.place,
            card,
            enter.at_ms,
            enter.known,
            enter.upto,
            enter.state,
            enter.text,
            enter.prekeys,
            enter.term,
            enter.opening,
            enter.stranded,
        )
        verify(card.device_key, _TAG + _encode(fields), enter.sig)
        self._remember(link, enter.at_ms, now_ms)

    def _remember(self, device: PeerId, at_ms: int, now_ms: int) -> None:
        self._last.pop(device, None)
        while self._last and next(iter(self._last.values())) < now_ms - FRESH_MS:
            del self._last[next(iter(self._last))]  # nothing as old is taken any more
        if len(self._last) >= DEVICES:
            raise RemoteError(Reason.TOO_MANY, f"{DEVICES} devices at the door")
        self._last[device] = at_ms
