"""Catching up with another member: whatever one of two has and the other lacks, found and fetched.

Each side compares the heads that the other told with its own. What is unknown is fetched by the heads
walk, or by set reconciliation where both have gone on apart (`linnet.delivery.plan`). A session is bounded
by a timer that progress pushes on; whatever it has brought stays, and the next one goes on from there.
"""

from __future__ import annotations

from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.delivery.causal_messages import Beyond, Further, Reconcile
from linnet.delivery.dag import Dag
from linnet.delivery.plan import Standing, Way, plan
from linnet.delivery.reconcile import Reconciler
from linnet.delivery.sorted_ids import SortedIds
from linnet.identity.cards import Card
from linnet.machine.outbox import Outbox
from linnet.rooms.access.control_dag import ControlDag
from linnet.rooms.config import RoomsConfig
from linnet.rooms.guests import Guest
from linnet.rooms.messages import AskControl
from linnet.trace.records import Kind, Record

_HEADS = 256


class SyncDue(Timer, frozen=True, gc=False):
    """A synchronisation with a peer has made no progress for too long."""

    room: TopicId
    peer: PeerId


class Session:
    """One synchronisation with one peer."""

    __slots__ = ("again", "known", "number", "reconciler", "request")

    def __init__(self, number: int) -> None:
        self.number = number
        self.request: int | None = None
        """The question that is open."""
        self.reconciler: Reconciler | None = None
        self.known = -1
        """How much we knew when we asked last: a page that brought nothing ends the walk."""
        self.again = False
        """Whether heads were told meanwhile that are to be compared when this is over."""


