"""Receipts of guests: how much each device has, sent up the tree to the voice, which keeps them.

Each device signs how far it has everything that it may see. Relays join the receipts of several devices and
pass on the latest of each; the voice checks and stores them. There is no answer: a lost receipt is made good
by the next one, which follows the next keep-alive at the latest.
"""

from __future__ import annotations

import msgspec

from linnet.core.errors import Refused, RemoteError
from linnet.core.ids import AuthorId, PeerId
from linnet.core.reasons import Reason
from linnet.identity.cards import Card
from linnet.identity.keys import SigningKey, verify
from linnet.places.channel.membership import Verdict
from linnet.places.commands import ReceiptIs, ReceiptsAre
from linnet.places.door import FRESH_MS
from linnet.places.messages import GuestReceipt, Receipts
from linnet.places.place_setup import Parts, PlaceTimer
from linnet.trace.records import Kind

PACE = 10
"""The number of `receipt_delay`s between two receipts of a device."""
AT_ONCE = 256
PASSING = 4096
"""The devices whose receipts wait here to be passed on; the one that waited longest is dropped first."""
LATELY = 4
"""The latest receipts of one device that are recognised when they come back."""
DEVICES = 8
"""The devices of one guest whose receipts are kept."""
_KEPT = "place receipt"
_TAG = b"linnet/place/receipt/1"
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(GuestReceipt).decode


class ReceiptsDue(PlaceTimer, frozen=True, gc=False):
    """A timer: receipts have waited long enough for others to travel with them."""


def sign_receipt(key: SigningKey, card: Card, place: bytes, term: int, upto: int, at_ms: int) -> GuestReceipt:
    """Return a signed receipt that this device has everything below a fragment that it may see."""
    fields = (card.person, card.device_key, term, upto, at_ms)
    return GuestReceipt(*fields, key.sign(_TAG + place + _encode(fields)))


def check_receipt(receipt: GuestReceipt, place: bytes) -> None:
    """Raise `RemoteError` unless the receipt's device signed it for this place."""
    fields = (receipt.nym, receipt.device, receipt.term, receipt.upto, receipt.at_ms)
    verify(receipt.device, _TAG + place + _encode(fields), receipt.sig)


