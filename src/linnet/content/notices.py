"""Events on their way down: along filters, and back the word that they arrived.

Each node sends an event to those of its routes that want it, sends again what is not acknowledged, and
acknowledges when all below it have, with how many were handed the event and how many branches did not
answer. So the rendezvous, and with it the publisher, learns what became of it (Agostinho 2021, section
3.8, has only the rendezvous send again; here each hop mends its own).
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from linnet.content.config import ContentConfig
from linnet.content.effects import OWNER, ContentEffect
from linnet.content.messages import MOST_PATIENCE, Notice, Reached
from linnet.content.passing import Passing
from linnet.content.predicates import Predicate
from linnet.content.reach import Reach
from linnet.content.table import FilterTable
from linnet.core.effects import CancelTimer, SetTimer
from linnet.core.ids import EventId, PeerId
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.trace.records import Kind, Record

NOTICE = "notice"
_EARLIER = 0.75
"""The share of a sender's patience that a node has: who gives up too late is given up itself."""
Way = tuple[EventId, str]
"""An event, and the attribute along whose filters it goes."""


class Count(NamedTuple):
    """What became of an event below a node."""

    delivered: int
    missed: int


class _Ledger:
    """Who has yet to answer for one event and attribute."""

    __slots__ = ("deadline", "delivered", "hops", "missed", "open", "passing", "tries", "upstream")

    def __init__(self, passing: Passing, hops: int, upstream: PeerId | None, routes: list[PeerId]) -> None:
        self.passing: Passing | None = passing
        self.hops = hops
        self.upstream = upstream
        self.open: dict[PeerId, None] = dict.fromkeys(routes)
        self.tries = 0
        self.deadline = 0.0
        self.delivered = 0
        self.missed = 0

    @property
    def count(self) -> Count:
        return Count(self.delivered, self.missed)


