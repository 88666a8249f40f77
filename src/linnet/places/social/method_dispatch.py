"""Try and slice: who hears a method that may be more specific than any name that somebody knows.

The whole name is tried, then what is left without its last keyword, and so on down to the empty name. The
first that anybody listens to is the one: so older software makes sense of newer methods
(Toth 2013, section 6.5).
"""

from __future__ import annotations

from typing import Generic, TypeVar

from msgspec import Struct

from linnet.core.errors import Refused
from linnet.core.ids import AuthorId
from linnet.core.reasons import Reason
from linnet.places.channel.packet import is_name, slices

OPEN_MESSAGES = 1024
"""Messages whose later pieces are still expected, at once; each costs about 200 bytes."""

T = TypeVar("T")


class GivenUp(Struct, frozen=True):
    """A message whose later pieces will find nobody: too many others were open."""

    nym: AuthorId | None
    message: int
    reason: Reason = Reason.TOO_MANY


class Opened(Struct, Generic[T], frozen=True):
    """Who hears a message, by which of their names, and what had to be given up for it."""

    name: str | None
    """None: nobody listens."""
    listeners: tuple[T, ...]
    given_up: GivenUp | None = None


class MethodDispatch(Generic[T]):
    """Listeners by the names that they wait for. The same one may wait for several."""

    def __init__(self, limit: int = OPEN_MESSAGES) -> None:
        self._limit = limit
        self._listeners: dict[str, list[T]] = {}
        self._open: dict[tuple[AuthorId | None, int], tuple[str, tuple[T, ...]]] = {}

    def __len__(self) -> int:
        return len(self._open)

    def add(self, name: str, listener: T) -> None:
        """From the next message on. The empty name: whatever nobody else waits for."""
        if name and not is_name(name):
            raise Refused(Reason.MALFORMED, f"no name of a method: {name[:256]!r}")
        known = self._listeners.setdefault(name, [])
        if listener not in known:
            known.append(listener)

    def remove(self, name: str, listener: T) -> None:
        """At once: also what is left of messages that have begun."""
        known = self._listeners.get(name, [])
        if listener in known:
            known.remove(listener)
            if not known:
                del self._listeners[name]

    def dispatch(self, method: str) -> tuple[str | None, tuple[T, ...]]:
        """The most specific name that somebody waits for, and all who do."""
        for name in slices(method):
            if name in self._listeners:
                return name, tuple(self._listeners[name])
        return None, ()

    def begin(self, message: int, method: str, nym: AuthorId | None = None) -> Opened[T]:
        """A message begins; its later pieces do not name the method again. `nym`: whose request it is."""
        name, listeners = self.dispatch(method)
        if name is None:
            return Opened(None, ())
        given_up = None
        if len(self._open) >= self._limit and (nym, message) not in self._open:
            oldest = next(iter(self._open))
            del self._open[oldest]
            given_up = GivenUp(*oldest)
        self._open[nym, message] = (name, listeners)
        return Opened(name, listeners, given_up)

    def piece(self, message: int, nym: AuthorId | None = None) -> tuple[T, ...]:
        """Who heard the beginning of this message, and still listens."""
        name, listeners = self._open.get((nym, message), ("", ()))
        known = self._listeners.get(name, [])
        return tuple(listener for listener in listeners if listener in known)

    def finish(self, message: int, nym: AuthorId | None = None) -> tuple[T, ...]:
        """The same for the last piece: then the message is forgotten."""
        listeners = self.piece(message, nym)
        self._open.pop((nym, message), None)
        return listeners
