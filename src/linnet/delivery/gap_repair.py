"""Gap repair: asks the peers that may hold the missing events of a chain until they arrive.

Flooding is not involved. A gap may close by itself, when the missing events arrive over another path. After a
grace time storage nodes are asked for exactly the missing ranges, then neighbours that say they hold them. A
gap that nobody can fill is given up with a reason (Juslenius 2021, section 4.2.3, which leaves times and
tries open).

Requests are paced. Anyone can claim that chains exist, as many as a topic may have, so chains wait for their
turn in a queue for each peer that claims some. Chains with an event that was verified have a queue of their
own, and most of the turns.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from msgspec import Struct

from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.timers import TopicTimer
from linnet.delivery.chain import Chain, ChainKey, Range
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.messages import Resend
from linnet.machine.outbox import Outbox
from linnet.trace.records import Kind, Record

_RANGES_PER_REQUEST = 16
"""Gaps of a chain that are requested at once; the others follow."""
_REQUESTS_PER_SECOND = 200
"""Ranges of a topic requested per second: well below what a peer may send over a long time."""
_CLAIMS_TURN = 4
"""Each fourth turn is for a chain that was only claimed, if any waits."""
_WIDEST = 4
"""The most sources that are asked at a time for one gap."""
_MOST_TRIED = 64
"""The most sources that are asked in one round: those that come and go must not keep it from ending."""
_LONGEST_PAUSE = 8.0
"""The longest pause between rounds, in seconds: a lasting gap is worth asking about, but not often."""


class GapDue(TopicTimer, frozen=True, gc=False):
    """Time to ask for the missing events of a chain, or to give them up."""

    chain: ChainKey


class PaceDue(TopicTimer, frozen=True, gc=False):
    """More ranges may be requested: it is the turn of the chains that wait."""


class _Repair(Struct, eq=False):
    """The repair of a chain that has gaps."""

    missing: int
    """Events that were missing at the last check."""
    claimant: PeerId | None = None
    """The peer that claims that the chain exists; None once an event of it was verified."""
    waits: bool = False
    """Whether it waits for its turn."""
    rounds: int = 0
    """Rounds in which all possible holders were asked, or there was nobody to ask."""
    tried: dict[PeerId, None] = {}
    """The sources that were asked in this round."""
    asked: dict[PeerId, int] = {}
    """How many requests each source has not answered yet, of those that were asked last."""
    width: int = 1
    """Sources to ask at a time: more of them after some that did not answer."""


class GapRepair:
    """Repairs the gaps in the chains of one topic."""

    def __init__(self, topic: TopicId, config: DeliveryConfig, links: Container[PeerId], out: Outbox) -> None:
        self._topic = topic
        self._config = config
        self._links = links
        self._out = out
        self.repairs: dict[ChainKey, _Repair] = {}
        """The repairs in progress, by chain."""
        self._storage: dict[PeerId, tuple[str, ...]] = {}
        self._holders: dict[PeerId, dict[ChainKey, None]] = {}
        self._held: dict[PeerId, None] = {}
        self._silent: dict[PeerId, int] = {}
        """How often in succession each source did not answer: it is asked after others."""
        self._asked = (0.0, 0)
        """The start of the current second, and how many ranges were requested in it."""
        self._waiting: dict[PeerId | None, dict[ChainKey, None]] = {}
        """The chains that wait for their turn, by claimant; whose turn is next comes first."""
        self._turns = 0
        self.filled = 0
        """Repairs that filled all gaps."""
        self.lost = 0
        """Events that were given up."""

    def set_storage(self, nodes: Iterable[Contact]) -> None:
        """Replace the known storage nodes of the topic."""
        self._storage = {contact.peer: contact.hints for contact in nodes}
        kept = (*self._storage, *self._holders)
        self._silent = {peer: self._silent[peer] for peer in kept if peer in self._silent}
        if any(peer in self._links for peer in self._storage):
            self._hasten()

    def note_holder(self, peer: PeerId, key: ChainKey) -> None:
        """Note that a peer can resend a chain."""
        held = self._holders.setdefault(peer, {})
        if len(held) < self._config.max_chains:
            held[key] = None

    def handle_link_up(self, peer: PeerId) -> None:
        """Send the requests that waited for a link to a storage node."""
        if peer in self._storage:
            self._hasten()

    def handle_link_down(self, peer: PeerId) -> None:
        """Forget which chains a peer can resend, since its link is down."""
        self._holders.pop(peer, None)
        self._silent.pop(peer, None)

    def review_chain(self, chain: Chain, claimant: PeerId | None = None) -> None:
        """Begin the repair of a chain if it has gaps; end it if it has none.

        `claimant` is the peer that says that there is more; it counts while no event of the chain was seen.
        """
        key = chain.key
        missing = chain.missing()
        repair = self.repairs.get(key)
        if missing:
            if repair is None:
                repair = self.repairs[key] = _Repair(_count(missing), claimant)
                self._look_in(self._config.gap_grace, key)
            if repair.claimant is not None and len(chain.seen):
                self._note_verified(key, repair)
            return
        if repair is None:
            return
        del self.repairs[key]
        self.filled += 1
        self._out.cancel_timer(GapDue(self._topic, key))
        self._out.record(Record(Kind.RESYNC, self._topic, device=chain.device, note="gap filled"))
        self._release_idle()

    def handle_answer(self, peer: PeerId, chain: Chain, done: bool, is_refused: bool = False) -> None:
        """After the last page of an answer, ask again if events are still missing.

        A source that had some of them is asked for the rest; after one that had none, the next one is asked.
        If we refused what it had, the others have nothing better: a round is over.
        """
        self._silent.pop(peer, None)
        repair = self.repairs.get(chain.key)
        if repair is None or peer not in repair.asked:
            return
        missing = _count(chain.missing())
        if missing < repair.missing:
            repair.missing = missing
            repair.rounds = 0
            repair.tried.pop(peer, None)
        repair.asked[peer] -= done
        if not repair.asked[peer]:
            del repair.asked[peer]
        if repair.asked:
            self._look_in(self._config.gap_timeout, chain.key)
        elif self._untried(chain.key, repair) and not is_refused:
            self._look_in(0.0, chain.key)
        else:
            self._pause(chain.key, repair)

    def ask_sources(self, chain: Chain, now: float) -> bool:
        """Ask the next source for the gaps of a chain, or some; return whether to give them up instead."""
        key = chain.key
        repair = self.repairs.get(key)
        if repair is None:
            return False
        self._note_silent(repair)
        if repair.rounds >= self._config.gap_tries:
            self.lost += _count(chain.proven_missing())
            self.forget_chain(key)
            return True
        missing = chain.missing()
        if not missing:
            self.forget_chain(key)
            return False
        repair.missing = _count(missing)
        ranges = missing[:_RANGES_PER_REQUEST]
        if not self._spend(len(ranges), now):
            self._wait(key, repair, now)
            return False
        self._hold_storage(repair.rounds + len(repair.tried), is_again=repair.rounds > 0)
        sources = self._untried(key, repair)
        if not sources:
            if not repair.tried and self._config.gap_waits:
                repair.rounds = 0
                self._pause(key, repair, _LONGEST_PAUSE)
            else:
                self._pause(key, repair)
            return False
        for source in sources[: repair.width]:
            repair.tried[source] = None
            repair.asked[source] = len(ranges)
            for first, last in ranges:
                self._out.send(source, Resend(self._topic, chain.author, chain.device, first, last))
        self._look_in(self._config.gap_timeout, key)
        return False

    def _untried(self, key: ChainKey, repair: _Repair) -> list[PeerId]:
        """Return the sources that were not asked in this round; those that do not answer come last."""
        if len(repair.tried) >= _MOST_TRIED:
            return []
        sources = [peer for peer in self.sources_for(key) if peer not in repair.tried]
        return sorted(sources, key=lambda peer: self._silent.get(peer, 0)) if self._silent else sources

    def _note_silent(self, repair: _Repair) -> None:
        """Note which of the sources that were asked last have not answered in time."""
        if repair.asked:
            repair.width = min(2 * repair.width, _WIDEST)
        for peer in repair.asked:
            if peer in self._holders or peer in self._storage:
                self._silent[peer] = self._silent.get(peer, 0) + 1
        repair.asked = {}

    def missing(self, key: ChainKey) -> int:
        """Return how many events of a chain were missing when it was last looked at."""
        repair = self.repairs.get(key)
        return 0 if repair is None else repair.missing

    def is_unanswered(self, key: ChainKey) -> bool:
        """Return whether nobody could fill the gaps of a chain in a whole round."""
        repair = self.repairs.get(key)
        return repair is not None and (repair.rounds > 0 or len(repair.tried) > 1)

    def take_turns(self, now: float) -> Iterator[ChainKey]:
        """Yield the chains whose turn it is (`PaceDue`), to be asked for with `ask_source`."""
        while self._waiting and self._may_ask(now):
            key = self._next_key()
            repair = self.repairs.get(key)
            if repair is not None and repair.waits:
                repair.waits = False
                yield key
        if self._waiting:
            self._set_pace(now)

    def forget_chain(self, key: ChainKey) -> None:
        """Stop the repair of a chain."""
        repair = self.repairs.pop(key, None)
        if repair is not None:
            if repair.waits:
                self._leave_queue(key, repair.claimant)
            self._out.cancel_timer(GapDue(self._topic, key))
            self._release_idle()

    def stop(self) -> None:
        """Stop all repairs."""
        for key in self.repairs:
            self._out.cancel_timer(GapDue(self._topic, key))
        if self._waiting:
            self._out.cancel_timer(PaceDue(self._topic))
        self.repairs, self._waiting = {}, {}
        self._release_idle()

    def sources_for(self, key: ChainKey) -> list[PeerId]:
        """Return the peers that may hold a chain and can be asked now, storage nodes first."""
        links, storage = self._links, self._storage
        near = [peer for peer in storage if peer in links]
        return near + [
            peer
            for peer, held in self._holders.items()
            if key in held and peer in links and peer not in storage
        ]

    def _hold_storage(self, turn: int, is_again: bool) -> None:
        """Get a link to a storage node if there is none, to a different one each turn.

        `is_again` says that those with a link have not helped: they may hide what they have.
        """
        if not is_again and any(peer in self._links for peer in self._storage):
            return
        waiting = [peer for peer in self._storage if peer not in self._held and peer not in self._links]
        if waiting:
            peer = waiting[turn % len(waiting)]
            self._held[peer] = None
            self._out.hold(peer, self._storage[peer], self._purpose)

    def _hasten(self) -> None:
        """Start at once the rounds that waited for a source."""
        for key, repair in self.repairs.items():
            if repair.rounds and not repair.asked and not repair.waits:
                self._look_in(0.0, key)

    def _pause(self, key: ChainKey, repair: _Repair, least: float = 0.0) -> None:
        """Begin another round after a pause, which doubles each time."""
        repair.tried = {}
        repair.rounds += 1
        pause = min(self._config.gap_backoff * 2.0 ** (repair.rounds - 1), _LONGEST_PAUSE)
        self._look_in(max(pause, least), key)

    def _may_ask(self, now: float) -> bool:
        """Return whether further ranges may be requested within this second."""
        since, count = self._asked
        return count < _REQUESTS_PER_SECOND or not since <= now < since + 1.0

    def _spend(self, requests: int, now: float) -> bool:
        """Count requests; return whether they are allowed within this second."""
        if not self._may_ask(now):
            return False
        since, count = self._asked
        is_same = since <= now < since + 1.0
        self._asked = (since, count + requests) if is_same else (now, requests)
        return True

    def _wait(self, key: ChainKey, repair: _Repair, now: float) -> None:
        """Let a chain wait for its turn."""
        if not self._waiting:
            self._set_pace(now)
        repair.waits = True
        self._waiting.setdefault(repair.claimant, {})[key] = None

    def _note_verified(self, key: ChainKey, repair: _Repair) -> None:
        """Let a chain with an event no longer wait among those that were only claimed."""
        claimant, repair.claimant = repair.claimant, None
        if not repair.waits:
            return
        self._leave_queue(key, claimant)
        self._waiting.setdefault(None, {})[key] = None

    def _leave_queue(self, key: ChainKey, claimant: PeerId | None) -> None:
        claimed = self._waiting[claimant]
        del claimed[key]
        if not claimed:
            del self._waiting[claimant]

    def _set_pace(self, now: float) -> None:
        self._out.set_timer(max(0.0, self._asked[0] + 1.0 - now), PaceDue(self._topic))

    def _next_key(self) -> ChainKey:
        """Take the next chain of the queue whose turn it is."""
        self._turns += 1
        waiting = self._waiting
        is_claims_turn = self._turns % _CLAIMS_TURN == 0 and len(waiting) > (None in waiting)
        is_proved = None in waiting and not is_claims_turn
        claimant = None if is_proved else next(peer for peer in waiting if peer is not None)
        keys = waiting.pop(claimant)
        key = next(iter(keys))
        del keys[key]
        if keys:
            waiting[claimant] = keys  # The others come first now.
        return key

    def _release_idle(self) -> None:
        """Release the links once no repair is in progress."""
        if self.repairs:
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
