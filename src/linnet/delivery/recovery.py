"""Reactive recovery: events that are missing are asked for by id, of one source after the other.

Most of what is missing comes by itself, so it is asked for after a delay, and first of the peer that
sent what depends on it, for that peer had it when it sent it or its author did. What no source has is
left to synchronisation, and tried again when a new source appears.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush

from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.delivery.causal_messages import Given, Want
from linnet.delivery.config import BarrierConfig
from linnet.machine.outbox import Outbox
from linnet.trace.records import Kind, Record

_SENDERS = 4
"""Peers that sent something which depends on one event: so many are asked before all others."""
_REQUESTS = 1024
"""Questions whose answer is matched as a whole; of older ones the single ids still count."""
_SLACK = 1e-3
"""Seconds that a timer may be early: what is due now is asked for together."""


class RecoveryDue(Timer, frozen=True, gc=False):
    """Events of a topic that are missing are to be asked for, or the next source is to be asked."""

    topic: TopicId


class _Ask:
    """An event that is missing."""

    __slots__ = ("asked", "due", "needed", "peer", "refused", "request", "senders", "tries", "wanted")

    def __init__(self, wanted: bool) -> None:
        self.senders: dict[PeerId, None] = {}
        self.asked: dict[PeerId, None] = {}
        """Sources that were asked in this round."""
        self.refused: dict[PeerId, None] = {}
        """Sources that do not hold it."""
        self.tries = 0
        self.peer: PeerId | None = None
        """Who is to answer."""
        self.request = 0
        self.due: float | None = None
        """When the next source is asked; None: it is left to synchronisation."""
        self.needed = False
        """Whether something depends on it."""
        self.wanted = wanted
        """Whether it was asked for by itself, and not only because something depends on it."""


class Recovery:
    """What one topic lacks and asks for."""

    def __init__(self, topic: TopicId, config: BarrierConfig, out: Outbox) -> None:
        self._topic = topic
        self._config = config
        self._out = out
        self._asks: dict[EventId, _Ask] = {}
        self._queue: list[tuple[float, int, EventId]] = []
        self._pushed = 0
        self._requests: dict[int, tuple[PeerId, tuple[EventId, ...]]] = {}
        self._request = 0
        self._turn = 0
        self._armed: float | None = None

    def __len__(self) -> int:
        return len(self._asks)

    def __contains__(self, id: EventId) -> bool:
        return id in self._asks

    @property
    def left(self) -> int:
        """Events that no source had, left to synchronisation."""
        return sum(ask.due is None for ask in self._asks.values())

    def asks(self, peer: PeerId, id: EventId) -> bool:
        """Whether this source is to answer for an event that is missing."""
        ask = self._asks.get(id)
        return ask is not None and ask.peer == peer

    def is_left(self, id: EventId) -> bool:
        """Whether an event is missing and no source has it."""
        ask = self._asks.get(id)
        return ask is not None and ask.due is None

    def miss(self, id: EventId, sender: PeerId | None, at: float, wanted: bool = False) -> None:
        """An event is missing and is to be asked for from this time on."""
        ask = self._asks.get(id)
        if ask is None:
            ask = self._asks[id] = _Ask(wanted)
            self._push(id, ask, at)
        ask.wanted |= wanted
        ask.needed |= not wanted
        if sender is not None and len(ask.senders) < _SENDERS:
            ask.senders[sender] = None
        idle = ask.due is None and sender is not None and sender not in ask.refused
        early = ask.due is not None and ask.peer is None and at < ask.due
        if idle or early:
            self._push(id, ask, at)

    def remove(self, id: EventId) -> None:
        """Ask for an event no more: it is missing no longer."""
        self._asks.pop(id, None)

    def drop_need(self, id: EventId) -> None:
        """Note that nothing depends on an event any more: it is asked for only if it was wanted by itself."""
        ask = self._asks.get(id)
        if ask is None:
            return
        ask.needed = False
        if not ask.wanted or ask.due is None:
            del self._asks[id]

    def add_source(self, peer: PeerId, now: float) -> None:
        """Ask a source that has appeared as well: it may have what no other had."""
        for id, ask in self._asks.items():
            ask.refused.pop(peer, None)
            ask.asked.pop(peer, None)
            if ask.due is None:
                ask.tries = 0
                self._push(id, ask, now)

    def remove_source(self, peer: PeerId, now: float) -> None:
        """Ask others for what a source was asked for that has gone: it will not answer."""
        for id, ask in self._asks.items():
            if ask.peer == peer and ask.due is not None:
                self._push(id, ask, now)

    def handle_answer(self, peer: PeerId, answer: Given, now: float) -> None:
        """Ask again for what is still missing after a source has answered; what it sent was offered already.

        A source that sent some is asked for the rest, since a page holds only so much; one that says it
        holds nothing costs no try, for there are only so many that can say so.
        """
        for id in answer.unknown:
            ask = self._asks.get(id)
            if ask is not None and ask.peer == peer:
                ask.refused[peer] = None
                ask.tries = max(0, ask.tries - 1)
                self._push(id, ask, now)
        of, ids = self._requests.get(answer.request, (None, ()))
        if of != peer:
            return
        del self._requests[answer.request]
        still = [id for id in ids if (ask := self._asks.get(id)) and ask.request == answer.request]
        progress = len(still) < len(ids)
        for id in still:
            ask = self._asks[id]
            if peer in ask.refused:
                continue
            if progress:
                ask.tries -= 1
                ask.asked.pop(peer, None)
            self._push(id, ask, now)

    def ask(self, now: float, sources: Sequence[PeerId]) -> None:
        """Ask for all that is due, of these sources."""
        batches: dict[PeerId, list[EventId]] = {}
        turn = self._turn % len(sources) if sources else 0
        self._turn += 1
        order = (*sources[turn:], *sources[:turn])
        for id, ask in self._due(now):
            peer = self._next(ask, order)
            if peer is None or ask.tries >= self._config.tries:
                self._leave(id, ask, Reason.NOT_HELD if peer is None else Reason.TIMEOUT)
                continue
            ask.tries += 1
            ask.peer = peer
            ask.asked[peer] = None
            self._push(id, ask, now + self._config.timeout)
            batches.setdefault(peer, []).append(id)
        for peer, ids in batches.items():
            step = self._config.ids
            for at in range(0, len(ids), step):
                self._want(peer, tuple(ids[at : at + step]))
        self.arm(now)

    def arm(self, now: float) -> None:
        """Set the timer for what is due next, if it is not set for that."""
        while self._queue and not self._valid(self._queue[0]):
            heappop(self._queue)
        if not self._queue:
            return
        due = self._queue[0][0]
        if self._armed is not None and self._armed <= due:
            return
        self._armed = due
        self._out.set_timer(max(0.0, due - now), RecoveryDue(self._topic))

    def handle_timer(self) -> None:
        """Note that the timer is set no longer."""
        self._armed = None

    def stop(self) -> None:
        """Ask for nothing any more: nobody waits."""
        self._asks, self._queue, self._requests = {}, [], {}
        armed, self._armed = self._armed, None
        if armed is not None:
            self._out.cancel_timer(RecoveryDue(self._topic))

    def _due(self, now: float) -> list[tuple[EventId, _Ask]]:
        due: list[tuple[EventId, _Ask]] = []
        while self._queue and self._queue[0][0] <= now + _SLACK:
            entry = heappop(self._queue)
            if self._valid(entry):
                due.append((entry[2], self._asks[entry[2]]))
                self._asks[entry[2]].due = None
        return due

    def _valid(self, entry: tuple[float, int, EventId]) -> bool:
        ask = self._asks.get(entry[2])
        return ask is not None and ask.due == entry[0]

    def _push(self, id: EventId, ask: _Ask, due: float) -> None:
        if ask.due != due:
            ask.due = due
            self._pushed += 1
            heappush(self._queue, (due, self._pushed, id))

    def _next(self, ask: _Ask, order: Iterable[PeerId]) -> PeerId | None:
        """The source to ask: who sent what depends on it, then the others, each once in a round."""
        order = dict.fromkeys(order)
        near = [peer for peer in ask.senders if peer in order]
        able = [peer for peer in dict.fromkeys((*near, *order)) if peer not in ask.refused]
        fresh = [peer for peer in able if peer not in ask.asked]
        if able and not fresh:
            ask.asked = {}
            fresh = [peer for peer in able if peer != ask.peer] or able
        return fresh[0] if fresh else None

    def _want(self, peer: PeerId, ids: tuple[EventId, ...]) -> None:
        self._request += 1
        for id in ids:
            self._asks[id].request = self._request
        self._requests[self._request] = (peer, ids)
        if len(self._requests) > _REQUESTS:
            del self._requests[next(iter(self._requests))]
        self._out.send(peer, Want(self._topic, self._request, ids))

    def _leave(self, id: EventId, ask: _Ask, reason: Reason) -> None:
        """Ask no more. What nothing depends on is forgotten: whoever named it may have made it up."""
        last, ask.peer = ask.peer, None
        if not ask.needed:
            del self._asks[id]
        note = "left to synchronisation"
        self._out.record(Record(Kind.RESYNC, self._topic, id, peer=last, reason=reason, note=note))
