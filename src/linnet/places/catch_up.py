"""Fetches what a guest lacks: fragments one by one, and the state as a whole.

Toth 2013, sections 3.8 and 4.4.5. A participant's state is brought up to date by the whole state or by the
changes that it missed, whichever is less. The whole state is the one last verified by a signed hash. It may
come from any peer, since the receiver checks it against the same hash; missed changes are replayed as the
signed messages themselves. Only guests are sent state, and only with messages that they may replay.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from linnet.core.errors import RemoteError
from linnet.core.ids import AuthorId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.places.channel.membership import Verdict
from linnet.places.channel.state_order import NotTaken, Outcome, StateOrder, Step
from linnet.places.config import PlacesConfig
from linnet.places.messages import STATE_PAGE_BYTES, AskState, Code, Replayed, StateIs
from linnet.places.multicast.fragment_repair import Question
from linnet.places.place_setup import Parts, PlaceTimer
from linnet.trace.records import Kind

_ENCODED = 7
"""The most times larger that an encoding is than the state: a variable of two bytes gets twelve more."""


class Full(Struct, frozen=True):
    """The state as of a message, and the messages that changed it since."""

    message: int
    data: bytes
    replay: tuple[int, ...]
    cost: int


class Delta(Struct, frozen=True):
    """The missing messages that change state."""

    replay: tuple[int, ...]
    cost: int


class Unknown(Struct, frozen=True):
    """An answer that we cannot help: another peer has to be asked."""

    reason: Reason = Reason.NOT_HELD


Plan: TypeAlias = Full | Delta | Unknown


def plan(order: StateOrder, known: int) -> Plan:
    """Plan how to bring a peer up to date whose last state message is `known`; 0: it has none."""
    delta, full = plan_delta(order, known), plan_full(order, known)
    if delta is None:
        return full or Unknown()
    return delta if full is None or delta.cost <= full.cost else full


def plan_delta(order: StateOrder, known: int) -> Delta | None:
    """Plan it by replay alone; None if we do not hold all of it, or `known` is no message of our line."""
    steps = order.steps
    resets = [at for at, step in enumerate(steps) if step.delta == 0]
    if resets and known < steps[resets[-1]].message:
        return _delta(steps[resets[-1] :])
    if known >= order.applied and (known or not order.applied):
        return _delta(())
    if known == order.base or any(step.message == known for step in steps):
        return _delta(tuple(step for step in steps if step.message > known))
    return None


def plan_full(order: StateOrder, known: int) -> Full | None:
    """Plan it with the signed state; None if there is none, or the peer has a later one."""
    state = order.signed_state()
    if state is None or order.signed <= known:
        return None
    data = state.encode()
    later = [step for step in order.steps if step.message > order.signed]
    cost = len(data) + sum(step.cost for step in later)
    return Full(order.signed, data, tuple(step.message for step in later), cost)


def _delta(steps: tuple[Step, ...]) -> Delta:
    return Delta(tuple(step.message for step in steps), sum(step.cost for step in steps))


def pages(place: TopicId, request: int, planned: Plan) -> list[StateIs]:
    """Return the answer to `AskState`, in pages that fit a message."""
    if isinstance(planned, Unknown):
        return [StateIs(place, request, 0, (), 0, b"", True, planned.reason)]
    if isinstance(planned, Delta):
        return [StateIs(place, request, 0, planned.replay, 0, b"", True, None)]
    data = planned.data
    found: list[StateIs] = []
    for offset in range(0, max(len(data), 1), STATE_PAGE_BYTES):
        page = data[offset : offset + STATE_PAGE_BYTES]
        done = offset + STATE_PAGE_BYTES >= len(data)
        replay = planned.replay if done else ()
        found.append(StateIs(place, request, planned.message, replay, offset, page, done, None))
    return found


class Pages:
    """Joins the pages of one answer, in their order. After a `RemoteError`, ask again."""

    def __init__(self, limits: PlacesConfig | None = None) -> None:
        self._most = (limits or PlacesConfig()).state_bytes * _ENCODED
        self._message: int | None = None
        self._data = bytearray()

    def add(self, page: StateIs) -> Plan | None:
        """Add a page; return the whole answer with the last one."""
        if page.reason is not None:
            return Unknown(page.reason)
        if self._message not in (None, page.message) or page.offset != len(self._data):
            raise RemoteError(Reason.MALFORMED, f"a page at {page.offset} instead of {len(self._data)}")
        if len(self._data) + len(page.data) > self._most:
            raise RemoteError(Reason.TOO_LARGE, "a state of more bytes than one may have")
        if not page.message and page.data:
            raise RemoteError(Reason.MALFORMED, "a state as of no message")
        if not page.done and not page.data:
            raise RemoteError(Reason.MALFORMED, "an empty page that is not the last")
        self._message = page.message
        self._data += page.data
        if not page.done:
            return None
        if not page.message:
            return Delta(page.replay, 0)
        return Full(page.message, bytes(self._data), page.replay, len(self._data))


class QuestionsDue(PlaceTimer, frozen=True, gc=False):
    """A timer: questions about what a place lacks are due, for the first time or again."""


class CatchUp:
    """The questions of one node about what it lacks of one place."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._request = 0
        self._asked: PeerId | None = None
        self._deadline = 0.0
        self._pages = Pages(parts.config)
        self._full: tuple[Full, PeerId] | None = None
        """A state that waits for its signed hash to be known, and the peer that sent it."""
        self._again_at: float | None = None
        """When to ask again, after the peer that was asked could not answer."""

    def ask_due(self, now: float) -> None:
        """Send the questions that are due, and set the timer for the next ones."""
        for question in self.take_due(now):
            self._parts.out.send(question.peer, question.message)

    def take_due(self, now: float) -> list[Question]:
        """Return the questions that are due, for the caller to send, and set the timer for the next ones."""
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
            self._parts.record(Kind.DROPPED, self._asked, Reason.TIMEOUT, "no answer about the state")
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
            self._parts.out.set_timer(max(0.0, at - now), QuestionsDue(parts.id))
        return questions

    def handle_refusal(self, peer: PeerId, answer: Replayed, now: float) -> None:
        """Note an answer that brings nothing, or something false."""
        code = Code.INTERNAL_ERROR if answer.code is Code.OK else answer.code
        try:
            self._parts.fragment_repair.handle_answer(peer, answer.request, code, now)
        except RemoteError as error:
            self._parts.record(Kind.REJECTED, peer, error.reason, error.detail[:200])
            self._parts.out.blame(peer, error.reason)

    def _mend(self, now: float) -> None:
        """Want the fragments that our disk lost; ask the downstreams for them if there is no upstream."""
        parts = self._parts
        for row in parts.fragments.take_unreadable():
            parts.fragment_repair.want(row.message, row.offset)
            note = f"fragment {row.fragment} of our log"
            parts.record(Kind.DROPPED, None, Reason.DAMAGED, note, row.event)
        if parts.fragment_repair.is_wishing and not parts.tree.upstreams:
            for peer in parts.tree.downstreams:
                parts.fragment_repair.connect(peer, now)

    def put_back(self, seconds: float) -> None:
        """Shift the stored times by the seconds that the clock went back, so that nothing is due later."""
        self._deadline -= seconds
        self._again_at = None if self._again_at is None else self._again_at - seconds

    def ask_state(self, now: float) -> None:
        """Ask an upstream for the state, each in turn."""
        for question in self._take_state_question(now):
            self._parts.out.send(question.peer, question.message)

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
        """Take a page of a peer's answer; return its effects on our state, and the peer's fault if any."""
        if peer != self._asked or page.request != self._request:
            self._parts.record(Kind.REJECTED, peer, Reason.SURPLUS, "a state that nobody asked for")
            return [], None
        try:
            plan = self._pages.add(page)
        except RemoteError as error:
            self._asked = None
            self._blame(peer, error.reason, f"state: {error.detail}")
            self.ask_state(now)
            return [], error.reason
        if plan is None:
            return [], None
        self._asked = None
        if isinstance(plan, Unknown):
            self._again_at = now + self._parts.config.replay_timeout
            self._parts.record(Kind.DROPPED, peer, plan.reason, "it cannot tell the state")
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
        """Return the outcomes of a change of state that we hold, or ask for it if we do not."""
        if self._parts.fragments.get_at(message, 0) is None:
            self._parts.fragment_repair.want(message)
            return []
        return self._parts.recall_state(message)

    def settle_state(self, now: float) -> tuple[list[Outcome], Reason | None]:
        """Take the state that waits for its hash, if the hash is known by now; return its effects on our
        state, and the fault to blame its sender for."""
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
        self._parts.record(Kind.REJECTED, peer, reason, note)
        self._parts.out.blame(peer, reason)


def tell_state(parts: Parts, peer: PeerId, ask: AskState) -> list[StateIs]:
    """Return the pages that answer a question about the state. A keeper has no state, and gets none."""
    nym = parts.tree.downstreams.get(peer)
    if parts.keeps or nym is None or not parts.is_guest(nym):
        reason = Reason.UNSUPPORTED if parts.keeps else Reason.NOT_A_MEMBER
        return [StateIs(parts.id, ask.request, 0, (), 0, b"", True, reason)]
    planned = plan(parts.order, ask.state)
    if not _may_replay(parts, nym, planned):
        planned = plan_full(parts.order, ask.state) or Unknown()
    if not _may_replay(parts, nym, planned):
        planned = Unknown()
    return pages(parts.id, ask.request, planned)


def _may_replay(parts: Parts, nym: AuthorId, planned: Plan) -> bool:
    """Return whether a guest may see all messages that the plan tells it to ask for."""
    if isinstance(planned, Unknown):
        return True
    rows = [parts.fragments.get_at(message, 0) for message in planned.replay]
    return all(
        row is not None and parts.membership.test(nym, row.message, row.generation) is Verdict.YES
        for row in rows
    )
