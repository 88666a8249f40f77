"""The subscriptions of one stream at one node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from linnet.core.ids import AuthorId, Contact, PeerId, TopicId
from linnet.delivery.catchup import CatchUp
from linnet.delivery.chain import ChainKey
from linnet.delivery.context import Context
from linnet.delivery.items import CaughtUp, Item, Missed
from linnet.delivery.messages import HistoryPage
from linnet.delivery.subscription import Cursor, Window
from linnet.event.event import Event, Verified
from linnet.machine.outbox import Outbox, Promises
from linnet.streams.commands import Subscribe
from linnet.streams.reader import Reader, Unseal, delivery_records, is_for_nodes, shown
from linnet.trace.records import Kind, Record


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
