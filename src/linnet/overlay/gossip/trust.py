"""Trust of a node in peers: never in a message, and never taken from others.

What the user sets is kept. The rest is guessed from which peers named which, decays, and is gone with the
process (UPSYCLE 2020: trust is asymmetric, and no paths of trust travel).
"""

from __future__ import annotations

import struct

from linnet.core.errors import Refused, StoreError
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.overlay.gossip.config import DAY, TrackerlessConfig

BAN = DAY
"""Seconds for which a peer that broke the protocol is banned, by us alone: shared bans would censor."""

SPACE = "trust"
KNOWN = 1024
"""Peers in which a user may set trust."""
VOUCHED = 4096
BANNED = 4096

_NAMED = 0.5
"""Trust in a peer that a fully trusted peer named, before the reduction for hearsay."""
_DECAY = 0.9
_DECAY_ROUNDS = 100
_value = struct.Struct(">d")


class Trust:
    """Trust in peers, from 0 for the banned to 1."""

    def __init__(self, cells: Cells, config: TrackerlessConfig) -> None:
        self._cells = cells
        self._config = config
        self._known: dict[PeerId, float] = {}
        for key, raw in cells.scan(SPACE):
            if len(raw) != _value.size:
                raise StoreError("a stored value of trust is damaged")
            self._known[PeerId(key)] = float(_value.unpack(raw)[0])
        self._vouched: dict[PeerId, tuple[float, float]] = {}
        """The guessed trust, and when the peer was last vouched for or spoken to."""
        self._bans: dict[PeerId, float] = {}

    @property
    def known(self) -> dict[PeerId, float]:
        """The trust that the user set."""
        return dict(self._known)

    def is_known(self, peer: PeerId) -> bool:
        """Return whether the user trusts a peer."""
        return peer in self._known

    def set_trust(self, peer: PeerId, value: float) -> None:
        """Set the user's trust in a peer: above 0, up to 1."""
        if not 0.0 < value <= 1.0:
            raise Refused(Reason.NOT_ALLOWED, f"trust is above 0 and at most 1, not {value}")
        if peer not in self._known and len(self._known) >= KNOWN:
            raise Refused(Reason.TOO_MANY, f"trust can be set in {KNOWN} peers")
        self._known[peer] = value
        self._cells.put(SPACE, peer, _value.pack(value))
        self._bans.pop(peer, None)

    def remove_trust(self, peer: PeerId) -> bool:
        """Remove the user's trust in a peer; False if there was none."""
        self._cells.delete(SPACE, peer)
        return self._known.pop(peer, None) is not None

    def trust_in(self, peer: PeerId, now: float) -> float:
        """Return the trust in a peer: as the user set it, or guessed, at least that in a stranger."""
        if self._bans and self.is_banned(peer, now):
            return 0.0
        known = self._known.get(peer)
        if known is not None:
            return known
        base = self._config.base_trust
        return max(base, self._guess(peer, now)) if peer in self._vouched else base

    def is_vouching(self, by: PeerId, now: float) -> bool:
        """Return whether being named by a peer makes any difference."""
        return self._config.transitivity * self.trust_in(by, now) * _NAMED > self._config.base_trust

    def note_vouched(self, peer: PeerId, by: PeerId, now: float) -> None:
        """Note that a peer was named by another. Only that matters, not what the other said of it."""
        if peer in self._known:
            return
        value = self._config.transitivity * self.trust_in(by, now) * _NAMED
        if value <= self._config.base_trust or value < self._guess(peer, now):
            return
        self._vouched.pop(peer, None)
        _make_room(self._vouched, VOUCHED)
        self._vouched[peer] = (value, now)

    def note_contact(self, peer: PeerId, now: float) -> None:
        """Note contact with a peer: guessed trust decays from now on."""
        if peer in self._vouched:
            self._vouched[peer] = (self._guess(peer, now), now)

    def note_offence(self, peer: PeerId, now: float) -> None:
        """Ban a peer that broke the protocol in a way that no honest node does."""
        self._vouched.pop(peer, None)
        self._bans.pop(peer, None)
        _make_room(self._bans, BANNED)
        self._bans[peer] = now + BAN

    def is_banned(self, peer: PeerId, now: float) -> bool:
        """Return whether a peer broke the protocol within the last day."""
        until = self._bans.get(peer) if self._bans else None
        if until is None:
            return False
        if until <= now:
            del self._bans[peer]
            return False
        return True

    def _guess(self, peer: PeerId, now: float) -> float:
        vouched = self._vouched.get(peer)
        if vouched is None:
            return 0.0
        value, at = vouched
        if now - at < _DECAY_ROUNDS * self._config.period:
            return value
        return value * float(_DECAY ** ((now - at) // (_DECAY_ROUNDS * self._config.period)))


def _make_room(table: dict[PeerId, tuple[float, float]] | dict[PeerId, float], limit: int) -> None:
    """Drop the oldest entry of a full table."""
    if len(table) >= limit:
        del table[next(iter(table))]
