"""A wish for messages of the past: those that are here are handed over, the others are asked for.

Toth 2013, section 4.3.3. A message that nobody gives, or that is closed to us, is told as lost.
"""

from __future__ import annotations

from collections.abc import Iterator

from linnet.core.errors import Refused
from linnet.core.ids import AuthorId
from linnet.core.reasons import Reason
from linnet.places.channel.history import History, HistoryStep, Told, Unheld
from linnet.places.channel.reassembly import Began, Broken, Finished, More, Piece
from linnet.places.commands import WatchPlace
from linnet.places.delivery_window import DeliveryWindow
from linnet.places.items import Body, Lost, PlaceItem, Said
from linnet.places.place_setup import Parts

ASKED = 16
"""Messages of one range that are asked for at the same time."""


class HistoryQuery:
    """One subscription that ends with a message of the past."""

    def __init__(self, command: WatchPlace, parts: Parts, window: DeliveryWindow) -> None:
        if command.durable is not None:
            raise Refused(Reason.UNSUPPORTED, "history has no place to go on from: it is read once")
        self._parts = parts
        self._window = window
        # What is before our entry, where that is closed, is not lost: nobody asked for it.
        open_from = parts.since if parts.deed.policy.restricts and not parts.may_speak else 1
        self.first = max(1, open_from if command.since is None else command.since)
        self._command = command
        self._at = self.first
        """The first message of which nothing was told."""
        self._history: History | None = None
        self._steps: Iterator[HistoryStep] | None = None
        self._asked: dict[tuple[int, int], None] = {}

    def pump(self) -> None:
        """Hand over what can be, and ask for what is not here."""
        self._hand_over()
        self._window.flush()

    def handle_consumed(self, items: int) -> None:
        """Go on: the application is done with so many items."""
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
        """Find the end of the range; whether there is anything to tell.

        Whoever has just come in does not know yet how much was said: what is missing is waited for.
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
        """Messages before this one that are here, and whose keys are not."""
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
        """Ask for what lacks; whether something was given up, so that it may go on."""
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
    """The person whose device began a message; the host, if its first fragment is gone."""
    row = parts.fragments.get_at(message, 0)
    verified = None if row is None else parts.fragments.verified(row)
    return parts.deed.host if verified is None else verified.unit.author
