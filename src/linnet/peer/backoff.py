"""When a peer that does not answer is dialled again: ever later, and never more than a few times a minute.

This outlives the wish for a link. Parts let go of a peer that does not answer and turn to it again as they
like; what it costs the network is decided here. It outlives the process as well: after a start a peer is
tried at once, and if it still does not answer the pause goes on growing from where it was.
"""

from __future__ import annotations

from random import Random

import msgspec
from msgspec import Struct

from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
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

_CELLS = "dialed"


class _Kept(Struct, array_like=True, gc=False):
    """What outlives the process, of one peer."""

    times: tuple[float, ...] = ()
    """When it was dialled, the latest last."""
    hints: tuple[str, ...] = ()
    """Where it was dialled since it last answered, the latest first."""
    backoff: float = 0.0
    """The pause before the last attempt."""
    since: float | None = None
    """When it first did not answer."""
    reason: Reason | None = None
    """Why not, the last time."""


class _Attempts:
    """What came of dialling one peer since it last answered."""

    __slots__ = ("due", "kept")

    def __init__(self, kept: _Kept) -> None:
        self.kept = kept
        self.due = 0.0
        """Before this it is not dialled there again. A start forgets it: the other may be back."""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Kept).decode


class Backoff:
    """Peers that were dialled and did not answer yet, or not for long."""

    def __init__(self, config: LinkConfig, rng: Random, cells: Cells | None = None) -> None:
        self._config = config
        self._rng = rng
        self._cells = cells
        kept = () if cells is None else cells.scan(_CELLS)
        self._attempts = {PeerId(key): _Attempts(_read(value)) for key, value in kept}

    def wait(self, peer: PeerId, hints: tuple[str, ...], now: float) -> float:
        """Seconds until a peer may be dialled at these addresses; 0: at once."""
        attempts = self._attempts.get(peer)
        if attempts is None:
            return 0.0
        kept = attempts.kept
        # The clock may have been set since the last start: what is to come has not been.
        recent = kept.times = tuple(at for at in kept.times if now - WINDOW < at <= now)
        is_new = any(hint not in kept.hints for hint in hints)
        is_wrong = attempts.due - now > 1.5 * kept.backoff  # the clock was put back since
        due = now if is_new or is_wrong else attempts.due
        most = self._config.dials
        if len(recent) >= most:
            due = max(due, recent[-most] + WINDOW)
        return max(0.0, due - now)

    def dialed(self, peer: PeerId, hints: tuple[str, ...], now: float) -> None:
        """A peer is dialled, as soon as this is durable."""
        attempts = self._attempts.pop(peer, None) or _Attempts(_Kept())
        self._attempts[peer] = attempts
        kept = attempts.kept
        if any(hint not in kept.hints for hint in hints):
            kept.backoff = 0.0
        kept.hints = tuple(dict.fromkeys((*hints, *kept.hints)))[:_HINTS]
        kept.times = (*kept.times, now)[-self._config.dials :]
        self._keep(peer, kept)
        self._bound()

    def failed(
        self, peer: PeerId, hints: tuple[str, ...], now: float, least: float, reason: Reason | None = None
    ) -> None:
        """It did not answer, or its link is gone: the next pause is twice as long, and `least` at least."""
        attempts = self._attempts.get(peer)
        if attempts is None:
            attempts = self._attempts[peer] = _Attempts(_Kept())
        kept = attempts.kept
        kept.hints = kept.hints or hints
        kept.backoff = min(max(2 * kept.backoff, least), self._config.backoff_most)
        attempts.due = now + kept.backoff * (0.5 + self._rng.random())
        kept.reason = reason
        if kept.since is None:
            kept.since = now
        self._keep(peer, kept)
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
        return None if attempts is None else attempts.kept.since

    def _keep(self, peer: PeerId, kept: _Kept) -> None:
        if self._cells is not None:
            self._cells.put(_CELLS, peer, _encode(kept))

    def failing(self) -> list[tuple[PeerId, float, Reason | None]]:
        """Who does not answer, since when, and why not the last time."""
        tried = [(peer, each.kept) for peer, each in self._attempts.items()]
        return [(peer, kept.since, kept.reason) for peer, kept in tried if kept.since is not None]

    def _bound(self) -> None:
        while len(self._attempts) > REMEMBERED:
            self.forgive(next(iter(self._attempts)))


def _read(value: bytes) -> _Kept:
    try:
        return _decode(value)
    except msgspec.DecodeError:  # damaged, or of another version: it costs a few dials more
        return _Kept()
