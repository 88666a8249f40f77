"""Receipts of a room: small signed statements of a device that it durably has everything up to some heads.

They are no events. The latest of each device counts, is stored, and is passed on to peers that may lack it;
none is left out because another's covers the same. The dependencies of our own event acknowledge other
events without a receipt. A relay keeps receipts for offline members.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from linnet.core.effects import AfterCommit, Send
from linnet.core.errors import RemoteError
from linnet.core.ids import AuthorId, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.context import Context
from linnet.event.event import Event
from linnet.identity.cards import Card, CardCheck, check_card
from linnet.identity.keys import SigningKey, verify
from linnet.machine.outbox import Outbox
from linnet.rooms.config import RoomsConfig
from linnet.rooms.messages import RoomReceipt, RoomTimer
from linnet.trace.records import Kind, Record

DEVICES = 4096
"""The most devices of one room whose latest receipt is kept; others show as pending."""
DEVICES_OF_ONE = 32
"""The most devices of one person among them: invented devices must not push out the receipts of others."""
HEADS = 64
"""The most heads in one receipt; events below any further heads are not acknowledged by it."""

_TAG = b"linnet/room receipt/1"
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(RoomReceipt).decode


class ReceiptDue(RoomTimer, frozen=True, gc=False):
    """Timer: give our receipt of a room, for events that were delivered a while ago."""


def sign_room_receipt(
    key: SigningKey, card: Card, room: TopicId, at_ms: int, heads: tuple[EventId, ...], off: bool = False
) -> RoomReceipt:
    """Sign a receipt with this device's key."""
    return RoomReceipt(room, card, at_ms, heads, off, key.sign(_signed(room, card, at_ms, heads, off)))


def check_room_receipt(receipt: RoomReceipt, card_check: CardCheck = check_card) -> None:
    """Raise `RemoteError` unless the device signed the receipt, and the person the device's card."""
    card_check(receipt.card)
    signed = _signed(receipt.room, receipt.card, receipt.at_ms, receipt.heads, receipt.off)
    verify(receipt.card.device_key, signed, receipt.sig)


def _signed(room: TopicId, card: Card, at_ms: int, heads: tuple[EventId, ...], off: bool) -> bytes:
    return _TAG + _encode((room, card.person, card.device_key, at_ms, heads, off))


class LatestReceipts:
    """The latest receipt of each device of one room, kept over restarts."""

    def __init__(self, room: TopicId, context: Context) -> None:
        self._room = room
        self._context = context
        self._space = f"receipts/{room.hex()}"
        self._latest: dict[PeerId, RoomReceipt] = {}
        self._naming: dict[EventId, dict[PeerId, None]] = {}
        self._devices: dict[AuthorId, int] = {}
        """The number of devices of each person here."""
        for _, value in context.store.cells.scan(self._space):
            self._put(_decode(value))

    def all(self) -> tuple[RoomReceipt, ...]:
        """Return the latest receipt of every device; our own is durable only after a commit."""
        return tuple(self._latest.values())

    def naming(self, event: EventId) -> tuple[RoomReceipt, ...]:
        """Return the receipts that have an event among their heads: they may have come before it."""
        return tuple(self._latest[peer] for peer in self._naming.get(event, ()))

    def learn(self, receipt: RoomReceipt) -> bool:
        """Take in a receipt; return whether it is new. The caller has checked that its person is a member.

        `RemoteError` if it is false, of another room, of a revoked device, or of one device too many.
        """
        device = receipt.card.device_key
        known = self._latest.get(device)
        if known is not None and _order(receipt) <= _order(known):
            return False
        if receipt.room != self._room:
            raise RemoteError(Reason.MALFORMED, "a receipt of another room")
        cards, person = self._context.cards, receipt.card.person
        check_room_receipt(receipt, cards.learn)
        if cards.revocation_of(person, receipt.card.device) is not None:
            raise RemoteError(Reason.CARD_REVOKED, "the person revoked this device")
        if known is None and self._devices.get(person, 0) >= DEVICES_OF_ONE:
            raise RemoteError(Reason.TOO_MANY, f"receipts of {DEVICES_OF_ONE} devices of one person")
        if known is None and len(self._latest) >= DEVICES:
            raise RemoteError(Reason.TOO_MANY, f"receipts of {DEVICES} devices are known already")
        self._keep(receipt)
        return True

    def forget(self, person: AuthorId) -> None:
        """Drop the receipts of a person who has left the room: their devices give way to others'."""
        for device, receipt in list(self._latest.items()):
            if receipt.card.person == person:
                self._drop(device)
                self._context.store.cells.delete(self._space, device)

    def _keep(self, receipt: RoomReceipt) -> None:
        self._drop(receipt.card.device_key)
        self._put(receipt)
        self._context.store.cells.put(self._space, receipt.card.device_key, _encode(receipt))

    def _put(self, receipt: RoomReceipt) -> None:
        device = receipt.card.device_key
        self._latest[device] = receipt
        self._devices[receipt.card.person] = self._devices.get(receipt.card.person, 0) + 1
        for head in receipt.heads:
            self._naming.setdefault(head, {})[device] = None

    def _drop(self, device: PeerId) -> None:
        receipt = self._latest.pop(device, None)
        if receipt is not None:
            person = receipt.card.person
            self._devices[person] -= 1
            if not self._devices[person]:
                del self._devices[person]
        for head in () if receipt is None else receipt.heads:
            devices = self._naming.get(head, {})
            devices.pop(device, None)
            if not devices:
                self._naming.pop(head, None)


