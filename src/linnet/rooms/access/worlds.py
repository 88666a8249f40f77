"""A room as it is without the events that revocations silence (docs/adr/0025).

What a revoked device said out of time is in the DAG, and others may have built on it before they knew. In
its world none of that was ever there: who named a silenced event as a control head followed the heads of
that one instead, and what is not allowed then is not there either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import immutables
from msgspec import Struct

from linnet.core.ids import EventId
from linnet.rooms.access.chains import Chains
from linnet.rooms.access.facts import CREATE_KEY, Fact, State
from linnet.rooms.access.remembering import Remembered
from linnet.rooms.access.resolution import Resolver
from linnet.rooms.access.revocations import Revocations
from linnet.rooms.access.selection import select_in_room
from linnet.rooms.access.verdict import Refusal
from linnet.rooms.content import Member, Membership

Ask = Callable[[Fact, State], Refusal | None]
"""Whether a state allows an event."""

_STATES = 1024


class Step(Struct, frozen=True, gc=False):
    """What became of the room by an event."""

    after: State
    auth: tuple[EventId, ...]
    replaced: EventId | None
    time: int


class Steps:
    """The steps of all events in all worlds, each worked out once.

    An event's step depends on the silenced events in its own past and on no others, so worlds share them.
    """

    def __init__(
        self, create: Fact, facts: dict[EventId, Fact], past: Chains, revocations: Revocations, ask: Ask
    ) -> None:
        self.create = create
        self.facts = facts
        self.past = past
        self.revocations = revocations
        self.ask = ask
        start: State = immutables.Map({CREATE_KEY: create.id})
        self._known: dict[tuple[EventId, int], Step | None] = {
            (create.id, 0): Step(start, (), None, create.time)
        }

    def known(self, event: EventId, silenced: int) -> bool:
        """Whether the step was worked out."""
        return (event, silenced & self.past.mask(event)) in self._known

    def get(self, event: EventId, silenced: int) -> Step | None:
        """The step; None if the event is not there in this world. `KeyError` if it was not worked out."""
        return self._known[event, silenced & self.past.mask(event)]

    def put(self, event: EventId, silenced: int, step: Step | None) -> None:
        """It is worked out now."""
        self._known[event, silenced & self.past.mask(event)] = step


class World:
    """The room without these events."""

    def __init__(self, steps: Steps, silenced: int) -> None:
        self._steps = steps
        self._silenced = silenced
        self._resolver = Resolver(
            steps.create, steps.facts.get, self.auth_of, time_of=self.time_of, causality=self
        )
        self.mainline = self._resolver.mainline
        self._states: Remembered[tuple[EventId, ...], State] = Remembered(_STATES)

    def state_at(self, heads: Sequence[EventId]) -> State:
        """The state that holds after these events, all of which are in the DAG."""
        return self._state(heads)

    def tops(self, heads: Iterable[EventId]) -> tuple[EventId, ...]:
        """The heads in this world, without those that others follow.

        What came later is never resolved against its past.
        """
        past, below = self._steps.past, 0
        there = sorted(self._there(heads))
        for head in there:
            below |= past.mask(head) & ~past.bit(head)
        return tuple(head for head in there if not past.bit(head) & below)

    def auth_of(self, event: EventId) -> tuple[EventId, ...]:
        """The events that authorise an event, and the one that it replaced; none if it is not there."""
        step = self._get(event)
        return () if step is None else step.auth

    def time_of(self, event: EventId) -> int:
        """The event's time, but later than all that it follows: what resolution sorts by."""
        step = self._get(event)
        return self._steps.facts[event].time if step is None else step.time

    def time_at(self, time: int, heads: Iterable[EventId]) -> int:
        """The same for any event with this time and these control heads."""
        return max(time, 1 + max((self.time_of(head) for head in self._there(heads)), default=-1))

    def is_before(self, event: EventId, other: EventId) -> bool:
        """Whether the other follows the event, in however many steps along control heads."""
        return event != other and self._steps.past.reaches(other, event)

    def replaced_by(self, event: EventId) -> EventId | None:
        """What stood in the event's place where it came; None too for an event that is not in this world."""
        step = self._get(event)
        return None if step is None else step.replaced

    def follows_a_join(self, event: EventId) -> bool:
        """Whether a membership came, in however many steps, after one by which its person was in the room."""
        before = self.replaced_by(event)
        while before is not None:
            content = self._steps.facts[before].content
            if isinstance(content, Member) and content.membership is Membership.JOIN:
                return True
            before = self.replaced_by(before)
        return False

    def _get(self, event: EventId) -> Step | None:
        if self._silenced and self._steps.past.bit(event) & self._silenced:
            return None
        try:
            return self._steps.get(event, self._silenced)
        except KeyError:
            self._work_out((event,))
            return self._steps.get(event, self._silenced)

    def _there(self, heads: Iterable[EventId]) -> dict[EventId, None]:
        """These, with what they followed in the place of those that are not in this world."""
        there: dict[EventId, None] = {}
        waiting = list(heads)
        seen = dict.fromkeys(waiting)
        while waiting:
            head = waiting.pop()
            if self._get(head) is not None:
                there[head] = None
                continue
            followed = [one for one in self._steps.facts[head].control if one not in seen]
            seen |= dict.fromkeys(followed)
            waiting += followed
        return there

    def _work_out(self, heads: Iterable[EventId]) -> None:
        """Every step up to these. In nearly all rooms they are known since the events came."""
        steps, silenced = self._steps, self._silenced
        waiting = [head for head in heads if not steps.known(head, silenced)]
        absent = dict.fromkeys(waiting)
        while waiting:
            followed = steps.facts[waiting.pop()].control
            new = [one for one in followed if one not in absent and not steps.known(one, silenced)]
            absent |= dict.fromkeys(new)
            waiting += new
        for event in steps.past.events(steps.past.bits(absent)):
            steps.put(event, silenced, self._worked_out(event))

    def _worked_out(self, event: EventId) -> Step | None:
        past, fact = self._steps.past, self._steps.facts[event]
        if past.bit(event) & self._silenced:
            return None
        heads = self._there(fact.control)
        before = self._state(fact.control)
        if past.mask(event) & self._silenced and self._steps.ask(fact, before) is not None:
            return None
        time = max(fact.time, 1 + max((self.time_of(head) for head in heads), default=-1))
        after = before.set(fact.place, event)
        return Step(after, select_in_room(fact, before), before.get(fact.place), time)

    def _state(self, heads: Iterable[EventId]) -> State:
        named = tuple(heads)
        tops = self.tops(named)
        steps = [step for top in tops if (step := self._get(top)) is not None]
        if len(steps) == 1 and not self._silenced:
            return steps[0].after
        state = self._states.get(tops)
        if state is None:
            state = self._resolver.resolve([step.after for step in steps])
            self._states.put(tops, state)
        return self._with_revocations(state, named)

    def _with_revocations(self, state: State, heads: tuple[EventId, ...]) -> State:
        """A revocation stands whatever else is resolved: else who is put out meanwhile loses it."""
        past = self._steps.past
        for place, event in self._steps.revocations.places(past.union(heads) & ~self._silenced).items():
            if place not in state:
                state = state.set(place, event)
        return state
