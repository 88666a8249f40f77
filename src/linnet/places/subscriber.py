"""The subscribers of a place at this node: hands each its items, and keeps the position of durable ones.

Each is handed news as it comes, and reads from the store where it lags behind: so a slow one loses nothing
and holds nothing in memory. Messages are handed over as they come, several in parallel if they are under way
at once, each from its beginning. Missing messages are waited for while others go on. The position of a
durable subscriber is the first message that it has not handled whole.

Several applications share a place by the methods that they name, and by the objects that they watch
(`audience`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator

from linnet.core.errors import Refused
from linnet.core.ids import AuthorId
from linnet.core.reasons import Reason
from linnet.delivery.config import DeliveryConfig
from linnet.places.audience import MethodDispatch, ObjectWatches, check_method
from linnet.places.channel.packet import Packet
from linnet.places.channel.reassembly import Began, Broken, Finished, More, Piece, Step
from linnet.places.commands import WatchPlace
from linnet.places.guest_requests import PendingRequests, items_of
from linnet.places.history_query import HistoryQuery, author_of
from linnet.places.items import (
    TAKEN,
    Body,
    Changed,
    DeliveryWindow,
    Knocked,
    Lost,
    PlaceItem,
    Said,
    TakenBack,
    request_mark,
)
from linnet.places.multicast.fragmentation import KEYS
from linnet.places.place_setup import Parts
from linnet.trace.records import Kind, Record

HOLES = 4096
"""The most messages that are waited for at once; those past it are reported as lost."""
ASIDE_ITEMS = 65_536
ASIDE_BYTES = 32 * 1024 * 1024
"""Requests of guests, knocks and changes that wait for a slow subscriber; past this it ends."""
_PLACES = "place watcher"
_MOST_TAKEN = 1024
"""Messages that are remembered as taken back for a subscriber that is not connected now; the first ones."""
WATCHERS = 4096
"""The most subscriptions of one place at once."""


class _Open:
    """A message whose beginning was handed over, and whose end was not."""

    __slots__ = ("began", "body", "steps")

    def __init__(self, began: Began, steps: Iterator[Step] | None) -> None:
        self.began = began
        self.body = 0
        """The bytes of its body that were handed over."""
        self.steps = steps
        """The remaining steps from the store; None: it is handed live steps."""


class Subscriber:
    """One subscription without an end."""

    def __init__(
        self,
        parts: Parts,
        window: DeliveryWindow,
        first: int,
        hears: Callable[[str], bool],
        silent: bool = False,
    ) -> None:
        """`hears` tells whether a method is for this subscriber; `silent`: it gets no messages at all."""
        self._parts = parts
        self._window = window
        self._hears = hears
        self._silent = silent
        self._first = self._next = first
        """The first message that was not looked at."""
        self.taken: tuple[int, ...] = ()
        """Messages that were taken back without the application knowing it yet."""
        self._historic = parts.fragments.standing.message
        self._open: dict[int, _Open] = {}
        self._ready: dict[int, None] = {}
        """Open messages that have more in the store."""
        self._holes: dict[int, None] = {}
        self._found: dict[int, None] = {}
        """Holes whose beginning has arrived."""
        self._lost: dict[int, None] = {}
        """Messages that were reported as lost, the latest: one that arrives after all is handed over."""
        self._aside: deque[tuple[PlaceItem, int]] = deque()
        """Items from outside the store, each with the mark that stands for it in place of a message."""
        self._aside_bytes = 0
        self.answered: list[int] = []
        """Requests that the application has handled since this list was last emptied."""

    @property
    def position(self) -> int:
        """The first message that the application has not handled whole."""
        return min((*self._window.messages, *self._open, *self._holes, *self._found, self._next))

    @property
    def has_ended(self) -> bool:
        """Whether the subscription has ended."""
        return self._window.ended

    def tell_news(self, steps: Iterable[Step], author: AuthorId) -> None:
        """Hand over news, which is in the store already."""
        if not self._silent and not self._window.ended:
            for step in steps:
                self._tell(step, author)
        self.pump()

    def tell_aside(self, items: Iterable[PlaceItem], promised: bool = True) -> None:
        """Hand over items that are not in the store: knocks and changes. Past its bound it ends."""
        for item in items:
            self._put_aside(item, 0)
        self._pump_bounded(promised)

    def tell_request(self, number: int, said: Said, body: Body) -> None:
        """Hand over a request that is kept under this number until it is handled."""
        self.put_request(number, said, body)
        self._pump_bounded()

    def put_request(self, number: int, said: Said, body: Body) -> None:
        """Queue a request that waited, for the next `pump`."""
        self._put_aside(said, 0)
        self._put_aside(body, request_mark(number))

    def _put_aside(self, item: PlaceItem, mark: int) -> None:
        self._aside.append((item, mark))
        self._aside_bytes += len(item.data) if isinstance(item, Body) else 0

    def _pump_bounded(self, promised: bool = True) -> None:
        self.pump(promised)
        if len(self._aside) > ASIDE_ITEMS or self._aside_bytes > ASIDE_BYTES:
            self._aside.clear()
            self._window.end(Reason.SUBSCRIBER_SLOW)
        self._window.flush(promised)

    def handle_consumed(self, items: int) -> None:
        """Go on after the application has handled so many items."""
        for mark in self._window.take_handled(items):
            if mark == TAKEN:
                self.taken = ()
            else:
                self.answered.append(request_mark(mark))
        self.pump()

    def cut_line(self, messages: list[int], broken: Iterable[Broken]) -> None:
        """Take back these messages, where the line was cut: those that were handed over do not count, some
        will not be finished, and their numbers are used again."""
        first = min(messages)
        handed = [each for each in messages if self._first <= each < self._next and each not in self._holes]
        for each in broken:
            if self._open.pop(each.message, None) is not None:
                self._ready.pop(each.message, None)
                self._put_aside(Lost(self._parts.id, each.message, each.message, each.reason), 0)
        self._next = min(self._next, first)
        self._window.forget(first)
        for known in (self._holes, self._found, self._lost, self._ready):
            for message in [each for each in known if each >= first]:
                del known[message]
        for message in [each for each in self._open if each >= first]:
            del self._open[message]
        if handed and not self._silent:
            self.take_back(tuple(handed))
        self.pump()

    def take_back(self, messages: tuple[int, ...]) -> None:
        """Queue the notice that these messages do not count."""
        self.taken = (*self.taken, *messages)
        self._put_aside(TakenBack(self._parts.id, messages), TAKEN)

    def end(self) -> None:
        """End the subscription, as was asked."""
        self._window.end(None)
        self._window.flush(promised=False)

    def pump(self, promised: bool = True) -> None:
        """Hand over what is available, while there is room."""
        while self._window.has_room:
            if self._aside:
                item, mark = self._aside.popleft()
                self._aside_bytes -= len(item.data) if isinstance(item, Body) else 0
                self._window.hand([item], mark)
            elif self._ready:
                self._read(next(iter(self._ready)))
            elif self._found:
                message = next(iter(self._found))
                del self._found[message]
                self._look_at(message)
            elif not self._silent and self._next <= self._parts.fragments.standing.message:
                self._next += 1
                self._look_at(self._next - 1)
            else:
                self._give_up()
                break
        self._window.flush(promised)

    # Inside.

    def _tell(self, step: Step, author: AuthorId) -> None:
        message = step.message
        opened = self._open.get(message)
        if opened is None:
            if not isinstance(step, Began):
                return  # not for this one, or to be read from the store
            if message in self._holes or message in self._lost:
                self._holes.pop(message, None)
                self._lost.pop(message, None)
                self._found[message] = None
            elif message == self._next and not self._ready and self._window.has_room:
                self._next += 1
                self._begin(step, author, None)
        elif (
            opened.steps is None
            and message not in self._ready
            and self._window.has_room
            and not isinstance(step, More)
        ):
            self._hand(opened, step)
        else:
            self._ready[message] = None

    def _look_at(self, message: int) -> None:
        """Begin with a message of the store, or note that it is not there."""
        steps = self._parts.reassembly.historic(message)
        step = next(steps, None)
        if isinstance(step, Began):
            self._begin(step, author_of(self._parts, message), steps)
        elif isinstance(step, Broken):
            self._window.hand([Lost(self._parts.id, message, message, step.reason)], message)
        elif not self._is_mute(message):
            self._holes[message] = None
            if len(self._holes) > HOLES:
                first = next(iter(self._holes))
                del self._holes[first]
                self._tell_lost(first, first, Reason.GAP_UNFILLED)

    def _is_mute(self, message: int) -> bool:
        """Return whether nothing of a message is handed over: it has keys, or is old without its key."""
        row = self._parts.fragments.get_at(message, 0)
        if row is not None and row.flags & KEYS:
            return True
        if message > self._historic or not self._parts.guest_keys.is_locked(message):
            return False
        self._tell_lost(message, message, Reason.KEY_MISSING)  # it is handed over when the key has come
        return True

    def _begin(self, began: Began, author: AuthorId, steps: Iterator[Step] | None) -> None:
        if not self._hears(began.method):
            return
        message = began.message
        self._open[message] = _Open(began, steps)
        if steps is not None:
            self._ready[message] = None
        historic = message <= self._historic
        said = Said(self._parts.id, message, None, author, began.method, began.modifiers, historic)
        self._window.hand([said], message)

    def _read(self, message: int) -> None:
        """Hand over the next piece of a message from the store; without one, switch it to live steps."""
        opened = self._open[message]
        if opened.steps is None:
            opened.steps = self._parts.reassembly.go_on(opened.began, opened.body)
        step = next(opened.steps, None)
        if step is not None:
            self._hand(opened, step)
            return
        opened.steps = None
        del self._ready[message]
        row = self._parts.fragments.get_at(message, 0)
        if row is not None and row.term != self._parts.term and self._parts.is_whole:
            self._hand(opened, Broken(message, Reason.STALE, "its term ended before it did"))

    def _hand(self, opened: _Open, step: Step) -> None:
        place, message = self._parts.id, step.message
        match step:
            case Piece(_, offset, data):
                if offset == opened.body:  # otherwise it was handed over before
                    opened.body += len(data)
                    self._window.hand([Body(place, message, None, offset, data, False)], message)
                return
            case Finished(_, length):
                self._window.hand([Body(place, message, None, length, b"", True)], message)
            case Broken(_, reason):
                self._window.hand([Lost(place, message, message, reason)], message)
            case Began() | More():
                return
        del self._open[message]
        self._ready.pop(message, None)

    def _give_up(self) -> None:
        """Report holes as lost once no fragment is missing any more: they are not for us, or were evicted."""
        if not self._holes or self._parts.fragment_repair.count:
            return
        holes = [message for message in sorted(self._holes) if not self._parts.guest_keys.is_locked(message)]
        if not holes:
            return
        for message in holes:
            del self._holes[message]
        first = last = holes[0]
        for message in (*holes[1:], 0):
            if message == last + 1:
                last = message
                continue
            closed = first < self._parts.since
            self._tell_lost(first, last, Reason.NOT_ALLOWED if closed else Reason.NOT_HELD)
            first = last = message

    def _tell_lost(self, first: int, last: int, reason: Reason) -> None:
        self._window.hand([Lost(self._parts.id, first, last, reason)], last)
        for message in range(max(first, last - HOLES + 1), last + 1):
            self._lost[message] = None
            if len(self._lost) > HOLES:
                del self._lost[next(iter(self._lost))]


class Subscribers:
    """The subscribers of one place."""

    def __init__(self, parts: Parts, config: DeliveryConfig) -> None:
        self._parts = parts
        self._config = config
        self._commands: dict[int, WatchPlace] = {}
        self._watchers: dict[int, Subscriber] = {}
        self._ranges: dict[int, HistoryQuery] = {}
        self._dispatch: MethodDispatch[int] = MethodDispatch()
        self._watches: dict[int, int] = {}
        self._positions: dict[int, tuple[int, tuple[int, ...]]] = {}
        self._requests = PendingRequests(parts.id, parts.context.store.cells)
        self._objects: ObjectWatches[int] = ObjectWatches()

    def __contains__(self, subscription: int) -> bool:
        return subscription in self._commands

    def __len__(self) -> int:
        return len(self._commands)

    def hears(self, method: str) -> bool:
        """Return whether any subscriber would get a request with this method."""
        return any(self._is_for(number, method) for number in self._watchers)

    def add(self, command: WatchPlace) -> tuple[int, bool]:
        """Add a subscriber, to be pumped; return its first message, and whether it was here before."""
        if len(self._commands) >= WATCHERS:
            raise Refused(Reason.TOO_MANY, f"{WATCHERS} watch this place")
        number = command.subscription
        window = DeliveryWindow(
            number, self._config.window_items, self._parts.config.watch_bytes, self._parts.out
        )
        if command.until is not None:
            query = self._ranges[number] = HistoryQuery(command, self._parts, window)
            self._commands[number] = command
            return query.first, False
        for method in command.methods or ():
            check_method(method)  # before anything is kept of a watcher that is refused
        if command.objects is not None:
            self._watches[number] = self._objects.watch(command.objects, number)
        for method in command.methods or ():
            self._dispatch.add(method, number)
        first, resumed = self._first(command)
        silent = not command.messages
        watcher = self._watchers[number] = Subscriber(
            self._parts, window, first, lambda method: self._is_for(number, method), silent
        )
        self._commands[number] = command
        kept = (
            None
            if command.durable is None
            else self._parts.context.store.cells.get(_PLACES, self._key(command))
        )
        if kept is not None and len(kept) > 8:
            watcher.take_back(_numbers(kept[8:]))
        for waiting, said, body in self._requests.items() if self._requests else ():
            if self._is_for(number, said.method):
                watcher.put_request(waiting, said, body)
        return first, resumed

    def remove(self, subscription: int) -> None:
        """End a subscription; a durable one keeps its position."""
        command = self._commands.pop(subscription, None)
        if command is None:
            return
        self._positions.pop(subscription, None)
        self._ranges.pop(subscription, None)
        self._objects.unwatch(self._watches.pop(subscription, 0))
        for method in command.methods or ():
            self._dispatch.remove(method, subscription)
        watcher = self._watchers.pop(subscription, None)
        if watcher is not None:
            watcher.end()

    def tell_news(self, steps: Iterable[Step], author: AuthorId) -> None:
        """Hand over new steps of messages."""
        news = list(steps)
        if news:
            for watcher in self._watchers.values():
                watcher.tell_news(news, author)

    def tell_request(self, nym: AuthorId, request: int, packet: Packet) -> None:
        """Keep a request of a guest until a subscriber has handled it. `Refused`: too many wait."""
        kept = self._requests.keep(nym, request, packet)
        said, body = items_of(self._parts.id, nym, request, packet)
        for number in [each for each in self._watchers if self._is_for(each, packet.method)]:
            watcher = self._watchers[number]
            was_ended = watcher.has_ended
            watcher.tell_request(kept, said, body)
            self._record_end(watcher, was_ended)

    def tell_knock(self, knocked: Knocked) -> None:
        """Hand a knock to the subscribers that watch the door now: at once, since it is in no store."""
        for number in [each for each in self._watchers if self._commands[each].door]:
            self._tell_aside(number, [knocked], promised=False)

    def tell_changes(self, changes: Iterable[Changed]) -> None:
        """Hand changes of objects to the subscribers that watch them now."""
        told: dict[int, list[PlaceItem]] = {}
        for change in changes:
            for number in self._objects.watchers_of(change.name):
                told.setdefault(number, []).append(change)
        for number, mine in told.items():
            self._tell_aside(number, mine)

    def _tell_aside(self, number: int, items: Iterable[PlaceItem], promised: bool = True) -> None:
        watcher = self._watchers[number]
        was_ended = watcher.has_ended
        watcher.tell_aside(items, promised)
        self._record_end(watcher, was_ended, promised)

    def _record_end(self, watcher: Subscriber, was_ended: bool, promised: bool = True) -> None:
        if watcher.has_ended and not was_ended:
            ended = Record(Kind.DROPPED, self._parts.id, reason=Reason.SUBSCRIBER_SLOW, note="watcher")
            (self._parts.out.committed if promised else self._parts.out).record(ended)

    def pump(self) -> None:
        """Hand over what has become available, and report what will not come any more."""
        for query in self._ranges.values():
            query.pump()
        for watcher in self._watchers.values():
            watcher.pump()

    def handle_consumed(self, subscription: int, items: int) -> None:
        """Go on with a subscriber whose application has handled so many items."""
        query = self._ranges.get(subscription)
        if query is not None:
            query.handle_consumed(items)
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
        """Take back messages whose term was cut: subscribers that got them hear so, now or on return."""
        gone, first = list(broken), min(messages)
        for key, kept in [
            each
            for each in self._parts.context.store.cells.scan(_PLACES)
            if each[0].startswith(self._parts.id)
        ]:
            position = int.from_bytes(kept[:8], "big")
            handed = [message for message in messages if message < position]
            if handed:
                self._put(key, first, (*_numbers(kept[8:]), *handed))
        self._positions.clear()
        for watcher in self._watchers.values():
            watcher.cut_line(messages, gone)

    def _put(self, key: bytes, position: int, taken: tuple[int, ...]) -> None:
        numbers = (position, *taken[:_MOST_TAKEN])
        self._parts.context.store.cells.put(
            _PLACES, key, b"".join(number.to_bytes(8, "big") for number in numbers)
        )

    def _is_for(self, number: int, method: str) -> bool:
        command = self._commands[number]
        if command.methods is None:
            return command.messages
        return number in self._dispatch.dispatch(method)

    def _first(self, command: WatchPlace) -> tuple[int, bool]:
        if command.durable is not None:
            kept = self._parts.context.store.cells.get(_PLACES, self._key(command))
            if kept is not None:
                return int.from_bytes(kept[:8], "big"), True
        newest = self._parts.fragments.standing.message + 1
        first = newest if command.since is None else max(1, command.since)
        if command.durable is not None:
            self._parts.context.store.cells.put(_PLACES, self._key(command), first.to_bytes(8, "big"))
        return first, False

    def _key(self, command: WatchPlace) -> bytes:
        return self._parts.id + (command.durable or "").encode()


def _numbers(raw: bytes) -> tuple[int, ...]:
    return tuple(int.from_bytes(raw[at : at + 8], "big") for at in range(0, len(raw), 8))