class Receipts(LatestReceipts):
    """The receipts that a member knows and passes on, and those that it gives."""

    def __init__(self, room: TopicId, context: Context, config: RoomsConfig, out: Outbox) -> None:
        super().__init__(room, context)
        self._out = out
        self._config = config
        self._heads: tuple[EventId, ...] = ()
        """Our heads, which the next receipt names."""
        self._armed = False
        own = self._latest.get(context.peer)
        self._told: dict[EventId, None] = dict.fromkeys(own.heads if own is not None else ())
        """The heads that our last receipt or event has acknowledged."""

    def handle_receipt(
        self, peer: PeerId, receipt: RoomReceipt, neighbors: Iterable[PeerId], member: bool
    ) -> bool:
        """Take in a receipt from a peer; return whether it is new, and pass it on to neighbours if so.

        `member` says whether its person is in the room: receipts of others would only take up space.
        """
        try:
            if not member:
                raise RemoteError(Reason.NOT_A_MEMBER, "a receipt of somebody who is not in the room")
            news = self.learn(receipt)
        except RemoteError as error:
            self._out.record(
                Record(Kind.REJECTED, self._room, peer=peer, reason=error.reason, note="receipt")
            )
            if error.reason not in (Reason.TOO_MANY, Reason.NOT_A_MEMBER):
                self._out.blame(peer, error.reason)
            return False
        giver = receipt.card.device_key
        for other in neighbors if news else ():
            if other not in (peer, giver):
                self._out.send(other, receipt)
        return news

    # Our own.

    def note_heads(self, heads: Sequence[EventId]) -> None:
        """Give a receipt of these delivered and stored heads soon, unless we have acknowledged them.

        If there are more heads than fit a receipt, the first ones count.
        """
        self._heads = tuple(heads)
        if not self._armed and self._is_due():
            self._armed = True
            self._out.set_timer(self._config.receipt_delay, ReceiptDue(self._room))

    def note_own_event(self, event: Event) -> None:
        """Count an event of ours as a receipt of all that it refers to, and of itself."""
        tail = event.tail
        named = (event.id, *(tail.deps or ()), *(tail.concurrent or ()))
        self._told = dict.fromkeys(named if event.prev is None else (*named, event.prev))
        if self._armed and not self._is_due():
            self.stop()

    def give_receipt(self, neighbors: Iterable[PeerId], now: float) -> None:
        """Send our receipt to all neighbours, members and relays, once the events it covers are durable."""
        self._armed = False
        if not self._is_due():
            return
        on = self._config.receipts
        heads = self._heads[:HEADS] if on else ()
        own = self._latest.get(self._context.peer)
        at_ms = max(int(now * 1000), -1 if own is None else own.at_ms + 1)
        context = self._context
        receipt = sign_room_receipt(context.key, context.card, self._room, at_ms, heads, off=not on)
        self._keep(receipt)
        self._told = dict.fromkeys(self._heads)
        # With nobody to tell, the receipt is committed all the same.
        self._out.add(AfterCommit(tuple(Send(peer, receipt) for peer in neighbors)))
        if on and len(heads) < len(self._heads):
            note = f"heads left out of a receipt: {len(self._heads) - len(heads)}"
            self._out.record(Record(Kind.DROPPED, self._room, reason=Reason.TOO_MANY, note=note))

    def stop(self) -> None:
        """Cancel a receipt that is due."""
        if self._armed:
            self._armed = False
            self._out.cancel_timer(ReceiptDue(self._room))

    def _is_due(self) -> bool:
        own = self._latest.get(self._context.peer)
        if not self._config.receipts:
            return own is None or not own.off
        if own is not None and own.off:
            return bool(self._heads)
        return any(head not in self._told for head in self._heads)


def _order(receipt: RoomReceipt) -> tuple[int, bytes]:
    """Return the sort key by which the later of two receipts wins; ties fall alike at every node."""
    return receipt.at_ms, _encode(receipt)


RECEIPTS_PER_PAGE = 64
"""The most receipts in a page: one may have two kilobytes, and a page has to fit a frame with its events."""


class StoredReceipts(LatestReceipts):
    """Receipts of one room, numbered in order of arrival, so that each is sent once on a link."""

    def __init__(self, room: TopicId, context: Context, most: int) -> None:
        super().__init__(room, context)
        self._most = most
        self._numbers: dict[PeerId, int] = {}
        self.next = 0
        """The number of the next receipt."""
        for device in self._latest:
            self._number(device)

    def learn(self, receipt: RoomReceipt) -> bool:
        """Store a receipt of a member; return whether it is new. `RemoteError` if false or one too many."""
        device = receipt.card.device_key
        if device not in self._numbers and len(self._numbers) >= self._most:
            raise RemoteError(Reason.TOO_MANY, f"receipts of {self._most} devices are kept already")
        if not super().learn(receipt):
            return False
        self._number(device)
        return True

    def page(self, start: int) -> tuple[tuple[RoomReceipt, ...], int]:
        """Return the receipts from a number on, as many as fit a page, and the number to continue from."""
        due = [(number, device) for device, number in self._numbers.items() if number >= start]
        page = due[:RECEIPTS_PER_PAGE]
        after = self.next if len(page) == len(due) else page[-1][0] + 1
        return tuple(self._latest[device] for _, device in page), after

    def count_of(self, person: AuthorId) -> int:
        """Return the number of a person's devices whose receipt is kept."""
        return self._devices.get(person, 0)

    def retain(self, people: frozenset[AuthorId]) -> None:
        """Forget the receipts of all people but these, who are the members now."""
        for receipt in self.all():
            if receipt.card.person not in people:
                self.forget(receipt.card.person)
                self._numbers.pop(receipt.card.device_key, None)

    def _number(self, device: PeerId) -> None:
        self._numbers.pop(device, None)
        self._numbers[device] = self.next
        self.next += 1
