"""The subscriptions of one stream at one node: how they begin, and what each is handed.

They are live, behind history, or durable over the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec.structs import replace

from linnet.core.effects import Deliver
from linnet.core.ids import AuthorId, Contact, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import EventLog
from linnet.delivery.catch_up import CatchUp
from linnet.delivery.chain import ChainKey
from linnet.delivery.commands import Declined
from linnet.delivery.context import Context
from linnet.delivery.items import CaughtUp, Item, Missed, Unreadable, missed_by_damage
from linnet.delivery.messages import HistoryPage
from linnet.delivery.subscription import Cursor, Window
from linnet.event.event import Event, Verified
from linnet.event.signing import decode_unit, recall_unit
from linnet.machine.outbox import Outbox, Promises
from linnet.streams.commands import Subscribe, Subscribed
from linnet.streams.policy import POLICY
from linnet.streams.sealed.owner import KIND as ANNOUNCEMENT
from linnet.streams.sealed.reader import Locked
from linnet.trace.records import Kind, Record

if TYPE_CHECKING:
    from linnet.streams.stream import Stream


Unseal = Callable[[Event], Event | Unreadable]
"""An event of the owner's as it is to be seen."""
NAME_CHARS = 128
SUBSCRIBED = "subscribed"
DURABLE = "subscribed, durable"
UNSUBSCRIBED = "unsubscribed"
"""Notes of the records by which a trace tells who took part in a stream, and from when to when."""
_FOR_NODES = frozenset({POLICY, ANNOUNCEMENT})
_PAGE = 256
"""Units that are read from the log at once for a durable subscription."""


