"""Gap repair: what is missing from a chain is asked for, from whoever may hold it, until it is there.

Flooding knows nothing of this. A gap may close by itself, when the missing events come over
another path; after a grace time storage nodes are asked for exactly what is missing, then
neighbours that say they hold it. What nobody has is given up with a reason (Juslenius 2021,
section 4.2.3, which leaves times and tries open).
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from linnet.core.effects import CancelTimer, Hold, Release, Send, SetTimer
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.timers import Tick
from linnet.delivery.chain import Chain, ChainKey
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.messages import Resend
from linnet.delivery.ranges import Range
from linnet.trace.records import Kind, Record

GapEffect = Send[Resend] | Hold | Release | SetTimer[Tick] | CancelTimer[Tick] | Record

OWNER = "gaps"
_RANGES_PER_REQUEST = 16
"""Holes of a chain that are asked for at once; the others come after."""


_LONGEST_PAUSE = 8.0
"""Seconds between rounds at most: a gap that lasts is worth asking about, but not often."""


class _Repair:
    """A chain that lacks something."""

    __slots__ = ("asked", "missing", "tries")

    def __init__(self, missing: int) -> None:
        self.tries = 0
        self.asked = False
        """Whether a request is out."""
        self.missing = missing
        """Events that were missing when it was last looked at."""


class Gaps:
    """The repairs of one topic."""

    def __init__(self, topic: TopicId, config: DeliveryConfig, links: Container[PeerId]) -> None:
        self._topic = topic
        self._config = config
        self._links = links
        self._repairs: dict[ChainKey, _Repair] = {}
        self._storage: dict[PeerId, tuple[str, ...]] = {}
        self._holders: dict[PeerId, None] = {}
        self._held: dict[PeerId, None] = {}
        self.filled = 0
        """Repairs that ended well."""
        self.lost = 0
        """Events that were given up."""

    @property
    def open(self) -> int:
        """Chains under repair."""
        return len(self._repairs)

    def storage(self, nodes: Iterable[Contact]) -> list[GapEffect]:
        """These nodes keep the topic."""
        self._storage = {contact.peer: contact.hints for contact in nodes}
        return self._hasten() if self._candidates() else []

    def holder(self, peer: PeerId) -> None:
        """This peer says that it can resend."""
        self._holders[peer] = None

    def up(self, peer: PeerId) -> list[GapEffect]:
        """A link to this peer is open: whoever waited for one can ask now."""
        return self._hasten() if peer in self._storage else []

    def down(self, peer: PeerId) -> None:
        """The link to this peer is gone."""
        self._holders.pop(peer, None)

    def changed(self, chain: Chain) -> list[GapEffect]:
        """More is known of a chain: begin its repair if something is missing, end it if nothing is."""
        key = chain.key
        missing = chain.missing()
        repair = self._repairs.get(key)
        if missing:
            if repair is None:
                self._repairs[key] = _Repair(_count(missing))
                return [SetTimer(self._config.gap_grace, self._tick(key))]
            return []
        if repair is None:
            return []
        del self._repairs[key]
        self.filled += 1
        record = Record(Kind.RESYNC, self._topic, device=chain.device, note="gap filled")
        return [CancelTimer(self._tick(key)), record, *self._release()]

    def answered(self, chain: Chain, done: bool) -> list[GapEffect]:
        """Somebody sent a page of what was asked for. If that was all and not enough, ask the next."""
        repair = self._repairs.get(chain.key)
        if repair is None:
            return []
        missing = _count(chain.missing())
        if missing < repair.missing:
            repair.missing = missing
            repair.tries = 0
        if not done:
            return [SetTimer(self._config.gap_timeout, self._tick(chain.key))]
        repair.asked = False
        pause = 0.0 if repair.tries < len(self._candidates()) else self._pause(repair)
        return [SetTimer(pause, self._tick(chain.key))]

    def fired(self, chain: Chain) -> tuple[list[GapEffect], bool]:
        """It is time to ask; the second is whether to give up instead."""
        key = chain.key
        repair = self._repairs.get(key)
        if repair is None:
            return [], False
        if repair.tries >= self._config.gap_tries:
            return self.abandon(chain), True
        candidates = self._candidates()
        turn = repair.tries
        repair.tries += 1
        if not candidates:
            repair.asked = False
            return [*self._call(turn), SetTimer(self._pause(repair), self._tick(key))], False
        repair.asked = True
        source = candidates[turn % len(candidates)]
        effects: list[GapEffect] = [
            Send(source, Resend(self._topic, chain.author, chain.device, first, last))
            for first, last in chain.missing()[:_RANGES_PER_REQUEST]
        ]
        effects.append(SetTimer(self._config.gap_timeout, self._tick(key)))
        return effects, False

    def abandon(self, chain: Chain) -> list[GapEffect]:
        """Stop the repair of a chain."""
        self._repairs.pop(chain.key, None)
        self.lost += _count(chain.missing())
        return [CancelTimer(self._tick(chain.key)), *self._release()]

    def stop(self) -> list[GapEffect]:
        """Nobody waits any more."""
        timers = [CancelTimer(self._tick(key)) for key in self._repairs]
        self._repairs = {}
        return [*timers, *self._release()]

    def _candidates(self) -> list[PeerId]:
        """Who may hold what is missing and can be asked now, storage nodes first."""
        near = [peer for peer in self._storage if peer in self._links]
        return near + [peer for peer in self._holders if peer in self._links and peer not in self._storage]

    def _call(self, turn: int) -> list[GapEffect]:
        """Get a link to a storage node, another one each turn."""
        waiting = [peer for peer in self._storage if peer not in self._held]
        if not waiting:
            return []
        peer = waiting[turn % len(waiting)]
        self._held[peer] = None
        return [Hold(peer, self._storage[peer], self._purpose)]

    def _hasten(self) -> list[GapEffect]:
        idle = [key for key, repair in self._repairs.items() if repair.tries and not repair.asked]
        return [SetTimer(0.0, self._tick(key)) for key in idle]

    def _release(self) -> list[GapEffect]:
        """Let the links go once nothing is under repair."""
        if self._repairs:
            return []
        held, self._held = self._held, {}
        return [Release(peer, self._purpose) for peer in held]

    def _pause(self, repair: _Repair) -> float:
        return min(self._config.gap_backoff * 2.0 ** max(0, repair.tries - 1), _LONGEST_PAUSE)

    @property
    def _purpose(self) -> str:
        return f"gaps {self._topic.hex()[:16]}"

    def _tick(self, key: ChainKey) -> Tick:
        return Tick(OWNER, "ask", self._topic + key)


def _count(ranges: Iterable[Range]) -> int:
    return sum(last - first + 1 for first, last in ranges)
