"""One counter at one node: the chains of additions, their sum, who reads them, and who has them.

Each device adds by a chain of signed events of its own, so nobody can count for another, and an addition
that comes twice has a number that was counted. Whether an addition counts depends on its chain alone, never
on when it arrives: so all nodes that have the same chains have the same value.
"""

from __future__ import annotations

import hashlib

import msgspec
from examples.counter.commands import LARGEST_AMOUNT, Added, CounterIs, FatesAre, Share
from examples.counter.messages import DEVICES

from linnet.core.errors import InvalidEvent, Refused
from linnet.core.ids import AuthorId, DeviceId, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.chain import ChainKey
from linnet.delivery.context import Context
from linnet.delivery.event_archive import Archive
from linnet.delivery.items import Item
from linnet.delivery.messages import ChainPlace, Receipt, Resend, Resent
from linnet.delivery.receipts import Ledger, ReceiverFate, sign_receipt
from linnet.delivery.subscriptions import Cursor, LogReader, Window
from linnet.event.event import Event, Spot, Tail, Unverified, Verified
from linnet.event.signing import decode_unit, recall_unit, sign_unit
from linnet.identity.cards import Card
from linnet.machine.outbox import Outbox
from linnet.trace.records import Kind, Record

ADDITION = "addition"
"""The kind of event that an addition is. Its body is the amount, as msgpack."""
_PAGE = 256
_decode_amount = msgspec.msgpack.Decoder(int).decode


def topic_of(name: str) -> TopicId:
    """The topic of the counter with this name."""
    return TopicId(hashlib.sha256(b"linnet/example/counter/1" + name.encode()).digest())


def amount_of(event: Event) -> int:
    """How much an event adds; `InvalidEvent` if it is no addition."""
    try:
        amount = _decode_amount(event.body)
    except msgspec.DecodeError as error:
        raise InvalidEvent(Reason.MALFORMED, f"an amount that is no number: {error}") from error
    if event.kind != ADDITION or not 1 <= amount <= LARGEST_AMOUNT:
        raise InvalidEvent(
            Reason.MALFORMED, f"{event.kind} of {amount}: no addition of 1 to {LARGEST_AMOUNT}"
        )
    return amount


class _Chain:
    """The additions of one device that were counted."""

    __slots__ = ("head", "next", "total")

    def __init__(self) -> None:
        self.next = 0
        self.head: EventId | None = None
        self.total = 0


