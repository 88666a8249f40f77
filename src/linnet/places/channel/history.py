"""Messages of the past by a range of their numbers: what is held is told, what is not must be replayed.

Toth 2013, section 4.3.3: the range is inclusive, the own store comes first, and its end is told once.
Messages are told in order: a hole is waited for until it is filled or given up.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from msgspec import Struct

from linnet.core.errors import Refused
from linnet.core.reasons import Reason
from linnet.places.channel.fragment_store import Fragments
from linnet.places.channel.reassembly import Reassembly, Step

MOST_MESSAGES = 100_000
"""Messages of one range; whoever wants more asks again."""


class Wanted(Struct, frozen=True, gc=False):
    """The piece of a message that must be replayed."""

    message: int
    offset: int


class Unheld(Struct, frozen=True, gc=False):
    """A message of the range that could not be had whole."""

    message: int
    reason: Reason


class Told(Struct, frozen=True, gc=False):
    """The end of the range. Said once."""

    first: int
    last: int


HistoryStep: TypeAlias = Step | Unheld | Told


class History:
    """One wish for a range of messages, the first and the last included; the first perhaps from a byte on."""

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

    @property
    def done(self) -> bool:
        """Whether its end was told."""
        return self._done

    def wanted(self, most: int) -> list[Wanted]:
        """What must be replayed, lowest first: of each message that is not whole, the first piece missing."""
        found: list[Wanted] = []
        for message in range(self._next, self._last + 1):
            if len(found) >= most:
                break
            if message not in self._lost and not self._fragments.is_whole(message):
                found.append(Wanted(message, self._missing(message)))
        return found

    def tell(self) -> Iterator[HistoryStep]:
        """What can be told now, in order; to be called again when something came. To be read to its end."""
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
        """A message cannot be had: closed to us, or nobody keeps it."""
        if self._next <= message <= self._last:
            self._lost[message] = reason

    def _missing(self, message: int) -> int:
        return self._fragments.held_from_start(message)