class Reader:
    """What one subscription of the application needs.

    Its caller says where things go that are handed over: out at once, or to promises, to follow a commit.
    """

    __slots__ = (
        "_topic",
        "_unseal",
        "behind",
        "catchup",
        "command",
        "cursor",
        "floors",
        "locked",
        "made_at",
        "owner",
        "window",
    )

    def __init__(
        self,
        topic: TopicId,
        command: Subscribe,
        window: Window[Item],
        cursor: Cursor | None,
        owner: AuthorId | None,
        unseal: Unseal | None = None,
    ) -> None:
        self._topic = topic
        self.command = command
        self.owner = owner
        self._unseal = unseal
        self.window = window
        self.cursor = cursor
        self.catchup: CatchUp | None = None
        self.behind = cursor is not None
        """Whether the log holds something for it that was not handed over."""
        self.floors: dict[ChainKey, int] = {}
        """Chains of which nothing below is for it: it had that, or it was said before it was made."""
        if cursor is not None:
            self.floors.update(cursor.floors())
        self.made_at: float | None = None
        """When it was made, if it wants only what is said from then on."""
        self.locked = Locked()
        """Events that it was told of and that could not be read, but may be when a key comes."""

    def offer(self, verified: Verified, out: Outbox | Promises) -> bool:
        """Hand a unit to a live subscription; returns whether anything of it was handed over."""
        if self.catchup is not None and not self.catchup.over:
            self.catchup.hold_back(verified)
            return False
        events = self.seen(self._above_floor(shown(verified, self.owner)))
        return self._put(self.window.hand(events), out)

    def hand_history(self, items: Sequence[Item], out: Outbox | Promises) -> None:
        """Hand over items of history."""
        seen = [self.seen((item,))[0] if isinstance(item, Event) else item for item in items]
        self._put(self.window.hand(seen), out)

    def _put(self, handed: list[Deliver[Item]], out: Outbox | Promises) -> bool:
        """Hand over what the window lets through, with a record if the subscription ended by it."""
        if not handed:
            return False
        out.extend(handed)
        if self.window.ended:
            out.record(Record(Kind.DROPPED, self._topic, reason=Reason.SUBSCRIBER_SLOW))
        return True

    def _above_floor(self, events: tuple[Event, ...]) -> Sequence[Event]:
        if not self.floors or not events:
            return events
        first = events[0]
        floor = self.floors.get(first.author + first.device, 0)
        if first.seq is None or first.seq >= floor:
            return events
        return [event for event in events if (event.seq or 0) >= floor]

    def came_after(self, moment: float) -> bool:
        """Whether it was made after this and wants only what is said from then on."""
        return self.made_at is not None and self.command.since is None and moment < self.made_at

    def seen(self, events: Sequence[Event]) -> Sequence[Event | Unreadable]:
        """Events as this subscription is to see them: what is sealed is opened, or told to be unreadable."""
        unseal = self._unseal
        if unseal is None or all(event.tail.clear is None for event in events):
            return events
        items: list[Event | Unreadable] = []
        for event in events:
            item = unseal(event) if event.author == self.owner else event
            if isinstance(item, Unreadable):
                self.locked.add(event, item.reason)
            items.append(item)
        return items

    def hand_unlocked(self, out: Outbox | Promises) -> None:
        """A key came: hand over what can be read now."""
        opened = [item for item in self.seen(self.locked.take()) if isinstance(item, Event)]
        if self.cursor is not None and opened:
            self.cursor.handed(self.cursor.read, len(opened))
        self._put(self.window.hand(opened), out)

    def tell_missed(self, missed: Missed, out: Outbox | Promises) -> None:
        """Say what could not be had, unless it was had before or history may still bring it."""
        if self.catchup is not None and not self.catchup.over:
            return
        if missed.last >= self.floors.get(missed.author + missed.device, 0):
            self.tell(missed, out)

    def tell(self, item: Item, out: Outbox | Promises) -> None:
        """Hand over something that is no event; a cursor counts it, as the application does."""
        if self.cursor is not None:
            self.cursor.handed(self.cursor.read, 1)
        out.extend(self.window.hand((item,)))

    def skip_history(self) -> None:
        """History was handed over: what of it comes live after all was had."""
        if self.catchup is not None:
            self.floors.update(self.catchup.reached)

    def hand_written(self, position: int, verified: Verified, promises: Promises) -> bool:
        """Hand a unit to a durable subscription as it is written, if nothing waits before it.

        Returns whether anything of it was handed over.
        """
        events = self._above_floor(shown(verified, self.owner))
        if self.cursor is None or self.behind:
            return False
        if not self.window.fits(len(events)):
            self.behind = True
            return False
        self.cursor.handed(position, len(events))
        handed = self.window.hand(self.seen(events))
        promises.extend(handed)
        return bool(handed)

    def hand_log(self, log: EventLog, promises: Promises) -> None:
        """Hand over what the log holds for a durable subscription, as far as there is room."""
        if self.cursor is None or not self.behind:
            return
        topic = self.cursor.topic
        while True:
            found = log.read(topic, self.cursor.read, _PAGE)
            for position, entry in found:
                events = self._above_floor(shown(recall_unit(decode_unit(entry.raw)), self.owner))
                events = events[self.cursor.skipped(position) :]
                if not self.window.fits(len(events)):
                    return
                self.cursor.handed(position, len(events))
                handed = self.window.hand(self.seen(events))
                if handed:
                    promises.extend(handed)
                    promises.extend(delivery_records(events))
            for missed in missed_by_damage(log.left_out):
                self.tell(missed, promises)
            if len(found) < _PAGE:
                self.behind = False
                return

    def handle_consumed(self, items: int, log: EventLog, promises: Promises) -> None:
        """The application is done with so many items: hand over what waits behind them."""
        promises.extend(self.window.handled(items))
        if self.cursor is not None:
            self.cursor.handled(items)
            self.hand_log(log, promises)


def delivery_records(events: Iterable[Event]) -> list[Record]:
    """That events were handed over which did not come just now; what is consecutive, in one record."""
    records: list[Record] = []
    for event in events:
        last = records[-1] if records else None
        if last is not None and last.device == event.device and _after(last) == event.seq:
            records[-1] = replace(last, event=event.id, events=last.events + 1)
            continue
        records.append(Record(Kind.DELIVERED, event.topic, event.id, event.device, event.seq))
    return records


def _after(record: Record) -> int | None:
    return None if record.seq is None else record.seq + record.events


def shown(verified: Verified, owner: AuthorId | None) -> tuple[Event, ...]:
    """The events of a unit that applications see: all but what the stream's owner tells nodes."""
    # Only an owner's units are looked through: most streams have none.
    if owner is None or verified.unit.author != owner:
        return verified.events
    return tuple(event for event in verified.events if not is_for_nodes(event, owner))


def is_for_nodes(event: Event, owner: AuthorId | None) -> bool:
    """Whether an event is a policy or announces a key. From anyone but the owner, the kind means nothing."""
    return event.tail.kind in _FOR_NODES and event.author == owner


