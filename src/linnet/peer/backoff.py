"""When a peer that does not answer is dialled again: ever later, and never more than a few times a minute.

This outlives the wish for a link. Parts let go of a peer that does not answer and turn to it again as they
like; what it costs the network is decided here. The dials of the last minute outlive the process as well, so
that one that is started over and over does not hammer either.
"""

from __future__ import annotations

from random import Random

import msgspec

from linnet.core.ids import PeerId
from linnet.core.stores import Cells
from linnet.peer.config import LinkConfig

WINDOW = 60.0
"""Seconds in which dials are counted."""
LASTING = 1.0
"""Seconds that a link has to last to count as an answer: one that closes at once is no better than none."""
REMEMBERED = 4096
"""Peers whose failures are remembered; beyond this the oldest are forgotten."""

_HINTS = 16
"""Addresses of one peer that are known to have been tried: more than one message can name."""

_UNKEPT = 2
"""Dials that a crash may have forgotten: commits are frequent, and dials of one peer seldom."""

_CELLS = "dialed"
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[float, ...]).decode


class _Attempts:
    """What came of dialling one peer since it last answered."""

    __slots__ = ("backoff", "due", "hints", "since", "times", "unkept")

    def __init__(self, times: tuple[float, ...] = (), unkept: int = 0) -> None:
        self.times = times
        """When it was dialled, the latest last."""
        self.unkept = unkept
        """Dials that may have been made besides: a crash forgets what was not yet durable."""
        self.hints: tuple[str, ...] = ()
        """Where it was dialled since then, the latest first."""
        self.backoff = 0.0
        self.due = 0.0
        """Before this it is not dialled there again."""
        self.since: float | None = None
        """When it first did not answer."""


class Backoff:
    """Peers that were dialled and did not answer yet, or not for long."""

    def __init__(self, config: LinkConfig, rng: Random, cells: Cells | None = None) -> None:
        self._config = config
        self._rng = rng
        self._cells = cells
        kept = () if cells is None else cells.scan(_CELLS)
        self._attempts = {PeerId(key): _Attempts(_decode(value), _UNKEPT) for key, value in kept}

    def wait(self, peer: PeerId, hints: tuple[str, ...], now: float) -> float:
        """Seconds until a peer may be dialled at these addresses; 0: at once."""
        attempts = self._attempts.get(peer)
        if attempts is None:
            return 0.0
        # The clock may have been set since the last start: what is to come has not been.
        recent = attempts.times = tuple(at for at in attempts.times if now - WINDOW < at <= now)
        is_new = any(hint not in attempts.hints for hint in hints)
        is_wrong = attempts.due - now > 1.5 * attempts.backoff  # the clock was put back since
        due = now if is_new or is_wrong else attempts.due
        most = max(1, self._config.dials - attempts.unkept)
        if len(recent) >= most:
            due = max(due, recent[-most] + WINDOW)
        return max(0.0, due - now)

    def dialed(self, peer: PeerId, hints: tuple[str, ...], now: float) -> None:
        """A peer is dialled."""
        attempts = self._attempts.pop(peer, None) or _Attempts()
        if any(hint not in attempts.hints for hint in hints):
            attempts.backoff = 0.0
        self._attempts[peer] = attempts
        attempts.hints = tuple(dict.fromkeys((*hints, *attempts.hints)))[:_HINTS]
        attempts.times = (*attempts.times, now)[-self._config.dials :]
        if self._cells is not None:
            self._cells.put(_CELLS, peer, _encode(attempts.times))
        self._bound()

    def failed(self, peer: PeerId, hints: tuple[str, ...], now: float, least: float) -> None:
        """It did not answer, or its link is gone: the next pause is twice as long, and `least` at least."""
        attempts = self._attempts.get(peer)
        if attempts is None:
            attempts = self._attempts[peer] = _Attempts()
        attempts.hints = attempts.hints or hints
        attempts.backoff = min(max(2 * attempts.backoff, least), self._config.backoff_most)
        attempts.due = now + attempts.backoff * (0.5 + self._rng.random())
        if attempts.since is None:
            attempts.since = now
        self._bound()

    def forgive(self, peer: PeerId) -> None:
        """It answered, or whoever runs the node wants it tried at once."""
        if self._attempts.pop(peer, None) is not None and self._cells is not None:
            self._cells.delete(_CELLS, peer)

    def is_tried(self, peer: PeerId) -> bool:
        """Whether a peer was dialled and did not answer yet, or not for long."""
        return peer in self._attempts

    def since(self, peer: PeerId) -> float | None:
        """Since when a peer does not answer."""
        attempts = self._attempts.get(peer)
        return None if attempts is None else attempts.since

    def _bound(self) -> None:
        while len(self._attempts) > REMEMBERED:
            self.forgive(next(iter(self._attempts)))
