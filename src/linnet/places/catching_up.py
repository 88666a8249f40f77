"""What a guest lacks: fragments, asked for one by one, and the state, asked for as a whole.

Toth 2013, sections 3.8 and 4.4.5. A state is taken from anybody, if its hash is one that the voice signed.
"""

from __future__ import annotations

from typing import TypeAlias

from linnet.core.effects import Blame, CancelTimer, Send, SetTimer
from linnet.core.errors import RemoteError
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.places.channel.ordering import NotTaken, Outcome
from linnet.places.channel.sync import Delta, Full, Pages, Unknown
from linnet.places.messages import AskState, Code, Replay, Replayed, StateIs
from linnet.places.parts import Parts
from linnet.trace.records import Kind, Record

OWNER = "place.catching-up"

CatchingUpEffect: TypeAlias = Send[Replay | AskState] | SetTimer[Tick] | CancelTimer[Tick] | Record | Blame


class CatchingUp:
    """Questions of one node about one place."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._tick = Tick(OWNER, "missing", parts.id)
        self._set_at: float | None = None
        self._request = 0
        self._asked: PeerId | None = None
        self._deadline = 0.0
        self._pages = Pages(parts.config)
        self._full: tuple[Full, PeerId] | None = None
        """A state whose hash is not known yet, and who told it."""
        self._again_at: float | None = None
        """When to ask once more, since whoever was asked could not tell."""

    def due(self, now: float) -> list[CatchingUpEffect]:
        """The questions that are due, and when to look again."""
        parts = self._parts
        effects: list[CatchingUpEffect] = [*self._mend(now)]
        lacks_state = bool(parts.order.missing) or parts.order.is_lost
        if parts.missing.is_idle and self._asked is None and not lacks_state:
            self._again_at = None
            return effects  # most often none
        found = parts.missing.due(now)
        effects += found.records
        effects += [Send(each.peer, each.message) for each in found.questions]
        for first, last in parts.missing.closed:
            parts.fragments.pass_over(first, last)
        if self._asked is not None and self._deadline <= now:
            note = "no answer about the state"
            effects.append(Record(Kind.DROPPED, parts.id, peer=self._asked, reason=Reason.TIMEOUT, note=note))
            self._asked = None
            effects += self.ask_state(now)
        if self._again_at is not None and self._again_at <= now:
            self._again_at = None
            effects += self.ask_state(now) if lacks_state else []
        if lacks_state and self._asked is None and self._again_at is None:
            self._again_at = now + parts.config.replay_timeout  # unless it comes by itself
        waits = (parts.missing.next_at(), self._deadline if self._asked else None, self._again_at)
        at = min((each for each in waits if each is not None), default=None)
        if at is None:
            return effects
        return [*effects, SetTimer(max(0.0, at - now), self._tick)]

    def replayed(self, peer: PeerId, answer: Replayed, now: float) -> list[CatchingUpEffect]:
        """An answer that brings nothing, or brought something false."""
        code = Code.INTERNAL_ERROR if answer.code is Code.OK else answer.code
        try:
            record = self._parts.missing.answered(peer, answer.request, code, now)
        except RemoteError as error:
            note = error.detail[:200]
            surplus = Record(Kind.REJECTED, self._parts.id, peer=peer, reason=error.reason, note=note)
            return [surplus, Blame(peer, error.reason)]
        return [] if record is None else [record]

    def _mend(self, now: float) -> list[Record]:
        """What our disk gives back no more is asked for again, of those below us if nobody is above."""
        parts = self._parts
        records: list[Record] = []
        for row in parts.fragments.take_unreadable():
            parts.missing.want(row.message, row.offset)
            note = f"fragment {row.fragment} of our log"
            records.append(Record(Kind.DROPPED, parts.id, row.event, reason=Reason.DAMAGED, note=note))
        if parts.missing.is_wishing and not parts.tree.upstreams:
            for peer in parts.tree.downstreams:
                parts.missing.connect(peer, now)
        return records

    def put_back(self, seconds: float) -> None:
        """The clock was put back by so many seconds: what is to come is as far away as before."""
        self._deadline -= seconds
        self._again_at = None if self._again_at is None else self._again_at - seconds

    def ask_state(self, now: float) -> list[CatchingUpEffect]:
        """Ask an upstream for the state, each in turn."""
        upstreams = self._parts.tree.upstreams
        if self._asked is not None or not upstreams:
            return []
        self._again_at = None
        self._request += 1
        self._asked = upstreams[self._request % len(upstreams)]
        self._deadline = now + 2 * self._parts.config.replay_timeout
        self._pages = Pages(self._parts.config)
        return [Send(self._asked, AskState(self._parts.id, self._request, self._parts.order.applied))]

    def told_state(
        self, peer: PeerId, page: StateIs, now: float
    ) -> tuple[list[Outcome], list[CatchingUpEffect]]:
        """A page of somebody's answer; what it did to our state."""
        if peer != self._asked or page.request != self._request:
            note = "a state that nobody asked for"
            return [], [Record(Kind.REJECTED, self._parts.id, peer=peer, reason=Reason.SURPLUS, note=note)]
        try:
            plan = self._pages.add(page)
        except RemoteError as error:
            self._asked = None
            note = f"state: {error.detail}"[:200]
            record = Record(Kind.REJECTED, self._parts.id, peer=peer, reason=error.reason, note=note)
            return [], [record, Blame(peer, error.reason), *self.ask_state(now)]
        if plan is None:
            return [], []
        self._asked = None
        if isinstance(plan, Unknown):
            self._again_at = now + self._parts.config.replay_timeout
            note = "it cannot tell the state"
            return [], [Record(Kind.DROPPED, self._parts.id, peer=peer, reason=plan.reason, note=note)]
        outcomes = [outcome for each in plan.replay for outcome in self._wanted(each)]
        if isinstance(plan, Delta):
            return outcomes, []
        self._full = plan, peer
        if self._parts.order.hash_of(plan.message) is None:
            outcomes += self._wanted(plan.message)
        settled, effects = self.settle(now)
        return [*outcomes, *settled], effects

    def _wanted(self, message: int) -> list[Outcome]:
        """A change of state that we need: asked for, unless it is here and only has to be taken again."""
        if self._parts.fragments.get_at(message, 0) is None:
            self._parts.missing.want(message)
            return []
        return self._parts.recall_state(message)

    def settle(self, now: float) -> tuple[list[Outcome], list[CatchingUpEffect]]:
        """Take the state that waits for its hash, if that is known by now."""
        order = self._parts.order
        if self._full is None:
            return [], []
        full, peer = self._full
        expected = order.hash_of(full.message)
        if expected is None:
            return [], []
        self._full = None
        outcomes = order.full(full.message, full.data, expected)
        if any(isinstance(each, NotTaken) and each.message == full.message for each in outcomes):
            reason = Reason.STATE_MISMATCH
            note = f"not the state as of message {full.message}"
            record = Record(Kind.REJECTED, self._parts.id, peer=peer, reason=reason, note=note)
            return outcomes, [record, Blame(peer, reason), *self.ask_state(now)]
        return outcomes, []