class Counter:
    """A counter that this node shares."""

    def __init__(self, name: str, context: Context, out: Outbox) -> None:
        self.topic = topic_of(name)
        self.neighbors: dict[PeerId, None] = {}
        self.ledger = Ledger()
        """How far others have our additions."""
        self.readers: dict[int, LogReader] = {}
        self._named: dict[int, str] = {}
        self._context = context
        self._out = out
        self._archive = Archive(self.topic, context.store, context.cards, context.config, out)
        self._chains: dict[ChainKey, _Chain] = {}
        self._recount()

    def _recount(self) -> None:
        """Count what the log holds."""
        log, position = self._context.store.log, 0
        while page := log.read(self.topic, position, _PAGE):
            for _, entry in page:
                self._count(recall_unit(decode_unit(entry.raw)))
            position = page[-1][0]

    @property
    def value(self) -> int:
        """The sum of all additions."""
        return sum(chain.total for chain in self._chains.values())

    @property
    def places(self) -> tuple[ChainPlace, ...]:
        """How far the additions of each device were counted."""
        return tuple(ChainPlace(*_split(key), 0, chain.next - 1, True) for key, chain in self._chains.items())

    def next_of(self, key: ChainKey) -> int:
        """The number of the next addition of a device."""
        chain = self._chains.get(key)
        return 0 if chain is None else chain.next

    def add(self, amount: int, now: float) -> tuple[Verified, Added]:
        """Sign an addition of our own, and count it."""
        if not 1 <= amount <= LARGEST_AMOUNT:
            raise Refused(Reason.MALFORMED, f"an amount is 1 to {LARGEST_AMOUNT}, not {amount}")
        context = self._context
        own = self._chains.get(context.author + context.device) or _Chain()
        body = msgspec.msgpack.encode(amount)
        tail = Tail(None, None, None, None, ADDITION, None, max(0, int(now * 1000)), None, body)
        verified = sign_unit(
            context.key, Spot(self.topic, context.author, context.device, own.next, own.head), (tail,)
        )
        number = own.next
        self._keep(verified, now)
        return verified, Added(verified.head, number, self.value)

    def is_counted(self, unit: Unverified) -> bool:
        """Whether a device's addition of this number was counted. Nothing of it is believed for that."""
        return unit.seq is not None and unit.seq < self.next_of(unit.author + unit.device)

    def take(self, unit: Unverified, card: Card | None, now: float) -> bool:
        """Count an addition of another; False if others of its device have to come first.

        `RemoteError` if it is not what it should be: signed by its device, an addition, next in its chain.
        """
        cards = self._context.cards
        if card is not None:
            cards.learn(card)
        verified = self._context.verify(unit, cards.card_for(unit.author, unit.device, None))
        if unit.topic != self.topic or unit.seq is None or len(verified.events) != 1:
            raise InvalidEvent(Reason.MALFORMED, "no single addition to this counter")
        amount_of(verified.events[0])
        key = unit.author + unit.device
        if unit.seq > self.next_of(key):
            return False
        chain = self._chains.get(key)
        if chain is None and len(self._chains) >= DEVICES:
            raise InvalidEvent(Reason.TOO_MANY, f"{DEVICES} devices add to this counter already")
        if unit.prev != (None if chain is None else chain.head):
            raise InvalidEvent(Reason.FORKED_CHAIN, f"addition {unit.seq} does not follow the one before it")
        self._keep(verified, now)
        return True

    def _keep(self, verified: Verified, now: float) -> None:
        position = self._archive.keep(verified, now)
        self._count(verified)
        if position is not None:
            for reader in self.readers.values():
                reader.hand_written(position, verified.events, self._out.committed)
        self._out.record(
            Record(Kind.STORED, self.topic, verified.head, verified.unit.device, verified.unit.seq)
        )

    def _count(self, verified: Verified) -> None:
        unit = verified.unit
        chain = self._chains.setdefault(unit.author + unit.device, _Chain())
        for event in verified.events:
            chain.total += amount_of(event)
            chain.next += 1
            chain.head = event.id

    def status(self) -> CounterIs:
        """How the counter stands, and who added how much."""
        shares = (Share(*_split(key), chain.next, chain.total) for key, chain in sorted(self._chains.items()))
        return CounterIs(self.topic, self.value, tuple(shares))

    def read_range(self, asked: Resend) -> Resent:
        """A page of the additions that another lacks."""
        return self._archive.read_range(asked)

    # Who has what.

    def sign_receipt(self, now: float) -> Receipt:
        """Our own word of what we have."""
        return sign_receipt(self._context.key, self.topic, False, now, self.places)

    def learn_receipt(self, receipt: Receipt, now: float) -> bool:
        """Take in what another has; whether it is news. `RemoteError` if the receipt is false."""
        known = self.ledger.latest.get(receipt.receiver)
        if receipt.receiver == self._context.peer or (known is not None and receipt.at_ms <= known.at_ms):
            return False
        return self.ledger.learn(receipt, now)

    def fates(self, number: int | None) -> FatesAre:
        """What is known of one of our additions, the newest by default."""
        own = self._context.author + self._context.device
        asked = self.next_of(own) - 1 if number is None else number
        if not 0 <= asked < self.next_of(own):
            raise Refused(Reason.UNKNOWN, "no such addition was made here")
        return FatesAre(
            asked,
            tuple(
                ReceiverFate(
                    receiver,
                    False,
                    known.since.get(own) if known.chains.get(own, -1) >= asked else None,
                )
                for receiver, known in self.ledger.receivers.items()
            ),
        )

    # Who reads.

    def open_reader(self, subscription: int, name: str | None) -> bool:
        """Hand every addition to a subscription; whether a durable one of this name resumes."""
        cursor = None
        if name is not None:
            if name in self._named.values():
                raise Refused(Reason.IN_USE, f"the subscription {name!r} is open")
            cursor = Cursor(self.topic, name, self._context.store.cells)
            if not cursor.resumed:
                cursor.begin(0)
            self._named[subscription] = name
        window: Window[Item] = Window(subscription, self._context.config)
        self.readers[subscription] = LogReader(self.topic, window, cursor, after=0)
        return cursor is not None and cursor.resumed

    def hand_log(self, subscription: int) -> None:
        """Hand over what was counted before."""
        self.readers[subscription].hand_log(self._context.store.log, self._out.committed)

    def close_reader(self, subscription: int, reason: Reason | None = None) -> None:
        """Hand a subscription no more."""
        self._named.pop(subscription, None)
        self.readers.pop(subscription).window.end(reason, self._out)

    def handle_consumed(self, subscription: int, items: int) -> None:
        """Hand over what waits: the application is done with so many items."""
        self.readers[subscription].handle_consumed(items, self._context.store.log, self._out.committed)


def _split(key: ChainKey) -> tuple[AuthorId, DeviceId]:
    return AuthorId(key[:32]), DeviceId(key[32:])
