"""Receipts of a room: small signed statements of a device that it has everything up to some heads, durably.

They are no events. The latest of each device counts, is kept, and is passed on to whoever may not know it;
none is left out because another's covers the same. What an event of ours says by its dependencies needs no
receipt beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from linnet.core.effects import AfterCommit, Send
from linnet.core.errors import RemoteError
from linnet.core.ids import AuthorId, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.delivery.context import Context
from linnet.event.event import Event
from linnet.machine.outbox import Outbox
from linnet.rooms.config import RoomsConfig
from linnet.rooms.messages import RoomReceipt
from linnet.rooms.receipt import check_room_receipt, sign_room_receipt
from linnet.trace.records import Kind, Record

DEVICES = 4096
"""Devices of one room whose latest receipt is kept; others show as pending."""
DEVICES_OF_ONE = 32
"""Devices of one person among them: whoever makes up more would push out what others say."""
HEADS = 64
"""Heads in one receipt; what lies below any further ones is not acknowledged by it."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(RoomReceipt).decode


class ReceiptDue(Timer, frozen=True, gc=False):
    """Our receipt of a room is to be given, for what was delivered a while ago."""

    room: TopicId


class Receipts:
    """The latest receipt of each device of one room, our own among them."""

    def __init__(self, room: TopicId, context: Context, config: RoomsConfig, out: Outbox) -> None:
        self._room = room
        self._out = out
        self._context = context
        self._config = config
        self._space = f"receipts/{room.hex()}"
        self._latest: dict[PeerId, RoomReceipt] = {}
        self._naming: dict[EventId, dict[PeerId, None]] = {}
        self._devices: dict[AuthorId, int] = {}
        """How many devices each person has here."""
        self._heads: tuple[EventId, ...] = ()
        """Our heads: what the next receipt says."""
        self._armed = False
        for _, value in context.store.cells.scan(self._space):
            self._put(_decode(value))
        own = self._latest.get(context.peer)
        self._told: dict[EventId, None] = dict.fromkeys(own.heads if own is not None else ())
        """What our last word, a receipt or an event, says that we have."""

    def __len__(self) -> int:
        """Devices whose receipt is known."""
        return len(self._latest)

    def all(self) -> tuple[RoomReceipt, ...]:
        """The latest of every device, for a new neighbour; our own is durable only after a commit."""
        return tuple(self._latest.values())

    def naming(self, event: EventId) -> tuple[RoomReceipt, ...]:
        """The receipts among whose heads an event is: they may have come before it."""
        return tuple(self._latest[peer] for peer in self._naming.get(event, ()))

    def learn(self, receipt: RoomReceipt) -> bool:
        """Take a receipt in; whether it is news. That its person is a member, the caller has seen.

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

    def handle_receipt(
        self, peer: PeerId, receipt: RoomReceipt, neighbors: Iterable[PeerId], member: bool
    ) -> bool:
        """Take a receipt that a peer told; whether it is news, and then it is passed on to other neighbours.

        `member` says whether its person is in the room: others' would only take the places of members'.
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

    def forget(self, person: AuthorId) -> None:
        """Drop the receipts of a person who has left the room: their devices give way to others'."""
        for device, receipt in list(self._latest.items()):
            if receipt.card.person == person:
                self._drop(device)
                self._context.store.cells.delete(self._space, device)

    # Our own.

    def note_heads(self, heads: Sequence[EventId]) -> None:
        """Give a receipt of these heads soon, unless what we said says it: they are delivered and written.

        Of more than a receipt can name, the first ones count.
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
        """Give our receipt to all neighbours, members and relays, once what it speaks of is durable."""
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
        """Give no receipt that is due."""
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


def _order(receipt: RoomReceipt) -> tuple[int, bytes]:
    """The later of two counts; of two at the same time the same one everywhere."""
    return receipt.at_ms, _encode(receipt)