class Readers:
    """Who wants what is said here, and how far each of them is."""

    def __init__(
        self,
        topic: TopicId,
        context: Context,
        out: Outbox,
        owner: AuthorId | None = None,
        unseal: Unseal | None = None,
    ) -> None:
        self._topic = topic
        self._owner = owner
        self._unseal = None if owner is None else unseal
        self._context = context
        self._out = out
        self._readers: dict[int, Reader] = {}
        self._durable: list[Reader] = []
        self.ordered: list[Reader] = []
        """Live subscriptions that asked for order."""
        self.unordered: list[Reader] = []
        """Live subscriptions that did not."""
        self._storage: tuple[Contact, ...] = ()
        self._is_alone = False
        """Whether it is known that there is nobody who could have history."""

    def __len__(self) -> int:
        return len(self._readers)

    def __contains__(self, subscription: int) -> bool:
        return subscription in self._readers

    @property
    def durable(self) -> bool:
        """Whether any subscription lives on the log."""
        return bool(self._durable)

    @property
    def confirming(self) -> bool:
        """Whether any subscription lets publishers know that it received."""
        return any(reader.command.receipts for reader in self._readers.values())

    @property
    def since(self) -> float | None:
        """When the first of those subscribed who want only what is said from then on; None: nobody does."""
        made = [reader.made_at for reader in self._readers.values() if reader.made_at is not None]
        return min(made, default=None)

    def add(self, command: Subscribe, cursor: Cursor | None, made_at: float | None = None) -> Reader:
        """A new subscription; `begin` starts it."""
        window: Window[Item] = Window(command.subscription, self._context.config)
        reader = Reader(self._topic, command, window, cursor, self._owner, self._unseal)
        reader.made_at = made_at
        self._readers[command.subscription] = reader
        self._sort()
        return reader

    def get(self, subscription: int) -> Reader | None:
        """The subscription of this number."""
        return self._readers.get(subscription)

    def named(self, name: str) -> bool:
        """Whether a durable subscription of this name is on."""
        return any(reader.command.name == name for reader in self._readers.values())

    def begin(self, reader: Reader) -> None:
        """Start a subscription: history from the log, from a storage node, or none."""
        command = reader.command
        if reader.cursor is not None:
            promises = Promises()
            reader.hand_log(self._context.store.log, promises)
            if promises:
                self._out.committed.extend(promises)
            return
        if command.since is None:
            return
        context = self._context
        reader.catchup = CatchUp(
            command.subscription,
            self._topic,
            command.since,
            context.config,
            context.links,
            self._out,
            context.peer,
            context.author + context.device,
        )
        reader.catchup.begin(self._storage, self._is_alone)

    def remove(self, subscription: int) -> None:
        """End a subscription; a durable one keeps its place."""
        reader = self._readers.pop(subscription, None)
        if reader is None:
            return
        self._sort()
        if reader.catchup is not None and not reader.catchup.over:
            reader.catchup.finish(None)
        with self._line_to(reader) as out:
            out.extend(reader.window.end(None))

    # What the stream hands over.

    def hand(
        self, readers: list[Reader], verified: Verified, hops: int | None, said_at: float | None = None
    ) -> None:
        """Hand a unit to live subscriptions: as it came, or when its turn has come.

        With `said_at`, only to those who were there by then, or want history.
        """
        is_handed = False
        for reader in readers:
            if said_at is not None and reader.came_after(said_at):
                continue
            is_handed = reader.offer(verified, self._out) or is_handed
        if is_handed:
            self._out.record(self._delivered(verified, hops))

    def hand_written(self, position: int, verified: Verified, hops: int | None, promises: Promises) -> None:
        """Hand a unit that was written to durable subscriptions, after the commit."""
        is_handed = False
        for reader in self._durable:
            is_handed = reader.hand_written(position, verified, promises) or is_handed
        if is_handed:
            promises.record(self._delivered(verified, hops))

    def hand_own(self, verified: Verified, position: int | None, promises: Promises) -> None:
        """Hand a unit of our own to all, after the commit."""
        is_handed = False
        for reader in self._readers.values():
            if reader.cursor is None:
                is_handed = reader.offer(verified, promises) or is_handed
            elif position is not None:
                is_handed = reader.hand_written(position, verified, promises) or is_handed
        if is_handed:
            promises.record(self._delivered(verified, 0))

    def go_back(self, floors: dict[ChainKey, int]) -> None:
        """Chains are gone through again for a durable subscription; the others skip what they had."""
        for reader in self._readers.values():
            reader.floors.update(floors)

    def due_from(self, chain: ChainKey, first: int) -> None:
        """Everything is fetched here: durable subscriptions that were made from now on skip what is older."""
        for reader in self._durable:
            known = reader.floors.get(chain)
            if reader.cursor is not None and reader.made_at is not None and (known is None or first < known):
                reader.floors[chain] = first
                reader.cursor.begin_at(chain, first)

    def older(self, verified: Verified, said_at: float) -> None:
        """A unit is to be written that was said then: who came after that skips it, and all before it."""
        unit = verified.unit
        chain, behind = unit.author + unit.device, (unit.seq or 0) + len(unit.tails)
        for reader in self._durable:
            is_new = reader.floors.get(chain, 0) < behind
            if reader.cursor is not None and is_new and reader.came_after(said_at):
                reader.floors[chain] = behind
                reader.cursor.begin_at(chain, behind)

    def tell_missed(self, missed: Missed) -> None:
        """Tell all of a range that could not be had."""
        for reader in self._readers.values():
            with self._line_to(reader) as out:
                reader.tell_missed(missed, out)

    def tell_one(self, subscription: int, missed: Sequence[Missed]) -> None:
        """Tell one of them what could not be had."""
        reader = self._readers.get(subscription)
        if reader is None:
            return
        for each in missed:
            with self._line_to(reader) as out:
                reader.tell(each, out)

    def hand_unlocked(self) -> None:
        """A key came: hand what can be read now to all who were told that it could not."""
        for reader in self._readers.values():
            with self._line_to(reader) as out:
                reader.hand_unlocked(out)

    # Catching up.

    def set_storage(self, nodes: tuple[Contact, ...]) -> None:
        """These nodes keep the topic."""
        self._storage = nodes
        self._is_alone = False
        for catchup in self._catching_up():
            catchup.set_storage(nodes)

    def note_alone(self) -> None:
        """There is nobody who could have history but this node."""
        self._is_alone = True
        for catchup in self._catching_up():
            catchup.note_alone()

    def handle_link_up(self, peer: PeerId) -> None:
        """A link is open."""
        for catchup in self._catching_up():
            catchup.handle_link_up(peer)

    def take_page(self, peer: PeerId, page: HistoryPage, units: Iterable[Verified]) -> None:
        """Hand over a page of history to whoever asked for it."""
        reader = self._readers.get(page.request)
        if reader is None or reader.catchup is None or not reader.catchup.is_answer(peer, page):
            return
        self._hand_history(reader, reader.catchup.take_page(page, units, reader.window.idle))

    def end_waiting(self, subscription: int) -> None:
        """A storage node took too long, or it is time to ask again."""
        reader = self._readers.get(subscription)
        if reader is not None and reader.catchup is not None and not reader.catchup.over:
            self._hand_history(reader, reader.catchup.handle_timeout())

    def note_anchored(self) -> None:
        """A storage node has said what there is: durable subscriptions know where they stand."""
        for reader in self._readers.values():
            if reader.cursor is not None:
                reader.cursor.settle()
                kept = self._context.store.log.kept(self._topic)
                with self._line_to(reader) as out:
                    reader.tell(CaughtUp(kept.oldest, False, None), out)

    def handle_consumed(self, subscription: int, items: int) -> None:
        """The application is done with so many items of a subscription."""
        reader = self._readers.get(subscription)
        if reader is None:
            return
        handed = Promises()
        reader.handle_consumed(items, self._context.store.log, handed)
        if reader.cursor is None:
            self._out.extend(handed)
        else:
            for each in handed:
                self._out.committed.extend((each,))
        if reader.catchup is not None and reader.window.idle:
            reader.catchup.resume()

    def _hand_history(self, reader: Reader, items: list[Item]) -> None:
        # History knows nothing of kinds: what only nodes need is left out here, as it is live.
        owner = self._owner
        told = [item for item in items if not (isinstance(item, Event) and is_for_nodes(item, owner))]
        reader.hand_history(told, self._out)
        if not reader.window.ended:
            self._out.extend(delivery_records(item for item in told if isinstance(item, Event)))
        if reader.catchup is not None and reader.catchup.over:
            reader.skip_history()
            if not reader.command.live:
                self._out.extend(reader.window.end(None))

    def _sort(self) -> None:
        """Who is handed what: looked at for every unit, changed seldom."""
        readers = list(self._readers.values())
        self._durable = [reader for reader in readers if reader.cursor is not None]
        live = [reader for reader in readers if reader.cursor is None]
        self.ordered = [reader for reader in live if reader.command.ordered]
        self.unordered = [reader for reader in live if not reader.command.ordered]

    def _catching_up(self) -> list[CatchUp]:
        readers = self._readers.values()
        return [r.catchup for r in readers if r.catchup is not None and not r.catchup.over]

    def _delivered(self, verified: Verified, hops: int | None) -> Record:
        unit = verified.unit
        events = len(shown(verified, self._owner))
        return Record(Kind.DELIVERED, self._topic, verified.head, unit.device, unit.seq, events, hops=hops)

    @contextmanager
    def _line_to(self, reader: Reader) -> Iterator[Outbox | Promises]:
        """Where a subscription is handed things: a durable one all of them after the commit, in one order."""
        if reader.cursor is None:
            yield self._out
            return
        promises = Promises()
        yield promises
        if promises:
            self._out.committed.extend(promises)


