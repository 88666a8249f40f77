"""Who watches a place at this node: what each is handed, and how far a durable one has come.

A watcher is handed what is news when it comes, and what is older from the store, message by message.
The place of a durable one is the first message that it has not handled whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from linnet.core.effects import Deliver
from linnet.core.ids import AuthorId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.items import Item
from linnet.delivery.subscription import Window
from linnet.places.channel.assembly import Began, Broken, Finished, Piece, Step
from linnet.places.commands import WatchPlace
from linnet.places.items import Body, Lost, PlaceItem, Said, TakenBack
from linnet.places.parts import Parts
from linnet.trace.records import Kind, Record

_PLACES = "place watcher"
_TAKEN = -1
"""In place of a message: the word that some were taken back."""
_MOST_TAKEN = 1024
"""Messages that are remembered as taken back for somebody who does not watch now; the first ones."""

WatchingEffect: TypeAlias = Deliver[Item | PlaceItem] | Record


class _Watcher:
    """One subscription."""

    def __init__(self, command: WatchPlace, window: Window[PlaceItem], first: int) -> None:
        self.command = command
        self.window = window
        self.next = first
        """The first message that it was not handed whole."""
        self.live = False
        """Whether it has caught up, and is handed what comes."""
        self.open: dict[int, None] = {}
        """Messages that it was handed the beginning of, and not the end."""
        self.first = first
        self.ends: list[tuple[int, int]] = []
        """Items in flight, with the message that each is the end of; 0: of none; `_TAKEN`."""
        self.taken: tuple[int, ...] = ()
        """Messages that were taken back, which the application does not know yet."""


class Watching:
    """The watchers of one place."""

    def __init__(self, parts: Parts, config: DeliveryConfig) -> None:
        self._parts = parts
        self._config = config
        self._cells: Cells = parts.context.store.cells
        self._watchers: dict[int, _Watcher] = {}

    def __contains__(self, subscription: int) -> bool:
        return subscription in self._watchers

    def __len__(self) -> int:
        return len(self._watchers)

    def add(self, command: WatchPlace) -> tuple[int, list[WatchingEffect]]:
        """A new one: the message it begins with, and what it is handed at once."""
        first = self._first(command)
        window: Window[PlaceItem] = Window(command.subscription, self._config)
        watcher = self._watchers[command.subscription] = _Watcher(command, window, first)
        kept = None if command.durable is None else self._cells.get(_PLACES, self._key(command))
        taken = () if kept is None else _numbers(kept[8:])
        effects = self._take_back(watcher, taken) if taken else []
        return first, [*effects, *self._pump(watcher)]

    def remove(self, subscription: int) -> list[WatchingEffect]:
        """It ends; a durable one keeps its place."""
        watcher = self._watchers.pop(subscription, None)
        return [] if watcher is None else [*watcher.window.end(None)]

    def told(self, steps: Iterable[Step], author: AuthorId) -> list[WatchingEffect]:
        """What is news now."""
        effects: list[WatchingEffect] = []
        for step in steps:
            items = list(self._items(step, author))
            for watcher in self._watchers.values():
                if watcher.live and not watcher.command.until:
                    effects += self._hand(watcher, step, items)
        return effects

    def heard(self, items: Iterable[PlaceItem]) -> list[WatchingEffect]:
        """What is for those who watch now, and is not in the store: requests, who knocks, what changed."""
        told = list(items)
        effects: list[WatchingEffect] = []
        for watcher in self._watchers.values():
            if not watcher.command.until:
                effects += watcher.window.hand(told)
                watcher.ends += [(1, 0)] * len(told)
        return effects

    def consumed(self, subscription: int, items: int) -> list[WatchingEffect]:
        """The application is done with so many items."""
        watcher = self._watchers[subscription]
        done, watcher.ends = watcher.ends[:items], watcher.ends[items:]
        last = max((message for _, message in done), default=0)
        if any(message == _TAKEN for _, message in done):
            watcher.taken = ()
        if last and watcher.command.durable is not None:
            position = self._position(watcher) if last < 0 else last + 1
            position = min(position, min(watcher.open, default=position))
            self._put(self._key(watcher.command), position, watcher.taken)
        effects: list[WatchingEffect] = [*watcher.window.handled(items)]
        return effects if watcher.live else [*effects, *self._pump(watcher)]

    def cut(self, broken: Iterable[Broken]) -> list[WatchingEffect]:
        """Messages that will not be finished."""
        effects: list[WatchingEffect] = []
        for each in broken:
            for watcher in self._watchers.values():
                if each.message in watcher.open:
                    effects += self._hand(watcher, each, list(self._items(each, self._parts.deed.host)))
        return effects

    def taken_back(self, messages: list[int], broken: Iterable[Broken]) -> list[WatchingEffect]:
        """The term of these messages was cut: whoever was handed them is told so, now or when it watches."""
        effects = self.cut(broken)
        first = min(messages)
        for key, kept in [each for each in self._cells.scan(_PLACES) if each[0].startswith(self._parts.id)]:
            position = int.from_bytes(kept[:8], "big")
            handed = [message for message in messages if message < position]
            if handed:
                self._put(key, first, (*_numbers(kept[8:]), *handed))
        for watcher in self._watchers.values():
            if watcher.command.until is None:
                handed = [each for each in messages if each >= watcher.first]
                handed = handed if watcher.live else [each for each in handed if each < watcher.next]
                watcher.ends = [(1, 0) if message >= first else (1, message) for _, message in watcher.ends]
                watcher.next = min(watcher.next, first)
                if handed:
                    effects += self._take_back(watcher, tuple(handed))
        return effects

    def _take_back(self, watcher: _Watcher, messages: tuple[int, ...]) -> list[WatchingEffect]:
        watcher.taken = (*watcher.taken, *messages)[:_MOST_TAKEN]
        watcher.ends.append((1, _TAKEN))
        return [*watcher.window.hand([TakenBack(self._parts.id, messages)])]

    def _position(self, watcher: _Watcher) -> int:
        kept = self._cells.get(_PLACES, self._key(watcher.command))
        return watcher.first if kept is None else int.from_bytes(kept[:8], "big")

    def _put(self, key: bytes, position: int, taken: tuple[int, ...]) -> None:
        numbers = (position, *taken[:_MOST_TAKEN])
        self._cells.put(_PLACES, key, b"".join(number.to_bytes(8, "big") for number in numbers))

    def _first(self, command: WatchPlace) -> int:
        if command.durable is not None:
            kept = self._cells.get(_PLACES, self._key(command))
            if kept is not None:
                return int.from_bytes(kept[:8], "big")
        newest = self._parts.fragments.standing.message + 1
        first = newest if command.since is None else command.since
        if command.durable is not None:
            self._cells.put(_PLACES, self._key(command), first.to_bytes(8, "big"))
        return first

    def _key(self, command: WatchPlace) -> bytes:
        return self._parts.id + (command.durable or "").encode()

    def _pump(self, watcher: _Watcher) -> list[WatchingEffect]:
        """Hand over what is in the store, a message at a time, while there is room; then what is news."""
        effects: list[WatchingEffect] = []
        newest = self._parts.fragments.standing.message
        last = newest if watcher.command.until is None else min(newest, watcher.command.until)
        while watcher.next <= last and watcher.window.idle and not watcher.window.ended:
            message = watcher.next
            watcher.next += 1
            row = self._parts.fragments.get_at(message, 0)
            if row is None:
                lost = Lost(self._parts.id, message, message, Reason.NOT_HELD)
                watcher.ends.append((1, message))
                effects += watcher.window.hand([lost])
                continue
            verified = self._parts.fragments.verified(row)
            author = self._parts.deed.host if verified is None else verified.unit.author
            for step in self._parts.assembly.historic(message):
                effects += self._hand(watcher, step, list(self._items(step, author)))
            if self._parts.opening.is_locked(message) and message not in watcher.open:
                effects += self._hand_locked(watcher, message)
            if message in watcher.open and row.term != self._parts.term and self._parts.is_whole:
                step = Broken(message, Reason.STALE, "its term ended before it did")
                effects += self._hand(watcher, step, list(self._items(step, author)))
        if watcher.next > last:
            watcher.live = True
            if watcher.command.until is not None:
                effects += watcher.window.end(None)
        return effects

    def _hand_locked(self, watcher: _Watcher, message: int) -> list[WatchingEffect]:
        """A message is here and its key is not: it is said when that has come."""
        watcher.ends.append((1, message))
        return [*watcher.window.hand([Lost(self._parts.id, message, message, Reason.KEY_MISSING)])]

    def _hand(self, watcher: _Watcher, step: Step, items: list[PlaceItem]) -> list[WatchingEffect]:
        message = step.message
        if isinstance(step, Began):
            watcher.open[message] = None
        elif message not in watcher.open:
            return []  # it began before this one watched
        ended = isinstance(step, Finished | Broken)
        if ended:
            watcher.open.pop(message, None)
        watcher.ends += [(1, 0)] * (len(items) - 1) + [(1, message if ended else 0)] if items else []
        was_ended = watcher.window.ended
        effects: list[WatchingEffect] = [*watcher.window.hand(items)]
        if watcher.window.ended and not was_ended:
            reason = Reason.SUBSCRIBER_SLOW
            effects.append(Record(Kind.DROPPED, self._parts.id, reason=reason, note="watcher"))
        return effects

    def _items(self, step: Step, author: AuthorId) -> Iterator[PlaceItem]:
        place = self._parts.id
        match step:
            case Began():
                yield Said(place, step.message, None, author, step.method, step.modifiers, step.historic)
            case Piece():
                yield Body(place, step.message, None, step.offset, step.data, False)
            case Finished():
                yield Body(place, step.message, None, step.length, b"", True)
            case Broken():
                yield Lost(place, step.message, step.message, step.reason)


def _numbers(raw: bytes) -> tuple[int, ...]:
    return tuple(int.from_bytes(raw[at : at + 8], "big") for at in range(0, len(raw), 8))
