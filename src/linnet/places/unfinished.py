"""Messages of this device that began and have not ended: which of them can still go on.

A message cannot outlive its term. What its application sends after that is refused, so that it knows to say
the message again; and nothing else that stays open gets its number, or the rest of the one would end up in
the other, since numbers are given anew behind a cut (decision 0018).
"""

from __future__ import annotations

from linnet.core.errors import Refused
from linnet.core.ids import TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells

_CELLS = "place unfinished"
KEPT = 256
"""Messages that are remembered; past this the oldest one is forgotten."""


class Unfinished:
    """What this device has not ended yet in one place, also across restarts."""

    def __init__(self, place: TopicId, cells: Cells) -> None:
        self._place = place
        self._cells = cells
        found = [(key[len(place) :], term) for key, term in cells.scan(_CELLS) if key.startswith(place)]
        self._terms = {int.from_bytes(key, "big"): int.from_bytes(term, "big") for key, term in found}

    def began(self, message: int, term: int) -> None:
        """A message stays open."""
        self._terms.pop(message, None)
        self._terms[message] = term
        self._cells.put(_CELLS, self._key(message), term.to_bytes(8, "big"))
        if len(self._terms) > KEPT:
            self.ended(next(iter(self._terms)))

    def ended(self, message: int) -> None:
        """Nothing more comes of it."""
        if self._terms.pop(message, None) is not None:
            self._cells.delete(_CELLS, self._key(message))

    def check(self, message: int, term: int) -> None:
        """Raise `Refused` if the term of a message is over."""
        if self._terms.get(message, term) != term:
            detail = f"message {message} was not ended when its term was: say it again"
            raise Refused(Reason.STALE, detail)

    def is_taken(self, message: int, term: int) -> bool:
        """Whether an application may still take this number for that of a message of an older term."""
        return self._terms.get(message, term) != term

    def _key(self, message: int) -> bytes:
        return self._place + message.to_bytes(8, "big")
