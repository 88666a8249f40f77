"""Reads messages of the past, by a range of their numbers.

Toth 2013, section 4.3.3: the range is inclusive, the own store comes first, missing fragments are asked for,
and the end is reported once. Messages are handed over in order: a hole is waited for until it is filled or
given up. A message that no peer has, or that is closed to us, is reported as lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from msgspec import Struct

from linnet.core.errors import Refused
from linnet.core.ids import AuthorId
from linnet.core.reasons import Reason
from linnet.places.channel.fragment_store import Fragments
from linnet.places.channel.reassembly import Began, Broken, Finished, More, Piece, Reassembly, Step
from linnet.places.commands import WatchPlace
from linnet.places.items import Body, DeliveryWindow, Lost, PlaceItem, Said
from linnet.places.place_setup import Parts

MOST_MESSAGES = 100_000
"""The most messages of one range; a longer one takes several queries."""


class Wanted(Struct, frozen=True, gc=False):
    """The piece of a message that must be replayed."""

    message: int
    offset: int


class Unheld(Struct, frozen=True, gc=False):
    """A message of the range that could not be fetched whole."""

    message: int
    reason: Reason


class Told(Struct, frozen=True, gc=False):
    """The end of the range, reported once."""

    first: int
    last: int


HistoryStep: TypeAlias = Step | Unheld | Told


class History:
    """Walks a range of messages, the first and last included; the first perhaps from a byte on."""

    def __init__(
        self, fragments: Fragments, assembly: Reassembly, first: int, last: int, offset: int = 0
    ) -> None:
        if not 1 <= first <= last:
            raise Refused(Reason.MALFORMED, f"no range of messages: {first} to {last}")
        if last - first >= MOST_MESSAGES:
            raise Refused(Reason.TOO_MANY, f"a range has at most {MOST_MESSAGES} messages")
        self._fragments = fragments
        self._assembly = assembly
        self._first = first
        self._last = last
        self._offset = offset
        self._next = first
        self._lost: dict[int, Reason] = {}
        self._done = False

    def wanted(self, most: int) -> list[Wanted]:
        """Return the pieces to ask for, lowest first: for each incomplete message its first missing piece."""
        found: list[Wanted] = []
        for message in range(self._next, self._last + 1):
            if len(found) >= most:
                break
            if message not in self._lost and not self._fragments.is_whole(message):
                found.append(Wanted(message, self._fragments.held_from_start(message)))
        return found

    def tell(self) -> Iterator[HistoryStep]:
        """Yield what is here, in order. To be called again when more arrives, and read to its end."""
        while self._next <= self._last:
            message = self._next
            if self._fragments.is_whole(message):
                self._next += 1
                yield from self._assembly.historic(message, self._offset if message == self._first else 0)
            elif message in self._lost:
                self._next += 1
                yield Unheld(message, self._lost.pop(message))
            else:
                return
        if not self._done:
            self._done = True
            yield Told(self._first, self._last)

    def give_up(self, message: int, reason: Reason) -> None:
        """Give a message up that cannot be fetched: it is closed to us, or nobody keeps it."""
        if self._next <= message <= self._last:
            self._lost[message] = reason


ASKED = 16
"""The messages of one range that are asked for at the same time."""


class HistoryQuery:
    """A subscription that ends with a message of the past."""

    def __init__(self, command: WatchPlace, parts: Parts, window: DeliveryWindow) -> None:
        if command.durable is not None:
            raise Refused(Reason.UNSUPPORTED, "history has no place to go on from: it is read once")
        self._parts = parts
        self._window = window
        # Messages before our entry, where those are closed to us, are not lost: nobody asked for them.
        open_from = parts.since if parts.deed.policy.restricts and not parts.may_speak else 1
        self.first = max(1, open_from if command.since is None else command.since)
        self._command = command
        self._at = self.first
        """The first message of which nothing was handed over."""
        self._history: History | None = None
        self._steps: Iterator[HistoryStep] | None = None
        self._asked: dict[tuple[int, int], None] = {}

    def pump(self) -> None:
        """Hand over what is here and fits the window, and ask for what is missing."""
        self._hand_over()
        self._window.flush()

    def handle_consumed(self, items: int) -> None:
        """Go on after the application has handled so many items."""
        self._window.take_handled(items)
        self.pump()

    def _hand_over(self) -> None:
        if self._history is None and not self._begin():
            return
        while self._history is not None and self._window.has_room:
            step = self._next(self._history)
            if step is None:
                if not self._ask(self._history):
                    break
                continue
            if isinstance(step, Told):
                self._tell_locked(step.last + 1)
                self._window.end(None)
            else:
                self._tell_locked(step.message)
                self._window.hand(self._items(step))

    def _begin(self) -> bool:
        """Find the end of the range; return whether there is anything to hand over.

        A newcomer does not know yet how many messages there are: missing fragments are waited for.
        """
        parts, until = self._parts, self._command.until
        newest = parts.fragments.standing.message
        last = newest if until is None or until < 0 else min(until, newest)
        repair = parts.fragment_repair
        if last != until and repair.count and repair.can_ask and not repair.is_stuck:
            return False
        if self.first > last:
            self._window.end(None)
            return False
        offset = self._command.offset
        self._history = History(parts.fragments, parts.reassembly, self.first, last, offset)
        return True

    def _tell_locked(self, message: int) -> None:
        """Report messages before this one as lost that are here, but whose keys are missing."""
        for passed in range(self._at, message):
            if self._parts.guest_keys.is_locked(passed):
                self._window.hand([Lost(self._parts.id, passed, passed, Reason.KEY_MISSING)])
        self._at = max(self._at, message + 1)

    def _next(self, history: History) -> HistoryStep | None:
        if self._steps is None:
            self._steps = history.tell()
        step = next(self._steps, None)
        if step is None:
            self._steps = None
        return step

    def _ask(self, history: History) -> bool:
        """Ask for missing pieces; return whether a message was given up, so that the reading may go on."""
        parts, given_up = self._parts, False
        for wish in history.wanted(ASKED):
            key = (wish.message, wish.offset)
            if wish.message < parts.since and parts.deed.policy.restricts:
                reason: Reason | None = Reason.NOT_ALLOWED
            elif not parts.fragment_repair.can_ask:
                reason = Reason.NOT_HELD if parts.is_voice else Reason.UNREACHABLE
            elif key in self._asked and not parts.fragment_repair.is_wanted(*key):
                reason = Reason.NOT_HELD
            else:
                reason = None if parts.fragment_repair.want(*key) else Reason.QUEUE_FULL
                self._asked[key] = None
            if reason is not None:
                history.give_up(wish.message, reason)
                given_up = True
        return given_up

    def _items(self, step: Began | Piece | More | Finished | Broken | Unheld) -> Iterator[PlaceItem]:
        place, message = self._parts.id, step.message
        match step:
            case Began(_, method, modifiers):
                yield Said(place, message, None, author_of(self._parts, message), method, modifiers, True)
            case Piece(_, offset, data):
                yield Body(place, message, None, offset, data, False)
            case More():
                return  # what is read from the store is read to its end
            case Finished(_, length):
                yield Body(place, message, None, length, b"", True)
            case Broken(_, reason) | Unheld(_, reason):
                yield Lost(place, message, message, reason)


def author_of(parts: Parts, message: int) -> AuthorId:
    """Return the person whose device began a message; the host, if its first fragment is gone."""
    row = parts.fragments.get_at(message, 0)
    verified = None if row is None else parts.fragments.verified(row)
    return parts.deed.host if verified is None else verified.unit.author