class Notices:
    """The way down."""

    def __init__(self, ours: PeerId, config: ContentConfig, reach: Reach, table: FilterTable) -> None:
        self._ours = ours
        self._config = config
        self._reach = reach
        self._table = table
        self._ledgers: dict[Way, _Ledger] = {}
        """The oldest first; what is answered stays until there are too many."""
        self._lately: deque[tuple[float, Way, Passing, int]] = deque(maxlen=config.waiting)
        """Events that went down lately, and when."""
        self.local: list[tuple[Passing, int]] = []
        """Events that this node's own subscriptions may want, and over how many links they came."""

    def known(self, way: Way) -> bool:
        """Whether an event has gone down this way already."""
        return way in self._ledgers

    def count(self, way: Way) -> Count | None:
        """What became of an event that has gone down this way, if all have answered."""
        ledger = self._ledgers[way]
        return None if ledger.open else ledger.count

    @property
    def is_settled(self) -> bool:
        """Whether every branch has answered, or was given up."""
        return not any(ledger.open for ledger in self._ledgers.values())

    def down(
        self,
        attribute: str,
        passing: Passing,
        hops: int,
        upstream: PeerId | None,
        but: PeerId | None,
        now: float,
        patience: float | None = None,
    ) -> tuple[list[ContentEffect], Count | None]:
        """Send an event to all routes that want it, but one; what became of it, if that is known at once."""
        way = (passing.id, attribute)
        wanted = self._table.interested(attribute, passing.attributes)
        routes = [route for route in wanted if route not in (self._ours, but, upstream)]
        ledger = self._ledgers[way] = _Ledger(passing, hops, upstream, routes)
        if self._ours in wanted:
            ledger.delivered = 1
            self.local.append((passing, hops))
        ledger.deadline = now + (self._patience() if patience is None else patience * _EARLIER)
        self._lately.append((now, way, passing, hops))
        effects = self._forget()
        for route in routes:
            effects += self._send(route, attribute, passing, hops, ledger.deadline - now)
        if not self._config.reliable:
            ledger.open.clear()
        elif ledger.open:
            effects.append(SetTimer(min(self._config.resend, ledger.deadline - now), _tick(way)))
            return effects, None
        ledger.passing = None
        return effects, ledger.count

    def replay(self, route: PeerId, attribute: str, predicate: Predicate, now: float) -> list[ContentEffect]:
        """A route was elsewhere until now: send it what went down here in the meantime."""
        effects: list[ContentEffect] = []
        for at, way, passing, hops in self._lately:
            ledger = self._ledgers.get(way)
            if way[1] != attribute or at + self._config.lately <= now or ledger is None:
                continue
            if route in ledger.open or route == ledger.upstream or not predicate.covers(passing.attributes):
                continue
            if not ledger.open:
                ledger.deadline = now + self._patience()
            effects += self._send(route, attribute, passing, hops, ledger.deadline - now)
            if self._config.reliable:
                if not ledger.open:
                    # What is known of it was said already; this one is sent again for its own sake.
                    ledger.upstream, ledger.passing, ledger.tries = None, passing, 0
                    effects.append(SetTimer(self._config.resend, _tick(way)))
                ledger.open[route] = None
        return effects

    def _patience(self) -> float:
        """Seconds until a branch is given up, at a rendezvous: all tries, each twice as long as the last."""
        return float(min(self._config.resend * (2**self._config.tries - 1), MOST_PATIENCE / 1000))

    def _send(
        self, route: PeerId, attribute: str, passing: Passing, hops: int, patience: float
    ) -> list[ContentEffect]:
        left = max(0, int(1000 * patience))
        return self._reach.answer(route, Notice(attribute, passing.unit, passing.card, hops + 1, left))

    def again(self, peer: PeerId, way: Way) -> list[ContentEffect]:
        """The same event comes down the same way once more: if all is known, that is said again."""
        ledger = self._ledgers[way]
        record = Record(Kind.DUPLICATE, event=way[0], peer=peer, note=NOTICE)
        if ledger.open or not self._config.reliable:
            return [record]
        return [record, *self._reach.answer(peer, Reached(*way, *ledger.count))]

    def reached(self, peer: PeerId, message: Reached) -> tuple[list[ContentEffect], Count | None]:
        """A route answers for all below it; what became of the event here, if that is all."""
        way = (message.event, message.attribute)
        ledger = self._ledgers.get(way)
        if ledger is None or peer not in ledger.open:
            return [Record(Kind.REJECTED, peer=peer, reason=Reason.STALE, note="Reached")], None
        ledger.delivered += message.delivered
        ledger.missed += message.missed
        return self._closed(way, ledger, peer)

    def fired(self, tick: Tick, now: float) -> tuple[Way, list[ContentEffect], Count | None]:
        """Some have not answered: once more, and in the end without them."""
        way = (EventId(tick.key[:32]), tick.key[32:].decode())
        ledger = self._ledgers.get(way)
        if ledger is None or ledger.passing is None:
            return way, [], None
        ledger.tries += 1
        effects: list[ContentEffect] = []
        left = ledger.deadline - now
        if left > 0.001:
            for route in ledger.open:
                effects += self._send(route, way[1], ledger.passing, ledger.hops, left)
            wait = min(left, self._config.resend * 2**ledger.tries)
            return way, [*effects, SetTimer(wait, _tick(way))], None
        count: Count | None = None
        for route in list(ledger.open):
            ledger.missed += 1
            effects.append(Record(Kind.DROPPED, event=way[0], peer=route, reason=Reason.TIMEOUT, note=NOTICE))
            told, count = self._closed(way, ledger, route)
            effects += told
        return way, effects, count

    def _closed(self, way: Way, ledger: _Ledger, route: PeerId) -> tuple[list[ContentEffect], Count | None]:
        del ledger.open[route]
        if ledger.open:
            return [], None
        ledger.passing = None
        effects: list[ContentEffect] = [CancelTimer(_tick(way))]
        if ledger.upstream is not None:
            effects += self._reach.answer(ledger.upstream, Reached(*way, *ledger.count))
        return effects, ledger.count

    def _forget(self) -> list[ContentEffect]:
        """Keep no more than may be remembered; what is still open is given up with a word."""
        effects: list[ContentEffect] = []
        while len(self._ledgers) > self._config.remembered:
            way = next(iter(self._ledgers))
            ledger = self._ledgers.pop(way)
            if ledger.open:
                note = f"{len(ledger.open)} branches had not answered"
                effects += (
                    CancelTimer(_tick(way)),
                    Record(Kind.EVICTED, event=way[0], reason=Reason.TOO_MANY, note=note),
                )
        return effects


def _tick(way: Way) -> Tick:
    return Tick(OWNER, NOTICE, way[0] + way[1].encode())
