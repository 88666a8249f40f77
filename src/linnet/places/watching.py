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
from linnet.places.items import Body, Lost, PlaceItem, Said
from linnet.places.parts import Parts
from linnet.trace.records import Kind, Record

_PLACES = "place watcher"

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
        self.ends: list[tuple[int, int]] = []
        """Items in flight, with the message that each is the end of; 0: of none."""


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
        return first, self._pump(watcher)

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
        if last and watcher.command.durable is not None:
            open_ = min(watcher.open, default=last + 1)
            self._cells.put(_PLACES, self._key(watcher.command), min(last + 1, open_).to_bytes(8, "big"))
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

    def _first(self, command: WatchPlace) -> int:
        if command.durable is not None:
            kept = self._cells.get(_PLACES, self._key(command))
            if kept is not None:
                return int.from_bytes(kept, "big")
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
