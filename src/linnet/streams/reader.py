"""One subscription of a stream: live, behind history, or durable over the log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from linnet.core.effects import Deliver
from linnet.core.ids import AuthorId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import EventLog
from linnet.delivery.catchup import CatchUp
from linnet.delivery.chain import ChainKey
from linnet.delivery.items import Item, Missed, Unreadable, missed_by_damage
from linnet.delivery.subscription import Cursor, Window
from linnet.event.event import Event, Verified
from linnet.event.signing import decode_unit, recall_unit
from linnet.machine.outbox import Outbox, Promises
from linnet.streams.commands import Subscribe
from linnet.streams.policy import POLICY
from linnet.streams.sealed.announcement import KIND as ANNOUNCEMENT
from linnet.streams.sealed.locked import Locked
from linnet.trace.records import Kind, Record

Unseal = Callable[[Event], Event | Unreadable]
"""An event of the owner's as it is to be seen."""
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