def subscribe(
    stream: Stream, context: Context, out: Outbox, request: int, command: Subscribe, now: float
) -> None:
    """Begin a subscription; what it is handed first follows the answer."""
    objection = _objection(stream, command)
    if objection is not None:
        out.reply(request, objection)
        return
    if command.name is None:
        reader = stream.readers.add(command, None, now if command.live else None)
        out.reply(request, Subscribed(stream.topic, False))
        out.record(Record(Kind.CONTROL, stream.topic, note=SUBSCRIBED))
        stream.readers.begin(reader)
    else:
        _begin_durable(stream, context, out, request, command, command.name, now)
    stream.ask_anchor(now)
    stream.ask_neighbors(now)


def _begin_durable(
    stream: Stream, context: Context, out: Outbox, request: int, command: Subscribe, name: str, now: float
) -> None:
    cursor = Cursor(stream.topic, name, context.store.cells)
    kept = stream.keeps
    made_at: float | None = None
    if cursor.resumed:
        made_at = cursor.unsettled_since(now)
        stream.ingest.wants_all |= made_at is None
        stream.ingest.resumes |= made_at is not None
    elif command.since is None:
        made_at = now
        cursor.begin(context.store.log.end(), now)
        for chain in stream.ingest.chains.values():
            if chain.next:
                stream.archive.pass_over(chain.author, chain.device, chain.next - 1)
    else:
        cursor.begin(0)
        stream.ingest.wants_all = True
    # From now on everything is written; go on from what the log holds.
    goes_back = not kept and (cursor.resumed or stream.ingest.wants_all)
    if goes_back:
        stream.readers.go_back(stream.ingest.restore(cursor.resumed))
    reader = stream.readers.add(command, cursor, made_at)
    if stream.ingest.anchored:
        cursor.settle()
    promises = Promises()
    promises.reply(request, Subscribed(stream.topic, cursor.resumed))
    promises.record(Record(Kind.CONTROL, stream.topic, note=DURABLE))
    out.committed.extend(promises)
    stream.readers.begin(reader)
    if goes_back:
        for chain in stream.ingest.chains.values():
            stream.gaps.review_chain(chain)


def _objection(stream: Stream, command: Subscribe) -> Declined | None:
    if command.subscription in stream.readers:
        return Declined(Reason.IN_USE, f"there is a subscription {command.subscription} already")
    if command.name is None:
        return None
    if not 0 < len(command.name) <= NAME_CHARS or not command.name.isprintable():
        return Declined(Reason.MALFORMED, f"a subscription's name has 1 to {NAME_CHARS} printable characters")
    if stream.readers.named(command.name):
        return Declined(Reason.IN_USE, f"the durable subscription {command.name!r} is on already")
    if command.since:
        detail = (
            "a durable subscription begins now or at the beginning; leave out its name to begin at a time"
        )
        return Declined(Reason.UNSUPPORTED, detail)
    if not command.live:
        return Declined(Reason.UNSUPPORTED, "a durable subscription is live; leave out its name for history")
    return None
