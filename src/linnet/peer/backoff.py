"""Decides when to dial again a peer that does not answer: ever later, never more than a few times a minute.

The back-off outlives the request for a link: parts may release such a peer and ask for it again as they like,
but the cost to the network is bounded here. It also outlives the process: after a start a peer is tried at
once, and if it still does not answer, the pause goes on growing from where it was.
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
"""Seconds that a link must last to count as an answer: one that closes at once is no better than none."""
REMEMBERED = 4096
"""The most peers whose failures are remembered; beyond this the oldest are forgotten."""

_HINTS = 16
"""The most tried addresses that are remembered of a peer: more than one message can name."""

_CELLS = "dialed"


class _Kept(Struct, array_like=True, gc=False):
    """The state of one peer that outlives the process."""

    times: tuple[float, ...] = ()
    """When it was dialled, the latest last."""
    hints: tuple[str, ...] = ()
    """The addresses at which it was dialled since it last answered, the latest first."""
    backoff: float = 0.0
    """The pause before the last attempt."""
    since: float | None = None
    """When it first failed to answer."""
    reason: Reason | None = None
    """The reason of the latest failure."""


class _Attempts(Struct, eq=False):
    """The attempts to dial one peer since it last answered."""

    kept: _Kept
    due: float = 0.0
    """The earliest time to dial it there again. A restart forgets it: the peer may be back."""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Kept).decode


class Backoff:
    """Tracks the peers that were dialled and have not answered yet, or only briefly."""

    def __init__(self, config: LinkConfig, rng: Random, cells: Cells | None = None) -> None:
        self._config = config
        self._rng = rng
        self._cells = cells
        kept = () if cells is None else cells.scan(_CELLS)
        self._attempts = {PeerId(key): _Attempts(_read(value)) for key, value in kept}

    def wait(self, peer: PeerId, hints: tuple[str, ...], now: float) -> float:
        """Return the seconds until a peer may be dialled at these addresses; 0: at once."""
        attempts = self._attempts.get(peer)
        if attempts is None:
            return 0.0
        kept = attempts.kept
        # The clock may have been set since the last start: drop dials that lie in the future.
        recent = kept.times = tuple(at for at in kept.times if now - WINDOW < at <= now)
        is_new = any(hint not in kept.hints for hint in hints)
        is_wrong = attempts.due - now > 1.5 * kept.backoff  # the clock was put back since
        due = now if is_new or is_wrong else attempts.due
        most = self._config.dials
        if len(recent) >= most:
            due = max(due, recent[-most] + WINDOW)
        return max(0.0, due - now)

    def dialed(self, peer: PeerId, hints: tuple[str, ...], now: float) -> None:
        """Note that a peer is dialled, as soon as this is durable."""
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
        """Note that a peer did not answer or its link is gone: double the next pause, to `least` at least."""
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
        """Forget the failures of a peer: it has answered, or the user wants it tried at once."""
        if self._attempts.pop(peer, None) is not None and self._cells is not None:
            self._cells.delete(_CELLS, peer)

    def is_tried(self, peer: PeerId) -> bool:
        """Return whether a peer was dialled and has not answered yet, or only briefly."""
        return peer in self._attempts

    def since(self, peer: PeerId) -> float | None:
        """Return when a peer stopped answering."""
        attempts = self._attempts.get(peer)
        return None if attempts is None else attempts.kept.since

    def _keep(self, peer: PeerId, kept: _Kept) -> None:
        if self._cells is not None:
            self._cells.put(_CELLS, peer, _encode(kept))

    def failing(self) -> list[tuple[PeerId, float, Reason | None]]:
        """Return the peers that do not answer, since when, and the latest reason."""
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
