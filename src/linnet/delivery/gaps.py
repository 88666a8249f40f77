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
_REQUESTS_PER_SECOND = 200
"""Ranges of a topic that are asked for in a second: well below what a peer may say for long."""
_LONGEST_PAUSE = 8.0
"""Seconds between rounds at most: a gap that lasts is worth asking about, but not often."""


class _Repair:
    """A chain that lacks something."""

    __slots__ = ("missing", "out", "rounds", "turn")

    def __init__(self, missing: int) -> None:
        self.rounds = 0
        """Times that everyone who may hold it was asked, or nobody could be."""
        self.turn = 0
        """Whose turn it is in this round."""
        self.out = 0
        """Requests that are not answered yet."""
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
        self._holders: dict[PeerId, dict[ChainKey, None]] = {}
        self._held: dict[PeerId, None] = {}
        self._asked = (0.0, 0)
        """A second, and how many ranges were asked for in it."""
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
        return self._hasten() if any(peer in self._links for peer in self._storage) else []

    def holder(self, peer: PeerId, key: ChainKey) -> None:
        """This peer says that it can resend a chain."""
        held = self._holders.setdefault(peer, {})
        if len(held) < self._config.max_chains:
            held[key] = None

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
        """Somebody sent a page of what was asked for. If that was all and not enough, ask on.

        Who had some of it is asked for the rest; who had none lets the next have its turn.
        """
        repair = self._repairs.get(chain.key)
        if repair is None or not repair.out:
            return []
        missing = _count(chain.missing())
        if missing < repair.missing:
            repair.missing = missing
            repair.rounds = 0
            repair.turn = max(0, repair.turn - 1)
        repair.out -= done
        if repair.out:
            return [SetTimer(self._config.gap_timeout, self._tick(chain.key))]
        if repair.turn < len(self.candidates(chain.key)):
            return [SetTimer(0.0, self._tick(chain.key))]
        return [self._next_round(chain.key, repair)]

    def fired(self, chain: Chain, now: float) -> tuple[list[GapEffect], bool]:
        """It is time to ask; the second is whether to give up instead."""
        key = chain.key
        repair = self._repairs.get(key)
        if repair is None:
            return [], False
        repair.out = 0
        if repair.rounds >= self._config.gap_tries:
            return self.abandon(chain), True
        missing = chain.missing()
        if not missing:
            return self.forget(key), False
        repair.missing = _count(missing)
        ranges = missing[:_RANGES_PER_REQUEST]
        if not self._spend(len(ranges), now):
            return [SetTimer(1.0, self._tick(key))], False
        effects = self._call(repair.rounds + repair.turn)
        candidates = self.candidates(key)
        if repair.turn >= len(candidates):
            if not candidates and self._config.gap_waits:
                repair.rounds = 0
                return [*effects, self._next_round(key, repair, _LONGEST_PAUSE)], False
            return [*effects, self._next_round(key, repair)], False
        source = candidates[repair.turn]
        repair.turn += 1
        repair.out = len(ranges)
        effects += [
            Send(source, Resend(self._topic, chain.author, chain.device, first, last))
            for first, last in ranges
        ]
        return [*effects, SetTimer(self._config.gap_timeout, self._tick(key))], False

    def forget(self, key: ChainKey) -> list[GapEffect]:
        """A chain is not followed any more."""
        if self._repairs.pop(key, None) is None:
            return []
        return [CancelTimer(self._tick(key)), *self._release()]

    def abandon(self, chain: Chain) -> list[GapEffect]:
        """Stop the repair of a chain."""
        self.lost += _count(chain.missing())
        return self.forget(chain.key)

    def stop(self) -> list[GapEffect]:
        """Nobody waits any more."""
        timers = [CancelTimer(self._tick(key)) for key in self._repairs]
        self._repairs = {}
        return [*timers, *self._release()]

    def candidates(self, key: ChainKey) -> list[PeerId]:
        """Who may hold a chain and can be asked now, storage nodes first."""
        links, storage = self._links, self._storage
        near = [peer for peer in storage if peer in links]
        return near + [
            peer
            for peer, held in self._holders.items()
            if key in held and peer in links and peer not in storage
        ]

    def _call(self, turn: int) -> list[GapEffect]:
        """Get a link to a storage node if there is none, another one each turn."""
        if any(peer in self._links for peer in self._storage):
            return []
        waiting = [peer for peer in self._storage if peer not in self._held]
        if not waiting:
            return []
        peer = waiting[turn % len(waiting)]
        self._held[peer] = None
        return [Hold(peer, self._storage[peer], self._purpose)]

    def _hasten(self) -> list[GapEffect]:
        """Whoever waits for somebody to ask need not wait any longer."""
        idle = [key for key, repair in self._repairs.items() if repair.rounds and not repair.out]
        return [SetTimer(0.0, self._tick(key)) for key in idle]

    def _next_round(self, key: ChainKey, repair: _Repair, least: float = 0.0) -> SetTimer[Tick]:
        repair.turn = 0
        repair.rounds += 1
        pause = min(self._config.gap_backoff * 2.0 ** (repair.rounds - 1), _LONGEST_PAUSE)
        return SetTimer(max(pause, least), self._tick(key))

    def _spend(self, requests: int, now: float) -> bool:
        """Count requests; whether that many are allowed within this second."""
        since, count = self._asked
        if now >= since + 1.0:
            since, count = now, 0
        if count and count + requests > _REQUESTS_PER_SECOND:
            return False
        self._asked = (since, count + requests)
        return True

    def _release(self) -> list[GapEffect]:
        """Let the links go once nothing is under repair."""
        if self._repairs:
            return []
        held, self._held = self._held, {}
        return [Release(peer, self._purpose) for peer in held]

    @property
    def _purpose(self) -> str:
        return f"gaps {self._topic.hex()[:16]}"

    def _tick(self, key: ChainKey) -> Tick:
        return Tick(OWNER, "ask", self._topic + key)


def _count(ranges: Iterable[Range]) -> int:
    return sum(last - first + 1 for first, last in ranges)
