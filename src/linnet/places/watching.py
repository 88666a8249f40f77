"""Who watches a place at this node: what each is told, and how far a durable one has come.

Several applications share a place by the methods that they name (`social.method_dispatch`), and by the
objects that they watch (`social.objects`).
"""

from __future__ import annotations

from collections.abc import Iterable

from linnet.core.errors import Refused
from linnet.core.ids import AuthorId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.delivery.config import DeliveryConfig
from linnet.machine.outbox import Outbox
from linnet.places.channel.packet import Packet
from linnet.places.channel.reassembly import Broken, Step
from linnet.places.commands import WatchPlace
from linnet.places.handing import Handing
from linnet.places.items import Changed, Knocked, PlaceItem
from linnet.places.looking_back import LookingBack
from linnet.places.parts import Parts
from linnet.places.requests import Requests, items_of
from linnet.places.social.method_dispatch import Slicer
from linnet.places.social.objects import Objects
from linnet.places.watcher import Watcher
from linnet.trace.records import Kind, Record

_PLACES = "place watcher"
_MOST_TAKEN = 1024
"""Messages that are remembered as taken back for somebody who does not watch now; the first ones."""
WATCHERS = 4096
"""Subscriptions of one place at once."""


class Watching:
    """The watchers of one place."""

    def __init__(self, parts: Parts, config: DeliveryConfig, out: Outbox) -> None:
        self._parts = parts
        self._out = out
        self._config = config
        self._cells: Cells = parts.context.store.cells
        self._commands: dict[int, WatchPlace] = {}
        self._watchers: dict[int, Watcher] = {}
        self._ranges: dict[int, LookingBack] = {}
        self._slicer: Slicer[int] = Slicer()
        self._watches: dict[int, int] = {}
        self._positions: dict[int, tuple[int, tuple[int, ...]]] = {}
        self._requests = Requests(parts.id, self._cells)
        self.objects: Objects[int] = Objects(lambda: parts.order.state)

    def __contains__(self, subscription: int) -> bool:
        return subscription in self._commands

    def __len__(self) -> int:
        return len(self._commands)

    def hears(self, method: str) -> bool:
        """Whether anybody would be told of a request with this method."""
        return any(self._is_for(number, method) for number in self._watchers)

    def add(self, command: WatchPlace) -> tuple[int, bool]:
        """Add a watcher: the message it begins with, and whether it was here before. To be pumped."""
        if len(self._commands) >= WATCHERS:
            raise Refused(Reason.TOO_MANY, f"{WATCHERS} watch this place")
        number = command.subscription
        handing = Handing(number, self._config.window_items, self._parts.config.watch_bytes, self._out)
        if command.until is not None:
            looking_back = self._ranges[number] = LookingBack(command, self._parts, handing)
            self._commands[number] = command
            return looking_back.first, False
        if command.objects is not None:
            self._watches[number] = self.objects.watch(command.objects, number)
        for method in command.methods or ():
            self._slicer.add(method, number)
        first, resumed = self._first(command)
        silent = command.methods == ()
        watcher = self._watchers[number] = Watcher(
            self._parts, handing, first, lambda method: self._is_for(number, method), silent
        )
        self._commands[number] = command
        kept = None if command.durable is None else self._cells.get(_PLACES, self._key(command))
        if kept is not None and len(kept) > 8:
            watcher.take_back(_numbers(kept[8:]))
        for waiting, said, body in self._requests.items() if self._requests else ():
            if self._is_for(number, said.method):
                watcher.put_request(waiting, said, body)
        return first, resumed

    def remove(self, subscription: int) -> None:
        """End a watcher; a durable one keeps its place."""
        command = self._commands.pop(subscription, None)
        if command is None:
            return
        self._positions.pop(subscription, None)
        self._ranges.pop(subscription, None)
        self.objects.unwatch(self._watches.pop(subscription, 0))
        for method in command.methods or ():
            self._slicer.remove(method, subscription)
        watcher = self._watchers.pop(subscription, None)
        if watcher is not None:
            watcher.end()

    def tell_news(self, steps: Iterable[Step], author: AuthorId) -> None:
        """Hand over what is news now."""
        news = list(steps)
        if news:
            for watcher in self._watchers.values():
                watcher.tell_news(news, author)

    def tell_request(self, nym: AuthorId, request: int, packet: Packet) -> None:
        """Keep a request of a guest until somebody who watches has handled it. `Refused`: too many wait."""
        kept = self._requests.keep(nym, request, packet)
        said, body = items_of(self._parts.id, nym, request, packet)
        for number in [each for each in self._watchers if self._is_for(each, packet.method)]:
            watcher = self._watchers[number]
            was_ended = watcher.has_ended
            watcher.tell_request(kept, said, body)
            self._record_end(watcher, was_ended)

    def tell_knock(self, knocked: Knocked) -> None:
        """Hand over who knocks to those who watch the door now: at once, since it is in no store."""
        for number in [each for each in self._watchers if self._commands[each].door]:
            self._tell_aside(number, [knocked], promised=False)

    def tell_changes(self, changes: Iterable[Changed]) -> None:
        """Hand over what changed to those who watch it now."""
        told: dict[int, list[PlaceItem]] = {}
        for change in changes:
            for seen in self.objects.changed({change.name: change.value}):
                told.setdefault(seen.watcher, []).append(change)
        for number, mine in told.items():
            self._tell_aside(number, mine)

    def _tell_aside(self, number: int, items: Iterable[PlaceItem], promised: bool = True) -> None:
        watcher = self._watchers[number]
        was_ended = watcher.has_ended
        watcher.tell_aside(items, promised)
        self._record_end(watcher, was_ended, promised)

    def _record_end(self, watcher: Watcher, was_ended: bool, promised: bool = True) -> None:
        if watcher.has_ended and not was_ended:
            ended = Record(Kind.DROPPED, self._parts.id, reason=Reason.SUBSCRIBER_SLOW, note="watcher")
            (self._out.committed if promised else self._out).record(ended)

    def pump(self) -> None:
        """Hand over what has come to be there, and what will not come any more."""
        for looking_back in self._ranges.values():
            looking_back.pump()
        for watcher in self._watchers.values():
            watcher.pump()

    def handle_consumed(self, subscription: int, items: int) -> None:
        """Go on with a watcher: the application is done with so many items."""
        looking_back = self._ranges.get(subscription)
        if looking_back is not None:
            looking_back.handle_consumed(items)
            return
        watcher, command = self._watchers[subscription], self._commands[subscription]
        watcher.handle_consumed(items)
        answered, watcher.answered = watcher.answered, []
        for number in answered:
            self._requests.done(number)
        if command.durable is not None:
            place = (watcher.position, watcher.taken)
            if place != self._positions.get(subscription):
                self._positions[subscription] = place
                self._put(self._key(command), *place)

    def take_back(self, messages: list[int], broken: Iterable[Broken]) -> None:
        """Take back messages whose term was cut: who was handed them is told so, now or when it watches."""
        gone, first = list(broken), min(messages)
        for key, kept in [each for each in self._cells.scan(_PLACES) if each[0].startswith(self._parts.id)]:
            position = int.from_bytes(kept[:8], "big")
            handed = [message for message in messages if message < position]
            if handed:
                self._put(key, first, (*_numbers(kept[8:]), *handed))
        self._positions.clear()
        for watcher in self._watchers.values():
            watcher.cut_line(messages, gone)

    def _put(self, key: bytes, position: int, taken: tuple[int, ...]) -> None:
        numbers = (position, *taken[:_MOST_TAKEN])
        self._cells.put(_PLACES, key, b"".join(number.to_bytes(8, "big") for number in numbers))

    def _is_for(self, number: int, method: str) -> bool:
        methods = self._commands[number].methods
        return methods is None or number in self._slicer.dispatch(method)[1]

    def _first(self, command: WatchPlace) -> tuple[int, bool]:
        if command.durable is not None:
            kept = self._cells.get(_PLACES, self._key(command))
            if kept is not None:
                return int.from_bytes(kept[:8], "big"), True
        newest = self._parts.fragments.standing.message + 1
        first = newest if command.since is None else max(1, command.since)
        if command.durable is not None:
            self._cells.put(_PLACES, self._key(command), first.to_bytes(8, "big"))
        return first, False

    def _key(self, command: WatchPlace) -> bytes:
        return self._parts.id + (command.durable or "").encode()


def _numbers(raw: bytes) -> tuple[int, ...]:
    return tuple(int.from_bytes(raw[at : at + 8], "big") for at in range(0, len(raw), 8))
