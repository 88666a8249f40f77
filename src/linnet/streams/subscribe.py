"""The subscriptions of one stream at one node: how they begin, and what each of them receives.

A subscription is live, catching up with history, or durable and reads the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from linnet.core.ids import AuthorId, Contact, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.catch_up import CatchUp
from linnet.delivery.chain import ChainKey
from linnet.delivery.context import Context
from linnet.delivery.items import CaughtUp, CutOff, Forked, Item, Missed, Unreadable
from linnet.delivery.messages import HistoryPage, Kept
from linnet.delivery.subscriptions import Cursor, LogReader, Window
from linnet.event.event import Event, Verified
from linnet.machine.outbox import Outbox, Promises, Sink
from linnet.streams.commands import Subscribe
from linnet.streams.ingest import POLICY
from linnet.streams.sealed.owner import KIND as ANNOUNCEMENT
from linnet.streams.sealed.reader import Locked
from linnet.trace.records import Kind, Record

Unseal = Callable[[Event], Event | Unreadable]
"""Opens an event of the owner's for a subscription, or says that it is unreadable."""
SUBSCRIBED = "subscribed"
DURABLE = "subscribed, durable"
UNSUBSCRIBED = "unsubscribed"
"""These notes of records tell a trace who took part in a stream, and from when to when."""
_FOR_NODES = frozenset({POLICY, ANNOUNCEMENT})


class Reader(LogReader):
    """One subscription of the application. A durable one reads from the log."""

    __slots__ = ("_unseal", "catchup", "command", "floors", "locked", "made_at", "owner")

    def __init__(
        self,
        topic: TopicId,
        command: Subscribe,
        window: Window[Item],
        cursor: Cursor | None,
        owner: AuthorId | None,
        unseal: Unseal | None = None,
    ) -> None:
        super().__init__(topic, window, cursor, None)
        self.command = command
        self.owner = owner
        self._unseal = unseal
        self.catchup: CatchUp | None = None
        self.floors: dict[ChainKey, int] = {}
        """For each chain, the first number for this subscription: it has what is below, or that is older than
        it."""
        if cursor is not None:
            self.floors.update(cursor.floors())
        self.made_at: float | None = None
        """When it was made, if it wants only what is published after that."""
        self.locked = Locked()
        """Events that it was told are unreadable, but may become readable when a key arrives."""

    def offer(self, verified: Verified, out: Sink) -> bool:
        """Hand a unit to a live subscription; return whether any of it was handed over."""
        if self.catchup is not None and not self.catchup.over:
            self.catchup.hold_back(verified)
            return False
        return self._hand(self.unseal_events(self.visible_events(verified)), out)

    def hand_history(self, items: Sequence[Item], out: Sink) -> None:
        """Hand over items of history."""
        seen = [self.unseal_events((item,))[0] if isinstance(item, Event) else item for item in items]
        self._hand(seen, out)

    def _hand(self, items: Sequence[Item], out: Sink) -> bool:
        """Hand over what fits the window; record it if the subscription ended by that."""
        if not self.window.hand(items, out):
            return False
        if self.window.ended:
            out.record(Record(Kind.DROPPED, self.topic, reason=Reason.SUBSCRIBER_SLOW))
        return True

    def visible_events(self, verified: Verified) -> Sequence[Event]:
        """Return the events of a unit that applications may see and that this subscription has not had."""
        events = shown(verified, self.owner)
        if not self.floors or not events:
            return events
        first = events[0]
        floor = self.floors.get(first.author + first.device, 0)
        if first.seq is None or first.seq >= floor:
            return events
        return [event for event in events if (event.seq or 0) >= floor]

    def came_after(self, moment: float, now: float) -> bool:
        """Return whether it was made after this moment and wants only what is published after that.

        If it was made while our clock was ahead, nobody knows: in doubt it wants the event.
        """
        if self.made_at is None or self.command.since is not None:
            return False
        return moment < self.made_at <= now

    def unseal_events(self, events: Sequence[Event]) -> Sequence[Event | Unreadable]:
        """Open the sealed events for this subscription; those that do not open become `Unreadable`."""
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

    def hand_unlocked(self, out: Sink) -> None:
        """Hand over the waiting events that can be read since a key arrived."""
        opened = [item for item in self.unseal_events(self.locked.take()) if isinstance(item, Event)]
        if self.cursor is not None and opened:
            self.cursor.note_handed(self.read, len(opened))
        self._hand(opened, out)

    def tell_missed(self, missed: Missed, out: Sink) -> None:
        """Report a missed range, unless the subscription had it or history may still bring it."""
        if self.catchup is not None and not self.catchup.over:
            return
        if missed.last >= self.floors.get(missed.author + missed.device, 0):
            self.tell(missed, out)

    def skip_history(self) -> None:
        """Skip in the live stream what history has handed over already."""
        if self.catchup is not None:
            self.floors.update(self.catchup.reached)

    def hand_events(self, position: int, events: Sequence[Event], out: Sink) -> bool:
        """Hand over the events of the unit at a log position, opened if they are sealed."""
        self.read = position
        if self.cursor is not None:
            self.cursor.note_handed(position, len(events))
        return self.window.hand(self.unseal_events(events), out)

    def record_handed(self, events: Sequence[Event], out: Sink) -> None:
        """Record events that were handed over from the log."""
        for record in delivery_records(events):
            out.record(record)


