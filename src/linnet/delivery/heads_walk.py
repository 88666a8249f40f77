"""The heads walk: finds the events known here that lie beyond the heads of another node.

As in git, two colours run down the graph from our heads and from theirs, the highest event first. All
successors of an event are higher, so its colour is final when its turn comes, and the walk ends when no event
is left that the other may lack: its cost is the size of the difference.

`TopicSync` is the side that asks. Two nodes in a topic compare the heads that the other told with their own.
Unknown events are fetched by the walk, or by set reconciliation where both have gone on apart
(`linnet.delivery.set_reconciliation`). A session is bounded by a timer that is extended on progress; what it
has fetched stays, and the next session goes on from there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterable
from heapq import heappop, heappush
from typing import Generic, NamedTuple, Protocol, TypeVar

from linnet.core.effects import SetTimer
from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.delivery.causal_graph import Dag
from linnet.delivery.messages import HEADS_PER_MESSAGE, Beyond, Further, Reconcile
from linnet.delivery.set_reconciliation import Reconciler, SortedIds, Standing, Way, plan
from linnet.machine.outbox import Outbox
from linnet.trace.records import Kind, Record

_WALKS = 8
"""The most walks whose rest is kept, those of the latest askers: some eight bytes for each event."""


class Page(NamedTuple):
    """The events that lie beyond some heads, or the first part of them."""

    ids: tuple[EventId, ...]
    """The ids, in causal order."""
    more: bool
    """Whether there are more: ask for them from the new heads once these are applied."""
    unknown: tuple[EventId, ...]
    """Heads that are not in the graph here; the walk cannot tell what precedes them."""


def beyond(dag: Dag, heads: Iterable[EventId], limit: int) -> Page:
    """Return the events known here that are not in the past of those heads that are known here.

    The lowest come first, so that each page can be applied by itself. The asker must name all its heads, also
    those that it does not show, or it is sent their events again.
    """
    asked = tuple(dict.fromkeys(heads))
    known = [head for head in asked if dag.knows(head)]
    ids = difference(dag, known)
    unknown = tuple(head for head in asked if not dag.knows(head))
    return Page(tuple(ids[:limit]), len(ids) > limit, unknown)


def difference(dag: Dag, known: Iterable[EventId]) -> list[EventId]:
    """Return all events known here and not in the past of these, the lowest first, then by id."""
    common: dict[EventId, None] = dict.fromkeys(known)
    queue: list[tuple[int, EventId]] = []
    queued: dict[EventId, None] = {}
    lacking = 0
    for id in (*common, *dag.all_heads):
        if id not in queued:
            queued[id] = None
            heappush(queue, (-dag.height(id), id))
            lacking += id not in common
    found: list[tuple[int, EventId]] = []
    while lacking > 0 and queue:
        height, id = heappop(queue)
        shared = id in common
        if not shared:
            lacking -= 1
            found.append((-height, id))
        for ref in dag.refs(id):
            if not dag.knows(ref):
                continue
            if ref not in queued:
                queued[ref] = None
                heappush(queue, (-dag.height(ref), ref))
                lacking += not shared
            elif shared and ref not in common:
                lacking -= 1
            if shared:
                common[ref] = None
    found.sort()
    return [id for _, id in found]


class _Rest:
    """The part of a walk that one asker was sent, and the rest of it."""

    __slots__ = ("at", "ids", "known", "late", "start", "tops")

    def __init__(self, dag: Dag, start: dict[EventId, None]) -> None:
        self.start = start
        """The heads from which the walk began."""
        self.ids = difference(dag, start)
        self.at = 0
        """How many of the ids the asker has, judging by its heads."""
        self.tops: dict[EventId, None] = {}
        """The heads among the ids that it has."""
        self.known = len(dag)
        self.late = dag.late


class Walks:
    """The walks of several askers: answers as `beyond` does, without a new walk for each page.

    Nothing is promised, and little is kept: the heads that an asker names show what it has, and if they do
    not fit what it was sent, the walk begins anew.
    """

    def __init__(self, dag: Dag) -> None:
        self._dag = dag
        self._rests: dict[PeerId, _Rest] = {}

    def page(self, asker: PeerId, heads: Iterable[EventId], limit: int) -> Page:
        """Return the events beyond these heads, which are the asker's present ones."""
        dag = self._dag
        asked = dict.fromkeys(heads)
        known = {head: None for head in asked if dag.knows(head)}
        rest = self._rests.pop(asker, None)
        if rest is None or not self._goes_on(rest, known):
            rest = _Rest(dag, known)
        ids = tuple(rest.ids[rest.at : rest.at + limit])
        more = rest.at + limit < len(rest.ids) or len(dag) > rest.known
        if more:
            self._rests[asker] = rest
            if len(self._rests) > _WALKS:
                del self._rests[next(iter(self._rests))]
        return Page(ids, more, tuple(head for head in asked if head not in known))

    def forget(self, asker: PeerId) -> None:
        """Forget an asker that is gone."""
        self._rests.pop(asker, None)

    def _goes_on(self, rest: _Rest, known: dict[EventId, None]) -> bool:
        """Advance a walk to the point that these heads show; return whether they fit the walk.

        The walk is in ascending order, so the highest of its events among the heads is that point, if the
        heads of all events up to it are named. An asker that names others has learnt events elsewhere.
        """
        dag = self._dag
        if rest.late != dag.late:
            return False
        places = [self._place(rest, head) for head in known if head not in rest.start]
        upto = max(places, default=-1) + 1
        if -1 in places or upto < rest.at or upto >= len(rest.ids):
            return False
        for id in rest.ids[rest.at : upto]:
            for ref in dag.refs(id):
                rest.tops.pop(ref, None)
            rest.tops[id] = None
        rest.at = upto
        return all(top in known for top in rest.tops)

    def _place(self, rest: _Rest, id: EventId) -> int:
        """Return the index of an event in a walk; -1 if it is not there."""
        height = self._dag.height
        place = bisect_left(rest.ids, (height(id), id), key=lambda one: (height(one), one))
        return place if place < len(rest.ids) and rest.ids[place] == id else -1