class Sync:
    """All synchronisations of one room."""

    def __init__(
        self,
        room: TopicId,
        ours: PeerId,
        config: RoomsConfig,
        control: ControlDag,
        dag: Dag,
        ids: SortedIds,
        out: Outbox,
    ) -> None:
        self._room = room
        self._ours = ours
        self._config = config
        self._control = control
        self._dag = dag
        self._ids = ids
        self._out = out
        self._sessions: dict[PeerId, Session] = {}
        self._answering: dict[PeerId, tuple[int, Reconciler]] = {}
        self._number = 0

    @property
    def busy(self) -> bool:
        """Whether something is being fetched."""
        return bool(self._sessions)

    @property
    def heads(self) -> tuple[EventId, ...]:
        """What we tell of how far we are: shown heads first, or others could crowd them out."""
        return tuple(dict.fromkeys((*self._dag.heads, *self._dag.all_heads)))[:_HEADS]

    def awaits(self, peer: PeerId, request: int) -> bool:
        """Whether a page of a walk answers the question that is open."""
        session = self._sessions.get(peer)
        return session is not None and session.request == request

    def compare(self, peer: PeerId, guest: Guest) -> None:
        """Fetch what a member has beyond our heads, by the heads that it told."""
        if any(not self._is_control(head) for head in guest.control):
            self.ask_control(peer)
        unknown = sum(not self._dag.satisfies(head) for head in guest.heads)
        if guest.relay or not unknown:
            return
        session = self._sessions.get(peer)
        if session is not None:
            session.again = True
            return
        self._number += 1
        # Both ends may begin a session at the same time, so their numbers must differ.
        session = self._sessions[peer] = Session(2 * self._number + (self._ours > peer))
        self._walk(peer, session)

    def handle_further(self, peer: PeerId, page: Further, guest: Guest | None) -> None:
        """Go on after a page of a walk, which was taken in."""
        session = self._sessions.get(peer)
        if session is None or session.request != page.request:
            return
        if guest is not None and page.unknown and self._plan(page, guest) is Way.RECONCILE:
            self._reconcile(peer, session)
        elif page.more and len(self._dag) > session.known:
            self._walk(peer, session)
        else:
            self._end(peer, guest)

    def handle_reconcile(self, peer: PeerId, message: Reconcile, guest: Guest) -> tuple[EventId, ...]:
        """Answer a step of reconciliation, of a session of ours or of theirs; what it shows that we lack."""
        session = self._sessions.get(peer)
        reconciler = None
        if session is not None and session.number == message.session:
            reconciler = session.reconciler
        ours = reconciler is not None
        if reconciler is None and message.session % 2 == (self._ours > peer):
            reason, note = Reason.STALE, "reconciliation"  # It was one of ours, and is over.
            self._out.record(Record(Kind.REJECTED, self._room, peer=peer, reason=reason, note=note))
            return ()
        if reconciler is None:
            reconciler = self._answerer(peer, message.session)
        step = reconciler.answer(message)
        if step.reply is not None:
            self._out.send(peer, step.reply)
        if reconciler.failed is not None:
            note = "reconciliation"
            self._out.record(
                Record(Kind.REJECTED, self._room, peer=peer, reason=reconciler.failed, note=note)
            )
        if reconciler.done and ours:
            self._end(peer, guest)
        elif reconciler.done:
            self._answering.pop(peer, None)
        elif ours:
            self._set_timer(peer)
        return tuple(each for each in step.need if not self._dag.satisfies(each))

    def _answerer(self, peer: PeerId, number: int) -> Reconciler:
        known = self._answering.get(peer)
        if known is None or known[0] != number:
            known = self._answering[peer] = number, Reconciler(self._room, number, self._ids)
        return known[1]

    def ask_control(
        self, peer: PeerId, card: Card | None = None, heads: tuple[EventId, ...] | None = None
    ) -> None:
        """Ask for the next page of control events; with our card, if we are not a member there.

        From where we are now, or from the heads that may be told.
        """
        self._number += 1
        beyond = self._control.heads if heads is None else heads
        self._out.send(peer, AskControl(self._room, self._number, beyond[:_HEADS], None, card))

    def handle_link_down(self, peer: PeerId) -> None:
        """End the session with a peer that is gone; what was fetched stays."""
        self._answering.pop(peer, None)
        if self._sessions.pop(peer, None) is not None:
            self._out.cancel_timer(SyncDue(self._room, peer))

    def handle_timeout(self, peer: PeerId) -> None:
        """End a session that made no progress for too long."""
        if self._sessions.pop(peer, None) is not None:
            note = "synchronisation"
            self._out.record(Record(Kind.DROPPED, self._room, peer=peer, reason=Reason.TIMEOUT, note=note))

    def stop(self) -> None:
        """End all sessions: the room is left."""
        for peer in list(self._sessions):
            self.handle_link_down(peer)

    def _walk(self, peer: PeerId, session: Session) -> None:
        self._number += 1
        session.request, session.known = self._number, len(self._dag)
        self._out.send(peer, Beyond(self._room, session.request, self.heads))
        self._set_timer(peer)

    def _plan(self, page: Further, guest: Guest) -> Way:
        unknown = sum(not self._dag.satisfies(head) for head in guest.heads)
        heads = self._dag.all_heads
        ours = Standing(len(heads), len(self._dag), len(page.unknown))
        return plan(ours, Standing(len(guest.heads), guest.events, unknown))

    def _reconcile(self, peer: PeerId, session: Session) -> None:
        session.request = None
        session.reconciler = Reconciler(self._room, session.number, self._ids)
        self._out.send(peer, session.reconciler.begin())
        self._set_timer(peer)

    def _end(self, peer: PeerId, guest: Guest | None) -> None:
        session = self._sessions.pop(peer)
        self._out.cancel_timer(SyncDue(self._room, peer))
        if session.again and guest is not None:
            self.compare(peer, guest)

    def _is_control(self, event: EventId) -> bool:
        return self._control.knows(event) or self._control.is_rejected(event)

    def _set_timer(self, peer: PeerId) -> None:
        self._out.set_timer(self._config.sync_timeout, SyncDue(self._room, peer))
