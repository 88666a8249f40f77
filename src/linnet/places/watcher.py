"""One who watches a place: handed what is news when it comes, and from the store where it lags behind.

So a slow one loses nothing and holds nothing in memory. Messages are handed over as they come, several at
once if they are under way at once; each from its beginning. What is missing is waited for beside the others.
The place of a durable one is the first message that it has not handled whole.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator

from linnet.core.ids import AuthorId
from linnet.core.reasons import Reason
from linnet.places.channel.reassembly import Began, Broken, Finished, More, Piece, Step
from linnet.places.handing import TAKEN, Handing, request_mark
from linnet.places.items import Body, Lost, PlaceItem, Said, TakenBack
from linnet.places.looking_back import author_of
from linnet.places.multicast.fragmentation import KEYS
from linnet.places.parts import Parts

HOLES = 4096
"""Messages that are waited for at once; those past it are told as lost."""
ASIDE_ITEMS = 65_536
ASIDE_BYTES = 32 * 1024 * 1024
"""Requests of guests, knocks and changes that wait for a slow watcher; past this it ends."""


class _Open:
    """A message that it was handed the beginning of, and not the end."""

    __slots__ = ("began", "body", "steps")

    def __init__(self, began: Began, steps: Iterator[Step] | None) -> None:
        self.began = began
        self.body = 0
        """Bytes of its body that were handed over."""
        self.steps = steps
        """From the store; None: it is handed what comes."""


class Watcher:
    """One subscription without an end."""

    def __init__(
        self, parts: Parts, handing: Handing, first: int, hears: Callable[[str], bool], silent: bool = False
    ) -> None:
        """`hears`: whether a method is for this one; `silent`: none is."""
        self._parts = parts
        self._handing = handing
        self._hears = hears
        self._silent = silent
        self._first = self._next = first
        """The first message that was not looked at."""
        self.taken: tuple[int, ...] = ()
        """Messages that were taken back, which the application does not know yet."""
        self._historic = parts.fragments.standing.message
        self._open: dict[int, _Open] = {}
        self._ready: dict[int, None] = {}
        """Of those, the ones of which more is in the store."""
        self._holes: dict[int, None] = {}
        self._found: dict[int, None] = {}
        """Holes whose beginning came."""
        self._lost: dict[int, None] = {}
        """Messages that were told as lost, the latest: should one come after all it is handed over."""
        self._aside: deque[tuple[PlaceItem, int]] = deque()
        """Each with what stands for it in place of a message."""
        self._aside_bytes = 0
        self.answered: list[int] = []
        """Requests that the application is done with since somebody looked."""

    @property
    def position(self) -> int:
        """The first message that it has not handled whole."""
        return min((*self._handing.messages, *self._open, *self._holes, *self._found, self._next))

    @property
    def has_ended(self) -> bool:
        """Whether nothing more comes."""
        return self._handing.ended

    def tell_news(self, steps: Iterable[Step], author: AuthorId) -> None:
        """Hand over what is news now; it is in the store already."""
        if not self._silent and not self._handing.ended:
            for step in steps:
                self._tell(step, author)
        self.pump()

    def tell_aside(self, items: Iterable[PlaceItem], promised: bool = True) -> None:
        """Hand over what is not in the store: who knocks, what changed. Past its bound the watching ends."""
        for item in items:
            self._put_aside(item, 0)
        self._pump_bounded(promised)

    def tell_request(self, number: int, said: Said, body: Body) -> None:
        """Hand over a request that is kept under this number until it is handled."""
        self.put_request(number, said, body)
        self._pump_bounded()

    def put_request(self, number: int, said: Said, body: Body) -> None:
        """Put aside a request that waited; to be pumped."""
        self._put_aside(said, 0)
        self._put_aside(body, request_mark(number))

    def _put_aside(self, item: PlaceItem, mark: int) -> None:
        self._aside.append((item, mark))
        self._aside_bytes += len(item.data) if isinstance(item, Body) else 0

    def _pump_bounded(self, promised: bool = True) -> None:
        self.pump(promised)
        if len(self._aside) > ASIDE_ITEMS or self._aside_bytes > ASIDE_BYTES:
            self._aside.clear()
            self._handing.end(Reason.SUBSCRIBER_SLOW)
        self._handing.flush(promised)

    def handle_consumed(self, items: int) -> None:
        """Go on: the application is done with so many items."""
        for mark in self._handing.take_handled(items):
            if mark == TAKEN:
                self.taken = ()
            else:
                self.answered.append(request_mark(mark))
        self.pump()

    def cut_line(self, messages: list[int], broken: Iterable[Broken]) -> None:
        """Take back messages before which the line was cut: those that were handed over do not count, some
        will not be finished, and their numbers are used again."""
        first = min(messages)
        handed = [each for each in messages if self._first <= each < self._next and each not in self._holes]
        for each in broken:
            if self._open.pop(each.message, None) is not None:
                self._ready.pop(each.message, None)
                self._put_aside(Lost(self._parts.id, each.message, each.message, each.reason), 0)
        self._next = min(self._next, first)
        self._handing.forget(first)
        for known in (self._holes, self._found, self._lost, self._ready):
            for message in [each for each in known if each >= first]:
                del known[message]
        for message in [each for each in self._open if each >= first]:
            del self._open[message]
        if handed and not self._silent:
            self.take_back(tuple(handed))
        self.pump()

    def take_back(self, messages: tuple[int, ...]) -> None:
        """Tell that these do not count, with the next that is handed over."""
        self.taken = (*self.taken, *messages)
        self._put_aside(TakenBack(self._parts.id, messages), TAKEN)

    def end(self) -> None:
        """Hand over nothing more, as was asked."""
        self._handing.end(None)
        self._handing.flush(promised=False)

    def pump(self, promised: bool = True) -> None:
        """Hand over what is there, while there is room."""
        while self._handing.has_room:
            if self._aside:
                item, mark = self._aside.popleft()
                self._aside_bytes -= len(item.data) if isinstance(item, Body) else 0
                self._handing.hand([item], mark)
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
        self._handing.flush(promised)

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
            elif message == self._next and not self._ready and self._handing.has_room:
                self._next += 1
                self._begin(step, author, None)
        elif (
            opened.steps is None
            and message not in self._ready
            and self._handing.has_room
            and not isinstance(step, More)
        ):
            self._hand(opened, step)
        else:
            self._ready[message] = None

    def _look_at(self, message: int) -> None:
        """Begin with a message of the store, or note that it is not there."""
        steps = self._parts.assembly.historic(message)
        step = next(steps, None)
        if isinstance(step, Began):
            self._begin(step, author_of(self._parts, message), steps)
        elif isinstance(step, Broken):
            self._handing.hand([Lost(self._parts.id, message, message, step.reason)], message)
        elif not self._is_mute(message):
            self._holes[message] = None
            if len(self._holes) > HOLES:
                first = next(iter(self._holes))
                del self._holes[first]
                self._tell_lost(first, first, Reason.GAP_UNFILLED)

    def _is_mute(self, message: int) -> bool:
        """Whether nothing is to be heard of a message: it tells keys, or is old and its key is missing."""
        row = self._parts.fragments.get_at(message, 0)
        if row is not None and row.flags & KEYS:
            return True
        if message > self._historic or not self._parts.opening.is_locked(message):
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
        self._handing.hand([said], message)

    def _read(self, message: int) -> None:
        """The next piece of a message from the store; where there is none it is handed what comes."""
        opened = self._open[message]
        if opened.steps is None:
            opened.steps = self._parts.assembly.go_on(opened.began, opened.body)
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
                    self._handing.hand([Body(place, message, None, offset, data, False)], message)
                return
            case Finished(_, length):
                self._handing.hand([Body(place, message, None, length, b"", True)], message)
            case Broken(_, reason):
                self._handing.hand([Lost(place, message, message, reason)], message)
            case Began() | More():
                return
        del self._open[message]
        self._ready.pop(message, None)

    def _give_up(self) -> None:
        """Where no fragment is missing any more, holes are messages that are not for us, or were evicted."""
        if not self._holes or self._parts.missing.count:
            return
        holes = [message for message in sorted(self._holes) if not self._parts.opening.is_locked(message)]
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
        self._handing.hand([Lost(self._parts.id, first, last, reason)], last)
        for message in range(max(first, last - HOLES + 1), last + 1):
            self._lost[message] = None
            if len(self._lost) > HOLES:
                del self._lost[next(iter(self._lost))]