class Told(Protocol):
    """What a peer last told of its state."""

    @property
    def heads(self) -> tuple[EventId, ...]:
        """The peer's heads."""

    @property
    def events(self) -> int:
        """The number of events that it has."""


T = TypeVar("T", bound=Told)


class Session:
    """One synchronisation with one peer."""

    __slots__ = ("again", "known", "number", "reconciler", "request")

    def __init__(self, number: int) -> None:
        self.number = number
        self.request: int | None = None
        """The number of the request that awaits an answer."""
        self.reconciler: Reconciler | None = None
        self.known = -1
        """How many events we knew at the last request: a page that adds none ends the walk."""
        self.again = False
        """Whether the peer has told new heads meanwhile, to be compared when the session is over."""


class TopicSync(ABC, Generic[T]):
    """Synchronises one topic with other nodes, in one session for each peer."""

    def __init__(self, topic: TopicId, ours: PeerId, dag: Dag, ids: SortedIds, out: Outbox) -> None:
        self._topic = topic
        self._ours = ours
        self._dag = dag
        self._ids = ids
        self._out = out
        self._sessions: dict[PeerId, Session] = {}
        self._answering: dict[PeerId, tuple[int, Reconciler]] = {}
        self._number = 0

    @abstractmethod
    def make_timer(self, peer: PeerId) -> SetTimer[Timer]:
        """Return the timer of a session, and the delay without progress after which the session is over."""

    @property
    def busy(self) -> bool:
        """Whether a session is in progress."""
        return bool(self._sessions)

    @property
    def heads(self) -> tuple[EventId, ...]:
        """The heads that we tell others; shown ones first, or hidden ones could crowd them out."""
        return tuple(dict.fromkeys((*self._dag.heads, *self._dag.all_heads)))[:HEADS_PER_MESSAGE]

    def awaits(self, peer: PeerId, request: int) -> bool:
        """Return whether a page of a walk answers our open request."""
        session = self._sessions.get(peer)
        return session is not None and session.request == request

    def compare(self, peer: PeerId, told: T) -> None:
        """Begin a session with a peer that told heads that we lack."""
        if all(self._dag.satisfies(head) for head in told.heads):
            return
        session = self._sessions.get(peer)
        if session is not None:
            session.again = True
            return
        self._number += 1
        # Both ends may begin a session at the same time, so their numbers must differ.
        session = self._sessions[peer] = Session(2 * self._number + (self._ours > peer))
        self._walk(peer, session)

    def handle_further(self, peer: PeerId, page: Further, told: T | None) -> None:
        """Continue the session after a page of the heads walk was taken in."""
        session = self._sessions.get(peer)
        if session is None or session.request != page.request:
            return
        if told is not None and page.unknown and self._plan(page, told) is Way.RECONCILE:
            self._reconcile(peer, session)
        elif page.more and len(self._dag) > session.known:
            self._walk(peer, session)
        else:
            self._end(peer, told)

    def handle_reconcile(self, peer: PeerId, message: Reconcile, told: T | None) -> tuple[EventId, ...]:
        """Answer a step of reconciliation, in a session of either side; return the ids that we lack."""
        session = self._sessions.get(peer)
        reconciler = None
        if session is not None and session.number == message.session:
            reconciler = session.reconciler
        ours = reconciler is not None
        if reconciler is None and message.session % 2 == (self._ours > peer):
            self._reject(peer, Reason.STALE)  # It was one of ours, and is over.
            return ()
        if reconciler is None:
            reconciler = self._answerer(peer, message.session)
        step = reconciler.answer(message)
        if step.reply is not None:
            self._out.send(peer, step.reply)
        if reconciler.failed is not None:
            self._reject(peer, reconciler.failed)
        if reconciler.done and ours:
            self._end(peer, told)
        elif reconciler.done:
            self._answering.pop(peer, None)
        elif ours:
            self._set_timer(peer)
        return tuple(each for each in step.need if not self._dag.satisfies(each))

    def handle_link_down(self, peer: PeerId) -> None:
        """End the session with a peer that is gone; the fetched events stay."""
        self._answering.pop(peer, None)
        if self._sessions.pop(peer, None) is not None:
            self._out.cancel_timer(self.make_timer(peer).timer)

    def handle_timeout(self, peer: PeerId) -> None:
        """End a session that made no progress for too long."""
        if self._sessions.pop(peer, None) is not None:
            note = "synchronisation"
            self._out.record(Record(Kind.DROPPED, self._topic, peer=peer, reason=Reason.TIMEOUT, note=note))

    def stop(self) -> None:
        """End all sessions: the topic is left."""
        for peer in list(self._sessions):
            self.handle_link_down(peer)

    def _answerer(self, peer: PeerId, number: int) -> Reconciler:
        known = self._answering.get(peer)
        if known is None or known[0] != number:
            known = self._answering[peer] = number, Reconciler(self._topic, number, self._ids)
        return known[1]

    def _walk(self, peer: PeerId, session: Session) -> None:
        self._number += 1
        session.request, session.known = self._number, len(self._dag)
        self._out.send(peer, Beyond(self._topic, session.request, self.heads))
        self._set_timer(peer)

    def _plan(self, page: Further, told: T) -> Way:
        unknown = sum(not self._dag.satisfies(head) for head in told.heads)
        ours = Standing(len(self._dag.all_heads), len(self._dag), len(page.unknown))
        return plan(ours, Standing(len(told.heads), told.events, unknown))

    def _reconcile(self, peer: PeerId, session: Session) -> None:
        session.request = None
        session.reconciler = Reconciler(self._topic, session.number, self._ids)
        self._out.send(peer, session.reconciler.begin())
        self._set_timer(peer)

    def _end(self, peer: PeerId, told: T | None) -> None:
        session = self._sessions.pop(peer)
        self._out.cancel_timer(self.make_timer(peer).timer)
        if session.again and told is not None:
            self.compare(peer, told)

    def _reject(self, peer: PeerId, reason: Reason) -> None:
        self._out.record(Record(Kind.REJECTED, self._topic, peer=peer, reason=reason, note="reconciliation"))

    def _set_timer(self, peer: PeerId) -> None:
        set_timer = self.make_timer(peer)
        self._out.set_timer(set_timer.delay, set_timer.timer)