def delivery_records(events: Iterable[Event]) -> list[Record]:
    """Return records that events not received just now were delivered; consecutive ones share a record."""
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
    """Return the events of a unit that applications see: all but what the stream's owner tells nodes."""
    # Only units of an owner are searched: most streams have none.
    if owner is None or verified.unit.author != owner:
        return verified.events
    return tuple(event for event in verified.events if not is_for_nodes(event, owner))


def is_for_nodes(event: Event, owner: AuthorId | None) -> bool:
    """Return whether an event is a policy or a key announcement. From anyone but the owner, it is neither."""
    return event.tail.kind in _FOR_NODES and event.author == owner


class Readers:
    """All subscriptions of one stream, and how far each of them has read."""

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
        """Live subscriptions that did not ask for order."""
        self._storage: tuple[Contact, ...] = ()
        self._is_alone = False
        """Whether it is known that no other node can have history."""

    def __len__(self) -> int:
        return len(self._readers)

    def __contains__(self, subscription: int) -> bool:
        return subscription in self._readers

    @property
    def durable(self) -> bool:
        """Whether any subscription is durable."""
        return bool(self._durable)

    @property
    def confirming(self) -> bool:
        """Whether any subscription sends receipts to publishers."""
        return any(reader.command.receipts for reader in self._readers.values())

    @property
    def since(self) -> float | None:
        """When the first subscription that wants only new events was made; None if there is none."""
        made = [reader.made_at for reader in self._readers.values() if reader.made_at is not None]
        return min(made, default=None)

    def add(self, command: Subscribe, cursor: Cursor | None, made_at: float | None = None) -> Reader:
        """Add a subscription and return it; `begin` starts it."""
        window: Window[Item] = Window(command.subscription, self._context.config)
        reader = Reader(self._topic, command, window, cursor, self._owner, self._unseal)
        reader.made_at = made_at
        self._readers[command.subscription] = reader
        self._sort()
        return reader

    def get(self, subscription: int) -> Reader | None:
        """Return the subscription of this number."""
        return self._readers.get(subscription)

    def is_named(self, name: str) -> bool:
        """Return whether a durable subscription of this name is active."""
        return any(reader.command.name == name for reader in self._readers.values())

    def begin(self, reader: Reader) -> None:
        """Start a subscription with history from the log, from a storage node, or without history."""
        command = reader.command
        if reader.cursor is not None:
            # A log may hold much: use one promise for all of it.
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
            context.keeping,
        )
        reader.catchup.begin(self._storage, self._is_alone)

    def remove(self, subscription: int) -> None:
        """End a subscription; a durable one keeps its position."""
        reader = self._readers.pop(subscription, None)
        if reader is None:
            return
        self._sort()
        if reader.catchup is not None and not reader.catchup.over:
            reader.catchup.finish(None)
        reader.window.end(None, self._line_to(reader))

    # Units from the stream.

    def hand(
        self,
        readers: list[Reader],
        verified: Verified,
        hops: int | None,
        now: float,
        said_at: float | None = None,
    ) -> None:
        """Hand a unit to live subscriptions, as it arrives or when its turn has come.

        With `said_at`, skip subscriptions that were made later and do not want history.
        """
        is_handed = False
        for reader in readers:
            if said_at is not None and reader.came_after(said_at, now):
                continue
            is_handed = reader.offer(verified, self._out) or is_handed
        if is_handed:
            self._out.record(self._delivered(verified, hops))

    def hand_written(self, position: int, verified: Verified, hops: int | None, promises: Promises) -> None:
        """Hand a written unit to durable subscriptions, after the commit."""
        is_handed = False
        for reader in self._durable:
            events = reader.visible_events(verified)
            is_handed = reader.hand_written(position, events, promises) or is_handed
        if is_handed:
            promises.record(self._delivered(verified, hops))

    def hand_own(self, verified: Verified, position: int | None, promises: Promises) -> None:
        """Hand a unit of our own to all subscriptions, after the commit."""
        is_handed = False
        for reader in self._readers.values():
            if reader.cursor is None:
                is_handed = reader.offer(verified, promises) or is_handed
            elif position is not None:
                events = reader.visible_events(verified)
                is_handed = reader.hand_written(position, events, promises) or is_handed
        if is_handed:
            promises.record(self._delivered(verified, 0))

    def go_back(self, floors: dict[ChainKey, int]) -> None:
        """Have subscriptions skip the events that they had: a durable one makes us read the chains again."""
        for reader in self._readers.values():
            reader.floors.update(floors)

    def due_from(self, chain: ChainKey, first: int) -> None:
        """Have durable subscriptions for new events skip events before `first`, since all are fetched."""
        for reader in self._durable:
            known = reader.floors.get(chain)
            if reader.cursor is not None and reader.made_at is not None and (known is None or first < known):
                reader.floors[chain] = first
                reader.cursor.begin_at(chain, first)

    def skip_older(self, verified: Verified, said_at: float, now: float) -> None:
        """Have subscriptions that were made after a unit was published skip it, and all before it."""
        unit = verified.unit
        chain, behind = unit.author + unit.device, (unit.seq or 0) + len(unit.tails)
        for reader in self._durable:
            is_new = reader.floors.get(chain, 0) < behind
            if reader.cursor is not None and is_new and reader.came_after(said_at, now):
                reader.floors[chain] = behind
                reader.cursor.begin_at(chain, behind)

    def tell_missed(self, missed: Missed) -> None:
        """Tell all subscriptions of a range that nobody could provide."""
        for reader in self._readers.values():
            reader.tell_missed(missed, self._line_to(reader))

    def tell_forked(self, forked: Forked) -> None:
        """Tell all subscriptions that a device has signed two events under one number."""
        for reader in self._readers.values():
            reader.tell(forked, self._line_to(reader))

    def tell_cut_off(self, cut_off: CutOff) -> None:
        """Tell all subscriptions that this node may be cut off, or is no longer."""
        for reader in self._readers.values():
            reader.tell(cut_off, self._line_to(reader))

    def tell_damaged(self, subscription: int, missed: Sequence[Missed]) -> None:
        """Tell a subscription which events are damaged in our log, unless others may still have them."""
        reader = self._readers.get(subscription)
        if reader is None:
            return
        catchup = reader.catchup
        for each in missed:
            if catchup is not None and not catchup.over:
                catchup.note_damage(each)
            else:
                reader.tell(each, self._line_to(reader))

    def hand_unlocked(self) -> None:
        """Hand subscriptions the events that have become readable since a key arrived."""
        for reader in self._readers.values():
            reader.hand_unlocked(self._line_to(reader))

    # Catching up.

    def set_storage(self, nodes: tuple[Contact, ...]) -> None:
        """Replace the known storage nodes of the topic."""
        self._storage = nodes
        self._is_alone = False
        for catchup in self._catching_up():
            catchup.set_storage(nodes)

    def note_alone(self) -> None:
        """Note that no other node can have history."""
        self._is_alone = True
        for catchup in self._catching_up():
            catchup.note_alone()

    def handle_link_up(self, peer: PeerId) -> None:
        """Resume the history requests that waited for a link."""
        for catchup in self._catching_up():
            catchup.handle_link_up(peer)

    def take_page(self, peer: PeerId, page: HistoryPage, units: Iterable[Verified]) -> None:
        """Hand a page of history to the subscription that asked for it."""
        reader = self._readers.get(page.request)
        if reader is None or reader.catchup is None or not reader.catchup.is_answer(peer, page):
            return
        self._hand_history(reader, reader.catchup.take_page(page, units, reader.window.idle))

    def take_kept(self, peer: PeerId, kept: Kept) -> None:
        """Let the subscription that asked know how far a storage node keeps the chains."""
        reader = self._readers.get(kept.request)
        if reader is not None and reader.catchup is not None and not reader.catchup.over:
            self._hand_history(reader, reader.catchup.take_kept(peer, kept))

    def end_comparing(self, subscription: int) -> None:
        """Go on without the storage nodes that do not say how far they keep the chains."""
        reader = self._readers.get(subscription)
        if reader is not None and reader.catchup is not None and not reader.catchup.over:
            self._hand_history(reader, reader.catchup.handle_ends_due())

    def end_waiting(self, subscription: int) -> None:
        """Ask for history again: a storage node took too long."""
        reader = self._readers.get(subscription)
        if reader is not None and reader.catchup is not None and not reader.catchup.over:
            self._hand_history(reader, reader.catchup.handle_timeout())

    def note_anchored(self) -> None:
        """Tell durable subscriptions that a storage node has said which chains exist."""
        for reader in self._readers.values():
            if reader.cursor is not None:
                reader.cursor.settle()
                kept = self._context.store.log.kept(self._topic)
                reader.tell(CaughtUp(kept.oldest, False, None), self._line_to(reader))

    def handle_consumed(self, subscription: int, items: int) -> None:
        """Hand over waiting items: the application has consumed this many."""
        reader = self._readers.get(subscription)
        if reader is None:
            return
        reader.handle_consumed(items, self._context.store.log, self._line_to(reader))
        if reader.catchup is not None and reader.window.idle:
            reader.catchup.resume()

    def _hand_history(self, reader: Reader, items: list[Item]) -> None:
        # History ignores the kinds of events: events for nodes are left out here, as they are live.
        owner = self._owner
        told = [item for item in items if not (isinstance(item, Event) and is_for_nodes(item, owner))]
        reader.hand_history(told, self._out)
        if not reader.window.ended:
            reader.record_handed([item for item in told if isinstance(item, Event)], self._out)
        if reader.catchup is not None and reader.catchup.over:
            reader.skip_history()
            if not reader.command.live:
                reader.window.end(None, self._out)

    def _sort(self) -> None:
        """Sort the subscriptions by how they are served, since every unit looks that up."""
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

    def _line_to(self, reader: Reader) -> Sink:
        """Return the sink for a subscription: for a durable one it acts after the commit, in one order."""
        return self._out if reader.cursor is None else self._out.committed
