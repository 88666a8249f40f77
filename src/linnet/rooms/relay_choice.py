"""Which of a room's relays a member uses: a pure choice, the same in every process.

Schichtholz 2024 (section 5.4) draws one by a seed; here the draw depends on no order in which relays are
known, and a relay that comes or goes changes the choice of few rooms (rendezvous hashing).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from random import Random

from msgspec import Struct

from linnet.core.ids import PeerId, TopicId
from linnet.core.stores import Cells
from linnet.rooms.config import RelayChoice

_TAG = b"linnet/relay-choice/1"
_SPACE = "rooms"
_SEED = b"relay seed"


class Chooser(Struct, frozen=True, gc=False):
    """How one member chooses for one room."""

    room: TopicId
    choice: RelayChoice
    seed: int
    rotate: float = 0.0
    """Seconds of a turn; 0: there is only one."""

    def turn(self, now: float) -> int:
        """The number of the turn. Members of a room do not all change at the same time."""
        return int((now + self._phase()) // self.rotate) if self.rotate > 0 else 0

    def until_next_turn(self, now: float) -> float | None:
        """Seconds that this turn still lasts, if it ends."""
        return self.rotate - (now + self._phase()) % self.rotate if self.rotate > 0 else None

    def order(self, relays: Iterable[PeerId], turn: int, rtts: Mapping[PeerId, float]) -> list[PeerId]:
        """All of these relays, the preferred first.

        By nearness a turn only means to look at the round-trip times again; else each turn prefers
        the next, so that all have had their turn after as many as there are.
        """
        match self.choice:
            case RelayChoice.NEAREST:
                return sorted(relays, key=lambda relay: (rtts.get(relay, float("inf")), relay))
            case RelayChoice.RANDOM:
                drawn = sorted(relays, key=lambda relay: (self._draw(self.room, relay), relay))
                start = turn
            case RelayChoice.SPREAD:
                # One order for all rooms of this member, and another place in it for each room and turn.
                drawn = sorted(relays, key=lambda relay: (self._draw(b"", relay), relay))
                start = turn + int.from_bytes(self._draw(self.room, b"")[:8], "big")
        if not drawn:
            return []
        start %= len(drawn)
        return drawn[start:] + drawn[:start]

    def _phase(self) -> float:
        return self.rotate * int.from_bytes(self._draw(self.room, b"phase")[:4], "big") / 2**32

    def _draw(self, room: bytes, relay: bytes) -> bytes:
        return sha256(_TAG + b"%d,%d," % (self.seed, len(room)) + room + relay).digest()


def usable(
    order: Iterable[PeerId], failed_at: Mapping[PeerId, float], retry: float, now: float
) -> list[PeerId]:
    """Those that have not failed within the last `retry` seconds, in the same order."""
    return [relay for relay in order if relay not in failed_at or now - failed_at[relay] >= retry]


def kept_seed(configured: int | None, cells: Cells, rng: Random) -> int:
    """The seed of this node's choices: as configured, else drawn at the first start and kept."""
    if configured is not None:
        return configured
    kept = cells.get(_SPACE, _SEED)
    if kept is None:
        kept = rng.getrandbits(64).to_bytes(8, "big")
        cells.put(_SPACE, _SEED, kept)
    return int.from_bytes(kept, "big")
