"""What a guest lacks: fragments, asked for one by one, and the state, asked for as a whole.

Toth 2013, sections 3.8 and 4.4.5. A state is taken from anybody, if its hash is one that the voice signed. It
is told to guests alone, and only what they may replay for it.
"""

from __future__ import annotations

from linnet.core.errors import RemoteError
from linnet.core.ids import AuthorId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.machine.outbox import Outbox
from linnet.places.channel import state_sync
from linnet.places.channel.membership import Verdict
from linnet.places.channel.state_order import NotTaken, Outcome
from linnet.places.channel.state_sync import Delta, Full, Pages, Unknown
from linnet.places.messages import AskState, Code, Replayed, StateIs
from linnet.places.multicast.fragment_repair import Question
from linnet.places.place_setup import Parts
from linnet.trace.records import Kind, Record


class QuestionsDue(Timer, frozen=True, gc=False):
    """It is time to ask for what is missing in a place, or once more."""

    place: TopicId


class CatchUp:
    """Questions of one node about one place."""

    def __init__(self, parts: Parts, out: Outbox) -> None:
        self._parts = parts
        self._out = out
        self._request = 0
        self._asked: PeerId | None = None
        self._deadline = 0.0
        self._pages = Pages(parts.config)
        self._full: tuple[Full, PeerId] | None = None
        """A state whose hash is not known yet, and who told it."""
        self._again_at: float | None = None
        """When to ask once more, since whoever was asked could not tell."""

    def ask_due(self, now: float) -> None:
        """Ask the questions that are due, and look again in time."""
        for question in self.take_due(now):
            self._out.send(question.peer, question.message)

    def take_due(self, now: float) -> list[Question]:
        """Take the questions that are due, for a caller that asks them, and look again in time."""
        parts = self._parts
        self._mend(now)
        lacks_state = bool(parts.order.missing) or parts.order.is_lost
        if parts.fragment_repair.is_idle and self._asked is None and not lacks_state:
            self._again_at = None
            return []  # most often
        questions = parts.fragment_repair.take_due(now)
        for first, last in parts.fragment_repair.closed:
            parts.fragments.pass_over(first, last)
        if self._asked is not None and self._deadline <= now:
            note = "no answer about the state"
            self._record(Kind.DROPPED, self._asked, Reason.TIMEOUT, note)
            self._asked = None
            questions += self._take_state_question(now)
        if self._again_at is not None and self._again_at <= now:
            self._again_at = None
            if lacks_state:
                questions += self._take_state_question(now)
        if lacks_state and self._asked is None and self._again_at is None:
            self._again_at = now + parts.config.replay_timeout  # unless it comes by itself
        waits = (parts.fragment_repair.next_at(), self._deadline if self._asked else None, self._again_at)
        at = min((each for each in waits if each is not None), default=None)
        if at is not None:
            self._out.set_timer(max(0.0, at - now), QuestionsDue(parts.id))
        return questions

    def handle_refusal(self, peer: PeerId, answer: Replayed, now: float) -> None:
        """Note an answer that brings nothing, or brought something false."""
        code = Code.INTERNAL_ERROR if answer.code is Code.OK else answer.code
        try:
            self._parts.fragment_repair.handle_answer(peer, answer.request, code, now)
        except RemoteError as error:
            self._record(Kind.REJECTED, peer, error.reason, error.detail[:200])
            self._out.blame(peer, error.reason)

    def _mend(self, now: float) -> None:
        """Ask again for what our disk gives back no more, of those below us if nobody is above."""
        parts = self._parts
        for row in parts.fragments.take_unreadable():
            parts.fragment_repair.want(row.message, row.offset)
            note = f"fragment {row.fragment} of our log"
            self._out.record(Record(Kind.DROPPED, parts.id, row.event, reason=Reason.DAMAGED, note=note))
        if parts.fragment_repair.is_wishing and not parts.tree.upstreams:
            for peer in parts.tree.downstreams:
                parts.fragment_repair.connect(peer, now)

    def put_back(self, seconds: float) -> None:
        """The clock was put back by so many seconds: what is to come is as far away as before."""
        self._deadline -= seconds
        self._again_at = None if self._again_at is None else self._again_at - seconds

    def ask_state(self, now: float) -> None:
        """Ask an upstream for the state, each in turn."""
        for question in self._take_state_question(now):
            self._out.send(question.peer, question.message)

    def _take_state_question(self, now: float) -> list[Question]:
        upstreams = self._parts.tree.upstreams
        if self._asked is not None or not upstreams:
            return []
        self._again_at = None
        self._request += 1
        self._asked = upstreams[self._request % len(upstreams)]
        self._deadline = now + 2 * self._parts.config.replay_timeout
        self._pages = Pages(self._parts.config)
        ask = AskState(self._parts.id, self._request, self._parts.order.applied)
        return [Question(self._asked, ask)]

    def handle_state(self, peer: PeerId, page: StateIs, now: float) -> tuple[list[Outcome], Reason | None]:
        """Take a page of a peer's answer; what it did to our state, and what the peer is to be blamed for."""
        if peer != self._asked or page.request != self._request:
            self._record(Kind.REJECTED, peer, Reason.SURPLUS, "a state that nobody asked for")
            return [], None
        try:
            plan = self._pages.add(page)
        except RemoteError as error:
            self._asked = None
            self._blame(peer, error.reason, f"state: {error.detail}"[:200])
            self.ask_state(now)
            return [], error.reason
        if plan is None:
            return [], None
        self._asked = None
        if isinstance(plan, Unknown):
            self._again_at = now + self._parts.config.replay_timeout
            self._record(Kind.DROPPED, peer, plan.reason, "it cannot tell the state")
            return [], None
        outcomes = [outcome for each in plan.replay for outcome in self._wanted(each)]
        if isinstance(plan, Delta):
            return outcomes, None
        self._full = plan, peer
        if self._parts.order.hash_of(plan.message) is None:
            outcomes += self._wanted(plan.message)
        settled, fault = self.settle_state(now)
        return [*outcomes, *settled], fault

    def _wanted(self, message: int) -> list[Outcome]:
        """A change of state that we need: asked for, unless it is here and only has to be taken again."""
        if self._parts.fragments.get_at(message, 0) is None:
            self._parts.fragment_repair.want(message)
            return []
        return self._parts.recall_state(message)

    def settle_state(self, now: float) -> tuple[list[Outcome], Reason | None]:
        """Take the state that waits for its hash, if that is known by now; what it did to our state, and what
        the peer that told it is to be blamed for."""
        order = self._parts.order
        if self._full is None:
            return [], None
        full, peer = self._full
        expected = order.hash_of(full.message)
        if expected is None:
            return [], None
        self._full = None
        outcomes = order.full(full.message, full.data, expected)
        if any(isinstance(each, NotTaken) and each.message == full.message for each in outcomes):
            self._blame(peer, Reason.STATE_MISMATCH, f"not the state as of message {full.message}")
            self.ask_state(now)
            return outcomes, Reason.STATE_MISMATCH
        return outcomes, None

    def _blame(self, peer: PeerId, reason: Reason, note: str) -> None:
        self._record(Kind.REJECTED, peer, reason, note)
        self._out.blame(peer, reason)

    def _record(self, kind: Kind, peer: PeerId, reason: Reason, note: str) -> None:
        self._out.record(Record(kind, self._parts.id, peer=peer, reason=reason, note=note))


def tell_state(parts: Parts, peer: PeerId, ask: AskState) -> list[StateIs]:
    """The pages of the answer. A keeper has no state to tell, and is told none."""
    nym = parts.tree.downstreams.get(peer)
    if parts.keeps or nym is None or not parts.is_guest(nym):
        reason = Reason.UNSUPPORTED if parts.keeps else Reason.NOT_A_MEMBER
        return [StateIs(parts.id, ask.request, 0, (), 0, b"", True, reason)]
    planned = state_sync.plan(parts.order, ask.state)
    if not _may_replay(parts, nym, planned):
        planned = state_sync.plan_full(parts.order, ask.state) or state_sync.Unknown()
    if not _may_replay(parts, nym, planned):
        planned = state_sync.Unknown()
    return state_sync.pages(parts.id, ask.request, planned)


def _may_replay(parts: Parts, nym: AuthorId, planned: state_sync.Plan) -> bool:
    """Whether somebody may see all messages that it would be told to ask for."""
    if isinstance(planned, state_sync.Unknown):
        return True
    rows = [parts.fragments.get_at(message, 0) for message in planned.replay]
    return all(
        row is not None and parts.membership.test(nym, row.message, row.generation) is Verdict.YES
        for row in rows
    )