class GuestReceipts:
    """The receipts of one place: our own, those to pass on, and those kept as the voice."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._given: tuple[int, int, PeerId | None] = (0, 0, None)
        """The term, fragment and voice of our last receipt."""
        self._given_at: float | None = None
        self._passing: dict[PeerId, tuple[GuestReceipt, Card]] = {}
        self._passed: dict[PeerId, tuple[int, ...]] = {}
        """For each device the times of its last receipts that left here: guests may be above one another in a
        circle, and a receipt that comes round goes no further. The latest time alone tells little, since
        clocks are set."""
        self._is_set = False
        self._kept: dict[AuthorId, dict[PeerId, GuestReceipt]] = {}
        for key, raw in parts.context.store.cells.scan(_KEPT):
            if key.startswith(parts.id):
                receipt = _decode(raw)
                self._kept.setdefault(receipt.nym, {})[receipt.device] = receipt

    # The guest, and the relays on the way.

    def put_back(self, seconds: float) -> None:
        """Shift the time of our last receipt by the seconds that the clock went back."""
        self._given_at = None if self._given_at is None else self._given_at - seconds

    def schedule_receipt(self, now: float) -> None:
        """Schedule a receipt, if there is something new to give one for."""
        if self._is_set or not self._is_due:
            return
        wait = self._parts.config.receipt_delay
        if self._given_at is not None:
            wait = max(wait, self._given_at + PACE * wait - now)
        self._set_timer(wait)

    def send_receipts(self, now: float) -> None:
        """Send waiting receipts towards the voice."""
        self._is_set = False
        parts = self._parts
        paced = self._given_at is None or now + 1e-6 >= self._given_at + PACE * parts.config.receipt_delay
        if self._is_due and paced:
            self._give(now)
        way = self._way
        if way is not None and self._passing:
            self._pass_on(way)
        self.schedule_receipt(now)

    def _pass_on(self, way: PeerId) -> None:
        waiting, self._passing = list(self._passing.values()), {}
        for at in range(0, len(waiting), AT_ONCE):
            some = waiting[at : at + AT_ONCE]
            receipts, cards = tuple(each[0] for each in some), tuple(each[1] for each in some)
            self._parts.out.send(way, Receipts(self._parts.id, receipts, cards))
            for receipt in receipts:
                before = self._passed.pop(receipt.device, ())
                self._passed[receipt.device] = (*before, receipt.at_ms)[-LATELY:]
        while len(self._passed) > PASSING:
            del self._passed[next(iter(self._passed))]

    def handle_receipts(self, peer: PeerId, told: Receipts, now: float) -> None:
        """Keep receipts of others if we are the voice, else pass them on with the next ones."""
        cards = {card.device_key: card for card in told.cards}
        for receipt in told.receipts:
            card = cards.get(receipt.device)
            try:
                self._take(receipt, card, now)
            except RemoteError as error:
                self._parts.record(Kind.REJECTED, peer, error.reason, f"receipt: {error.detail}")
        if self._passing and not self._is_set:
            self._set_timer(self._parts.config.receipt_delay)

    # The voice.

    def upto(self, nym: AuthorId) -> int | None:
        """Return the first fragment that a guest's furthest device lacks; None: it gave no receipt."""
        receipts = self._kept.get(nym, {}).values()
        return max(((each.term, each.upto) for each in receipts), default=(0, None))[1]

    def of(self, message: int) -> ReceiptsAre:
        """Return for each guest whether it has a message; `Refused` if the message is not whole here."""
        parts = self._parts
        if not parts.may_speak:
            raise Refused(Reason.NOT_ALLOWED, "guests give their receipts to the host and the co-hosts")
        rows = list(parts.fragments.message(message))
        if not rows or not rows[-1].is_last:
            raise Refused(Reason.NOT_HELD, f"message {message} is not held here, or has not ended")
        last, term = max(row.fragment for row in rows), rows[0].term
        found: list[ReceiptIs] = []
        for nym in sorted(parts.membership.present()):
            mine = self._kept.get(nym, {}).values()
            have = [each.at_ms for each in mine if each.term >= term and each.upto > last]
            test = parts.membership.test
            is_open = all(test(nym, message, row.generation) is Verdict.YES for row in rows)
            state = "delivered" if have else "pending"
            found.append(ReceiptIs(nym, state if is_open else "closed", min(have, default=None)))
        return ReceiptsAre(parts.id, message, tuple(found))

    # Inside.

    @property
    def _is_due(self) -> bool:
        parts = self._parts
        if parts.keeps or parts.is_voice or not parts.deed.policy.announces or parts.terms.voice is None:
            return False
        return (parts.term, parts.fragments.upto, parts.voice) != self._given and parts.fragments.upto > 0

    @property
    def _way(self) -> PeerId | None:
        voice = self._parts.voice
        if voice is not None and voice in self._parts.context.links:
            return voice
        return self._parts.toward or self._parts.tree.way_up()

    def _give(self, now: float) -> None:
        parts, context = self._parts, self._parts.context
        term, upto = parts.term, parts.fragments.upto
        self._given, self._given_at = (term, upto, parts.voice), now
        receipt = sign_receipt(context.key, context.card, parts.id, term, upto, int(now * 1000))
        self._passing[context.peer] = (receipt, context.card)

    def _take(self, receipt: GuestReceipt, card: Card | None, now: float) -> None:
        parts = self._parts
        if card is None or (card.person, card.device_key) != (receipt.nym, receipt.device):
            raise RemoteError(Reason.UNKNOWN_DEVICE, "no card of the device came with it")
        if not parts.is_guest(receipt.nym):
            raise RemoteError(Reason.NOT_A_MEMBER, "of nobody who is a guest")
        if not parts.is_voice:
            if receipt.at_ms in self._passed.get(receipt.device, ()):
                raise RemoteError(Reason.SURPLUS, "it went by here before")
            known = self._passing.get(receipt.device)
            if known is None or known[0].at_ms < receipt.at_ms:
                self._passing.pop(receipt.device, None)
                self._passing[receipt.device] = (receipt, card)
            if len(self._passing) > PASSING:
                del self._passing[next(iter(self._passing))]
                raise RemoteError(Reason.QUEUE_FULL, f"{PASSING} receipts wait to be passed on")
            return
        if receipt.upto > parts.fragments.standing.fragment + 1 or receipt.term > parts.term:
            raise RemoteError(Reason.MALFORMED, "for what was never said")
        if receipt.at_ms > now * 1000 + FRESH_MS:
            raise RemoteError(Reason.FUTURE_TIME, f"said at {receipt.at_ms}")
        parts.context.cards.learn(card)
        check_receipt(receipt, parts.id)
        self._keep(receipt)

    def _keep(self, receipt: GuestReceipt) -> None:
        mine = self._kept.setdefault(receipt.nym, {})
        known = mine.pop(receipt.device, None)
        latest = receipt if known is None or known.at_ms < receipt.at_ms else known
        mine[receipt.device] = latest
        cells = self._parts.context.store.cells
        cells.put(_KEPT, self._parts.id + receipt.device, _encode(latest))
        if len(mine) > DEVICES:
            oldest = next(iter(mine))
            del mine[oldest]
            cells.delete(_KEPT, self._parts.id + oldest)

    def _set_timer(self, wait: float) -> None:
        self._is_set = True
        self._parts.out.set_timer(max(0.0, wait), ReceiptsDue(self._parts.id))
