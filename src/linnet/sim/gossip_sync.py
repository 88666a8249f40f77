"""Catching up with another member of a simulated topic: the shipped heads walk and set reconciliation.

What `linnet.rooms.head_sync` does in a room, without what a room knows of who may do what.
"""

from __future__ import annotations

from typing import TypeAlias

from linnet.core.effects import CancelTimer, Send, SetTimer
from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.delivery.causal_messages import Beyond, Further, Reconcile
from linnet.delivery.dag import Dag
from linnet.delivery.plan import Standing, Way, plan
from linnet.delivery.reconcile import Reconciler
from linnet.delivery.sorted_ids import SortedIds
from linnet.trace.records import Kind, Record

HEADS = 256
TIMEOUT = 10.0
"""Seconds without progress after which a session is over."""


class SyncDue(Timer, frozen=True, gc=False):
    """A session with a peer may make no progress any more."""

    topic: TopicId
    peer: PeerId


SyncEffect: TypeAlias = Send[Beyond | Reconcile] | SetTimer[SyncDue] | CancelTimer[SyncDue] | Record


class Told:
    """How far a peer is, as it told."""

    __slots__ = ("events", "heads")

    def __init__(self, heads: tuple[EventId, ...], events: int) -> None:
        self.heads = heads
        self.events = events


class _Session:
    __slots__ = ("again", "known", "number", "reconciler", "request")

    def __init__(self, number: int) -> None:
        self.number = number
        self.request: int | None = None
        self.reconciler: Reconciler | None = None
        self.known = -1
        self.again = False


class GossipSync:
    """All synchronisations of one topic at one node."""

    def __init__(self, topic: TopicId, ours: PeerId, dag: Dag, ids: SortedIds) -> None:
        self._topic = topic
        self._ours = ours
        self._dag = dag
        self._ids = ids
        self._told: dict[PeerId, Told] = {}
        self._sessions: dict[PeerId, _Session] = {}
        self._answering: dict[PeerId, tuple[int, Reconciler]] = {}
        self._number = 0

    @property
    def heads(self) -> tuple[EventId, ...]:
        """What we tell of how far we are."""
        return self._dag.all_heads[:HEADS]

    def awaits(self, peer: PeerId, request: int) -> bool:
        """Whether a page of a walk answers the question that is open."""
        session = self._sessions.get(peer)
        return session is not None and session.request == request

    def compare(self, peer: PeerId, told: Told) -> list[SyncEffect]:
        """A member told its heads: fetch what it has beyond ours."""
        self._told[peer] = told
        if all(self._dag.satisfies(head) for head in told.heads):
            return []
        session = self._sessions.get(peer)
        if session is not None:
            session.again = True
            return []
        self._number += 1
        # Both ends may begin a session at the same time, so their numbers must differ.
        session = self._sessions[peer] = _Session(2 * self._number + (self._ours > peer))
        return self._walk(peer, session)

    def on_further(self, peer: PeerId, page: Further) -> list[SyncEffect]:
        """A page of a walk was taken in."""
        session = self._sessions.get(peer)
        if session is None or session.request != page.request:
            return []
        if page.unknown and self._plan(page, self._told[peer]) is Way.RECONCILE:
            session.request = None
            session.reconciler = Reconciler(self._topic, session.number, self._ids)
            return [Send(peer, session.reconciler.begin()), self._timer(peer)]
        if page.more and len(self._dag) > session.known:
            return self._walk(peer, session)
        return self._end(peer)

    def on_reconcile(self, peer: PeerId, message: Reconcile) -> tuple[list[SyncEffect], tuple[EventId, ...]]:
        """A step of reconciliation, of a session of ours or of theirs, and what it shows that we lack."""
        session = self._sessions.get(peer)
        reconciler = None
        if session is not None and session.number == message.session:
            reconciler = session.reconciler
        ours = reconciler is not None
        if reconciler is None and message.session % 2 == (self._ours > peer):
            record = Record(Kind.REJECTED, self._topic, peer=peer, reason=Reason.STALE, note="reconciliation")
            return [record], ()
        if reconciler is None:
            reconciler = self._answerer(peer, message.session)
        step = reconciler.answer(message)
        effects: list[SyncEffect] = [] if step.reply is None else [Send(peer, step.reply)]
        if reconciler.failed is not None:
            note = "reconciliation"
            record = Record(Kind.REJECTED, self._topic, peer=peer, reason=reconciler.failed, note=note)
            effects.append(record)
        if reconciler.done and ours:
            effects += self._end(peer)
        elif reconciler.done:
            self._answering.pop(peer, None)
        elif ours:
            effects.append(self._timer(peer))
        return effects, tuple(each for each in step.need if not self._dag.satisfies(each))

    def down(self, peer: PeerId) -> list[SyncEffect]:
        """A link is gone; what was fetched stays."""
        self._answering.pop(peer, None)
        self._told.pop(peer, None)
        return [] if self._sessions.pop(peer, None) is None else [CancelTimer(SyncDue(self._topic, peer))]

    def end_stalled(self, peer: PeerId) -> list[SyncEffect]:
        """End a session that made no progress for too long."""
        if self._sessions.pop(peer, None) is None:
            return []
        return [Record(Kind.DROPPED, self._topic, peer=peer, reason=Reason.TIMEOUT, note="synchronisation")]

    def _answerer(self, peer: PeerId, number: int) -> Reconciler:
        known = self._answering.get(peer)
        if known is None or known[0] != number:
            known = self._answering[peer] = number, Reconciler(self._topic, number, self._ids)
        return known[1]

    def _walk(self, peer: PeerId, session: _Session) -> list[SyncEffect]:
        self._number += 1
        session.request, session.known = self._number, len(self._dag)
        return [Send(peer, Beyond(self._topic, session.request, self.heads)), self._timer(peer)]

    def _plan(self, page: Further, told: Told) -> Way:
        unknown = sum(not self._dag.satisfies(head) for head in told.heads)
        ours = Standing(len(self._dag.all_heads), len(self._dag), len(page.unknown))
        return plan(ours, Standing(len(told.heads), told.events, unknown))

    def _end(self, peer: PeerId) -> list[SyncEffect]:
        session = self._sessions.pop(peer)
        effects: list[SyncEffect] = [CancelTimer(SyncDue(self._topic, peer))]
        if session.again and peer in self._told:
            effects += self.compare(peer, self._told[peer])
        return effects

    def _timer(self, peer: PeerId) -> SetTimer[SyncDue]:
        return SetTimer(TIMEOUT, SyncDue(self._topic, peer))
