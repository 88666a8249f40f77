"""The subscriptions of one stream at one node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from linnet.core.effects import AfterCommit, Deliver
from linnet.core.ids import AuthorId, Contact, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.catchup import CatchUp, CatchUpEffect
from linnet.delivery.chain import ChainKey
from linnet.delivery.context import Context
from linnet.delivery.items import CaughtUp, Item, Missed
from linnet.delivery.messages import HistoryPage
from linnet.delivery.subscription import Cursor, Window
from linnet.event.event import Event, Verified
from linnet.streams.commands import Subscribe
from linnet.streams.reader import Reader, Unseal, delivered, is_for_nodes, shown
from linnet.trace.records import Kind, Record

ReadersEffect = CatchUpEffect | Deliver[Item] | Record | AfterCommit[Deliver[Item] | Record]


class Readers:
    """Who wants what is said here, and how far each of them is."""

    def __init__(
        self,
        topic: TopicId,
        context: Context,
        owner: AuthorId | None = None,
        unseal: Unseal | None = None,
    ) -> None:
        self._topic = topic
        self._owner = owner
        self._unseal = None if owner is None else unseal
        self._context = context
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
        reader = Reader(command, window, cursor, self._owner, self._unseal)
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

    def begin(self, reader: Reader) -> list[ReadersEffect]:
        """Start a subscription: history from the log, from a storage node, or none."""
        command = reader.command
        if reader.cursor is not None:
            return self._after_commit(reader.pump(self._context.store.log))
        if command.since is None:
            return []
        context = self._context
        reader.catchup = CatchUp(
            command.subscription,
            self._topic,
            command.since,
            context.config,
            context.links,
            context.peer,
            context.author + context.device,
        )
        return [*reader.catchup.begin(self._storage, self._is_alone)]

    def remove(self, subscription: int) -> list[ReadersEffect]:
        """End a subscription; a durable one keeps its place."""
        reader = self._readers.pop(subscription, None)
        if reader is None:
            return []
        self._sort()
        effects: list[ReadersEffect] = []
        if reader.catchup is not None and not reader.catchup.over:
            effects += reader.catchup.finish(None)[0]
        return [*effects, *self._in_line(reader, reader.window.end(None))]

    # What the stream hands over.

    def hand(
        self, readers: list[Reader], verified: Verified, hops: int | None, said_at: float | None = None
    ) -> list[ReadersEffect]:
        """A unit to live subscriptions: as it came, or when its turn has come.

        With `said_at`, only to those who were there by then, or want history.
        """
        effects: list[ReadersEffect] = []
        for reader in readers:
            if said_at is not None and reader.came_after(said_at):
                continue
            effects += self._handed(reader, reader.offer(verified))
        if effects:
            effects.append(self._delivered(verified, hops))
        return effects

    def logged(self, position: int, verified: Verified, hops: int | None) -> list[Deliver[Item] | Record]:
        """A unit that was written, to durable subscriptions; to be performed after the commit."""
        effects: list[Deliver[Item] | Record] = []
        for reader in self._durable:
            effects += reader.logged(position, verified)
        return [*effects, self._delivered(verified, hops)] if effects else effects

    def here(self, verified: Verified, position: int | None) -> list[Deliver[Item] | Record]:
        """A unit of our own, to all; to be performed after the commit."""
        effects: list[Deliver[Item] | Record] = []
        for reader in self._readers.values():
            if reader.cursor is None:
                effects += self._handed(reader, reader.offer(verified))
            elif position is not None:
                effects += reader.logged(position, verified)
        return [*effects, self._delivered(verified, 0)] if effects else effects

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

    def missed(self, missed: Missed) -> list[ReadersEffect]:
        """A range that could not be had, to all."""
        effects: list[ReadersEffect] = []
        for reader in self._readers.values():
            effects += self._in_line(reader, reader.missed(missed))
        return effects

    def told(self, subscription: int, missed: Sequence[Missed]) -> list[ReadersEffect]:
        """What could not be had, to one of them."""
        reader = self._readers.get(subscription)
        if reader is None:
            return []
        return [effect for each in missed for effect in self._in_line(reader, reader.note(each))]

    def unlocked(self) -> list[ReadersEffect]:
        """A key came: what could not be read before and can be now, to all who were told of it."""
        effects: list[ReadersEffect] = []
        for reader in self._readers.values():
            effects += self._in_line(reader, self._handed(reader, reader.unlocked()))
        return effects

    # Catching up.

    def storage(self, nodes: tuple[Contact, ...]) -> list[ReadersEffect]:
        """These nodes keep the topic."""
        self._storage = nodes
        self._is_alone = False
        return [effect for catchup in self._catching_up() for effect in catchup.storage(nodes)]

    def alone(self) -> list[ReadersEffect]:
        """There is nobody who could have history but this node."""
        self._is_alone = True
        return [effect for catchup in self._catching_up() for effect in catchup.alone()]

    def up(self, peer: PeerId) -> list[ReadersEffect]:
        """A link is open."""
        return [effect for catchup in self._catching_up() for effect in catchup.up(peer)]

    def page(self, peer: PeerId, page: HistoryPage, units: Iterable[Verified]) -> list[ReadersEffect]:
        """A page of history."""
        reader = self._readers.get(page.request)
        if reader is None or reader.catchup is None or not reader.catchup.wants(peer, page):
            return []
        effects, items = reader.catchup.turn_page(page, units, reader.window.idle)
        return [*effects, *self._hand_history(reader, items)]

    def catchup_fired(self, subscription: int) -> list[ReadersEffect]:
        """A storage node took too long, or it is time to ask again."""
        reader = self._readers.get(subscription)
        if reader is None or reader.catchup is None or reader.catchup.over:
            return []
        effects, items = reader.catchup.fired()
        return [*effects, *self._hand_history(reader, items)]

    def anchored(self) -> list[ReadersEffect]:
        """A storage node has said what there is: durable subscriptions know where they stand."""
        effects: list[ReadersEffect] = []
        for reader in self._readers.values():
            if reader.cursor is not None:
                reader.cursor.settle()
                kept = self._context.store.log.kept(self._topic)
                effects += self._in_line(reader, reader.note(CaughtUp(kept.oldest, False, None)))
        return effects

    def handled(self, subscription: int, items: int) -> list[ReadersEffect]:
        """The application is done with so many items of a subscription."""
        reader = self._readers.get(subscription)
        if reader is None:
            return []
        effects: list[ReadersEffect] = []
        for effect in reader.handled(items, self._context.store.log):
            effects += self._in_line(reader, [effect]) if isinstance(effect, Deliver | Record) else [effect]
        return effects

    def _hand_history(self, reader: Reader, items: list[Item]) -> list[ReadersEffect]:
        # History knows nothing of kinds: what only nodes need is left out here, as it is live.
        owner = self._owner
        told = [item for item in items if not (isinstance(item, Event) and is_for_nodes(item, owner))]
        seen = [reader.seen((item,))[0] if isinstance(item, Event) else item for item in told]
        effects: list[ReadersEffect] = [*self._handed(reader, reader.window.hand(seen))]
        if not reader.window.ended:
            effects += delivered(item for item in told if isinstance(item, Event))
        if reader.catchup is not None and reader.catchup.over:
            reader.passed_history()
            if not reader.command.live:
                effects += reader.window.end(None)
        return effects

    def _handed(self, reader: Reader, effects: list[Deliver[Item]]) -> list[Deliver[Item] | Record]:
        """What was handed over, and a record if the subscription ended by it."""
        if not effects or not reader.window.ended:
            return [*effects]
        return [*effects, Record(Kind.DROPPED, self._topic, reason=Reason.SUBSCRIBER_SLOW)]

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

    def _in_line(self, reader: Reader, effects: Sequence[Deliver[Item] | Record]) -> list[ReadersEffect]:
        """What a durable subscription is handed comes after the commit, all of it: in one order."""
        return self._after_commit(effects) if reader.cursor is not None else [*effects]

    def _after_commit(self, effects: Iterable[Deliver[Item] | Record]) -> list[ReadersEffect]:
        promises = tuple(effects)
        return [AfterCommit(promises)] if promises else []
