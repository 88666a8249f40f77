"""Gap repair: what is missing from a chain is asked for, from whoever may hold it, until it is there.

Flooding knows nothing of this. A gap may close by itself, when the missing events come over
another path; after a grace time storage nodes are asked for exactly what is missing, then
neighbours that say they hold it. What nobody has is given up with a reason (Juslenius 2021,
section 4.2.3, which leaves times and tries open).
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.timers import Timer
from linnet.delivery.chain import Chain, ChainKey
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.messages import Resend
from linnet.delivery.ranges import Range
from linnet.machine.outbox import Outbox
from linnet.trace.records import Kind, Record

_RANGES_PER_REQUEST = 16
"""Holes of a chain that are asked for at once; the others come after."""
_REQUESTS_PER_SECOND = 200
"""Ranges of a topic that are asked for in a second: well below what a peer may say for long."""
_LONGEST_PAUSE = 8.0
"""Seconds between rounds at most: a gap that lasts is worth asking about, but not often."""


class GapDue(Timer, frozen=True, gc=False):
    """What a chain lacks is to be asked for, or given up."""

    topic: TopicId
    chain: ChainKey


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


class GapRepair:
    """The repairs of one topic."""

    def __init__(self, topic: TopicId, config: DeliveryConfig, links: Container[PeerId], out: Outbox) -> None:
        self._topic = topic
        self._config = config
        self._links = links
        self._out = out
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

    def set_storage(self, nodes: Iterable[Contact]) -> None:
        """These nodes keep the topic."""
        self._storage = {contact.peer: contact.hints for contact in nodes}
        if any(peer in self._links for peer in self._storage):
            self._hasten()

    def note_holder(self, peer: PeerId, key: ChainKey) -> None:
        """This peer says that it can resend a chain."""
        held = self._holders.setdefault(peer, {})
        if len(held) < self._config.max_chains:
            held[key] = None

    def handle_link_up(self, peer: PeerId) -> None:
        """A link to this peer is open: whoever waited for one can ask now."""
        if peer in self._storage:
            self._hasten()

    def handle_link_down(self, peer: PeerId) -> None:
        """The link to this peer is gone."""
        self._holders.pop(peer, None)

    def review_chain(self, chain: Chain) -> None:
        """More is known of a chain: begin its repair if something is missing, end it if nothing is."""
        key = chain.key
        missing = chain.missing()
        repair = self._repairs.get(key)
        if missing:
            if repair is None:
                self._repairs[key] = _Repair(_count(missing))
                self._look_in(self._config.gap_grace, key)
            return
        if repair is None:
            return
        del self._repairs[key]
        self.filled += 1
        self._out.cancel_timer(GapDue(self._topic, key))
        self._out.record(Record(Kind.RESYNC, self._topic, device=chain.device, note="gap filled"))
        self._release_idle()

    def handle_answer(self, chain: Chain, done: bool) -> None:
        """Somebody sent a page of what was asked for. If that was all and not enough, ask on.

        Who had some of it is asked for the rest; who had none lets the next have its turn.
        """
        repair = self._repairs.get(chain.key)
        if repair is None or not repair.out:
            return
        missing = _count(chain.missing())
        if missing < repair.missing:
            repair.missing = missing
            repair.rounds = 0
            repair.turn = max(0, repair.turn - 1)
        repair.out -= done
        if repair.out:
            self._look_in(self._config.gap_timeout, chain.key)
        elif repair.turn < len(self.sources_for(chain.key)):
            self._look_in(0.0, chain.key)
        else:
            self._pause(chain.key, repair)

    def ask_source(self, chain: Chain, now: float) -> bool:
        """Ask the next source for what a chain lacks; returns whether to give it up instead."""
        key = chain.key
        repair = self._repairs.get(key)
        if repair is None:
            return False
        repair.out = 0
        if repair.rounds >= self._config.gap_tries:
            self.lost += _count(chain.missing())
            self.forget_chain(key)
            return True
        missing = chain.missing()
        if not missing:
            self.forget_chain(key)
            return False
        repair.missing = _count(missing)
        ranges = missing[:_RANGES_PER_REQUEST]
        if not self._spend(len(ranges), now):
            self._look_in(1.0, key)
            return False
        self._hold_storage(repair.rounds + repair.turn)
        sources = self.sources_for(key)
        if repair.turn >= len(sources):
            if not sources and self._config.gap_waits:
                repair.rounds = 0
                self._pause(key, repair, _LONGEST_PAUSE)
            else:
                self._pause(key, repair)
            return False
        source = sources[repair.turn]
        repair.turn += 1
        repair.out = len(ranges)
        for first, last in ranges:
            self._out.send(source, Resend(self._topic, chain.author, chain.device, first, last))
        self._look_in(self._config.gap_timeout, key)
        return False

    def forget_chain(self, key: ChainKey) -> None:
        """A chain is not followed any more."""
        if self._repairs.pop(key, None) is not None:
            self._out.cancel_timer(GapDue(self._topic, key))
            self._release_idle()

    def stop(self) -> None:
        """Nobody waits any more."""
        for key in self._repairs:
            self._out.cancel_timer(GapDue(self._topic, key))
        self._repairs = {}
        self._release_idle()

    def sources_for(self, key: ChainKey) -> list[PeerId]:
        """Who may hold a chain and can be asked now, storage nodes first."""
        links, storage = self._links, self._storage
        near = [peer for peer in storage if peer in links]
        return near + [
            peer
            for peer, held in self._holders.items()
            if key in held and peer in links and peer not in storage
        ]

    def _hold_storage(self, turn: int) -> None:
        """Get a link to a storage node if there is none, another one each turn."""
        if any(peer in self._links for peer in self._storage):
            return
        waiting = [peer for peer in self._storage if peer not in self._held]
        if waiting:
            peer = waiting[turn % len(waiting)]
            self._held[peer] = None
            self._out.hold(peer, self._storage[peer], self._purpose)

    def _hasten(self) -> None:
        """Whoever waits for somebody to ask need not wait any longer."""
        for key, repair in self._repairs.items():
            if repair.rounds and not repair.out:
                self._look_in(0.0, key)

    def _pause(self, key: ChainKey, repair: _Repair, least: float = 0.0) -> None:
        """Everyone was asked, or nobody could be: wait, longer each time, and begin again."""
        repair.turn = 0
        repair.rounds += 1
        pause = min(self._config.gap_backoff * 2.0 ** (repair.rounds - 1), _LONGEST_PAUSE)
        self._look_in(max(pause, least), key)

    def _spend(self, requests: int, now: float) -> bool:
        """Count requests; whether that many are allowed within this second."""
        since, count = self._asked
        if now >= since + 1.0:
            since, count = now, 0
        if count and count + requests > _REQUESTS_PER_SECOND:
            return False
        self._asked = (since, count + requests)
        return True

    def _release_idle(self) -> None:
        """Let the links go once nothing is under repair."""
        if self._repairs:
            return
        held, self._held = self._held, {}
        for peer in held:
            self._out.release(peer, self._purpose)

    @property
    def _purpose(self) -> str:
        return f"gaps {self._topic.hex()[:16]}"

    def _look_in(self, delay: float, key: ChainKey) -> None:
        self._out.set_timer(delay, GapDue(self._topic, key))


def _count(ranges: Iterable[Range]) -> int:
    return sum(last - first + 1 for first, last in ranges)
