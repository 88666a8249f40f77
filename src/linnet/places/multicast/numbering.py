"""The numbers that the voice of a place gives: fragments, messages, generations, distances of state.

The generation is read when a fragment is sent, not when its message began: what follows a removal is
closed to whoever was removed, also the rest of a message that is under way (decision 0018).
"""

from __future__ import annotations

from msgspec import Struct

from linnet.core.errors import Refused
from linnet.core.ids import AuthorId, EventId
from linnet.core.limits import LARGEST_COUNT
from linnet.core.reasons import Reason
from linnet.places.multicast.cutting import Piece
from linnet.places.multicast.head import HASH, KEYS, OPENING, SEALED, STATE, Change, Cut, Head

FIRST_TERM = 1
"""The term that is opened behind nothing."""


class Standing(Struct, frozen=True, gc=False):
    """How far the numbers of a place have come, as its store knows; the defaults are an empty place."""

    fragment: int = -1
    """The last one."""
    message: int = 0
    """The highest one that began."""
    generation: int = 0
    """Of the next fragment."""
    term: int = 0
    state: int = 0
    """The last message that changed state; 0: none."""
    head: EventId | None = None
    """The last fragment, by its event."""


class Message(Struct, frozen=True, gc=False):
    """A message under way."""

    number: int
    flags: int
    delta: int | None = None
    """To the message that changed state before; 0: state begins anew; None: it changes no state."""
    change: Change | None = None


class Numbering:
    """The counters of a place while this device is its voice; they go on from what the store has."""

    def __init__(self, standing: Standing) -> None:
        self._next = standing.fragment + 1
        self._message = standing.message
        self._generation = standing.generation
        self._term = standing.term
        self._state = standing.state
        self._open: dict[int, Message] = {}
        self._opening = False
        self._cut: Cut | None = None

    @property
    def standing(self) -> Standing:
        """How far it has come; without the event of the last fragment, which is not known here."""
        return Standing(self._next - 1, self._message, self._generation, self._term, self._state)

    @property
    def under_way(self) -> tuple[int, ...]:
        """Messages that began and have not ended."""
        return tuple(self._open)

    def open_term(self, last: Standing) -> tuple[int, ...]:
        """The next term begins behind this; the first fragment from now on opens it.

        Returns the messages that were under way: they cannot go on, and are to be said again.
        """
        if last.fragment >= 0 and last.head is None:
            raise Refused(Reason.MISSING_DEPENDENCY, "a term begins behind a fragment that is known")
        if last.fragment < 0 and last.term:
            raise Refused(Reason.MISSING_DEPENDENCY, f"nothing is known of term {last.term}")
        left = self.under_way
        self._open.clear()
        self._next, self._message = last.fragment + 1, last.message
        self._generation, self._state = last.generation, last.state
        self._term = last.term + 1
        self._opening = True
        self._cut = None if last.head is None else Cut(last.term, last.fragment, last.message, last.head)
        return left

    def begin(self, *, state: bool = False, reset: bool = False, hashed: bool = False) -> Message:
        """A message with the next number."""
        return self._begin(state, reset, hashed, None)

    def begin_keys(self) -> Message:
        """A message that tells keys."""
        return self._begin(False, False, False, None, KEYS)

    def begin_join(self, nym: AuthorId, since: int | None = None, *, hashed: bool = True) -> Message:
        """The notice that somebody came in; `since` is the first message open to them, else this one.

        With the hash of the state, for whoever is new: so it is a state message, if one that changes nothing.
        """
        number = self._message + 1
        if since is not None and not 0 <= since <= number:
            raise Refused(Reason.NOT_ALLOWED, f"message {number} cannot open what is after it")
        return self._begin(hashed, False, hashed, Change(nym, True, number if since is None else since))

    def begin_part(self, nym: AuthorId) -> Message:
        """The notice that somebody left: the generation grows behind it."""
        return self._begin(False, False, False, Change(nym, False, 0))

    def _begin(
        self, state: bool, reset: bool, hashed: bool, change: Change | None, flags: int = 0
    ) -> Message:
        if not self._term:
            raise Refused(Reason.NOT_ALLOWED, "no term is open")
        if self._message >= LARGEST_COUNT or self._next >= LARGEST_COUNT:
            raise Refused(Reason.TOO_LARGE, "the numbers of this place are used up")
        self._message += 1
        delta = None
        flags |= HASH if hashed else 0
        if state or reset:
            flags |= STATE
            delta = 0 if reset or not self._state else self._message - self._state
            self._state = self._message
        message = Message(self._message, flags, delta, change)
        self._open[message.number] = message
        return message

    def reopen(self, number: int, flags: int) -> None:
        """A message that began before we stopped is under way again; `Refused` if its term is over."""
        if self._opening or not self._term:
            raise Refused(Reason.STALE, f"message {number} was cut with its term: say it again")
        self._open[number] = Message(number, flags & (STATE | HASH))

    def head(self, number: int, piece: Piece, sealed: bool = False) -> Head:
        """The head of a piece that is sent now; every one is for one fragment, in the order of the calls."""
        message = self._open.get(number)
        if message is None:
            raise Refused(Reason.UNKNOWN, f"message {number} is not under way")
        if message.change is not None and not (piece.is_first and piece.is_last):
            raise Refused(Reason.TOO_LARGE, "a change of membership fits one fragment")
        if self._opening and not piece.is_first:
            raise Refused(Reason.NOT_ALLOWED, "a term opens with the beginning of a message")
        flags = message.flags | piece.flags | (OPENING if self._opening else 0)
        flags |= SEALED if sealed else 0
        head = Head(
            self._term,
            self._next,
            number,
            piece.offset,
            self._generation,
            flags,
            message.change,
            self._cut if self._opening else None,
        )
        self._sent(message, piece)
        return head

    def _sent(self, message: Message, piece: Piece) -> None:
        self._next += 1
        self._opening = False
        self._cut = None
        if piece.is_last:
            del self._open[message.number]
        if message.change is not None and not message.change.joins:
            self._generation += 1
