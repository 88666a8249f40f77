"""Isolation: tells the readers of a stream that this node may be cut off from it.

Others say how far the chains go, and nobody hands over the events. Any of them may be wrong or lie, so it is
no fact that something is missing. But without such claims nobody would ever notice that events are withheld.
So after a while the readers are told how many peers claim how many events.
"""

from __future__ import annotations

from collections.abc import Callable

from linnet.core.ids import PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.chain import ChainKey
from linnet.delivery.items import CutOff
from linnet.machine.outbox import Outbox
from linnet.trace.records import Kind, Record

PATIENCE = 15.0
"""Seconds for which events must be claimed and not handed over before readers are told."""
QUIET = 300.0
"""Seconds in which readers are told once: whoever makes false claims must not flood them with warnings."""
_CHAINS = 1024
"""The most chains with claims that are remembered; of more, the oldest that nobody was asked for in vain."""
_CLAIMANTS = 16
"""The most claimants of a chain that are counted."""


class Isolation:
    """What others claim to have of one stream, and nobody hands over."""

    def __init__(self, topic: TopicId, tell: Callable[[CutOff], None], out: Outbox) -> None:
        self._topic = topic
        self._tell = tell
        self._out = out
        self._claims: dict[ChainKey, dict[PeerId, None]] = {}
        """Who claims to know more of a chain, the chains claimed first at the front."""
        self._unfilled: dict[ChainKey, float] = {}
        """Since when nobody hands over what is claimed of a chain."""
        self._told_at: float | None = None
        self.is_cut_off = False
        """Whether readers were told, and nothing has come since."""

    def note_claim(self, peer: PeerId, key: ChainKey) -> None:
        """Note that a peer says that a chain goes further than we know."""
        claimants = self._claims.setdefault(key, {})
        if len(claimants) < _CLAIMANTS:
            claimants[peer] = None
        if len(self._claims) > _CHAINS:
            # What was asked for in vain already stays: false claims must not make room for themselves.
            self._forget(next((each for each in self._claims if each not in self._unfilled), key))

    def note_unfilled(self, key: ChainKey, missing: int, now: float) -> None:
        """Note that nobody hands over what is missing of a chain; tell readers if it lasts."""
        claimants = self._claims.get(key)
        if claimants is None:
            return
        since = self._unfilled[key] = min(self._unfilled.get(key, now), now)  # A clock may be set back.
        if self.is_cut_off or now - since < PATIENCE:
            return
        if self._told_at is not None and 0.0 <= now - self._told_at < QUIET:
            return
        self.is_cut_off = True
        self._told_at = now
        self._record(missing, f"may be cut off: {len(claimants)} claim more, and nobody hands it over")
        self._tell(CutOff(self._topic, missing, len(claimants)))

    def note_unit(self, key: ChainKey, is_whole: bool) -> None:
        """Note that something new of a chain has come, and whether anything of it is missing still."""
        if is_whole and key in self._claims:
            self._forget(key)
        if self.is_cut_off and is_whole and not self._unfilled:
            self.is_cut_off = False
            self._record(0, "cut off no longer")
            self._tell(CutOff(self._topic, 0, 0))

    def give_up(self, key: ChainKey) -> None:
        """Forget the claims about a chain: it was waited for long enough."""
        self._forget(key)

    def _forget(self, key: ChainKey) -> None:
        self._claims.pop(key, None)
        self._unfilled.pop(key, None)

    def _record(self, missing: int, note: str) -> None:
        reason = Reason.SILENT if missing else None
        self._out.record(Record(Kind.CONTROL, self._topic, events=missing, reason=reason, note=note))
