"""The control DAG of one room, from which every member and every relay derives the same permissions.

Its events are create, membership, power, join rules, relays, retention and revocations, and its edges are the
control heads that each of them names. An event is allowed or not by the state at the heads that it names, so
a relay that has nothing but this DAG judges as a member does (docs/adr/0010).

A revocation silences every event of its device that is not in the revocation's own past: along control heads,
whatever times the events claim. Times are the author's word, and the author is a thief (docs/adr/0025).

A world is the room without the events that revocations silence. The silenced events of a revoked device are
in the DAG, and others may have built on them before they knew. In that world they never existed: an event
that named a silenced one as a control head follows the heads of that one instead, and an event that is then
not allowed does not exist there either.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeAlias, TypeVar

import immutables
from msgspec import Struct

from linnet.core.errors import InvalidEvent
from linnet.core.ids import AuthorId, DeviceId, EventId, TopicId
from linnet.core.reasons import Reason
from linnet.event.event import Event
from linnet.identity.cards import CardCheck, check_card
from linnet.rooms.auth.event_auth import Refusal, allowed, proven, select_in_room
from linnet.rooms.auth.room_state import CREATE_KEY, POWER_KEY, Fact, State, StateKey, View, fact_of
from linnet.rooms.auth.state_resolution import Chains, Resolver
from linnet.rooms.event_types import (
    CONTROL_KINDS,
    CREATE,
    MEMBER,
    RELAY,
    REVOCATION,
    ROOM_VERSION,
    Create,
    Member,
    Membership,
    Revoked,
    member_key,
)

NO_TOPIC = TopicId(bytes(32))
"""The topic of a create event, which cannot name itself."""

_WORLDS = 8
_STATES = 1024
_VIEWS = 64
_FACTS = 1024
_REJECTED = 10_000

HEADS_OF_ONE = 16
"""The most heads of one person: a device has one head at a time, and few people have more devices."""


class ControlDag:
    """The control events of a room, and the states that follow from them."""

    def __init__(
        self, create: Event, card_check: CardCheck = check_card, max_rejected: int = _REJECTED
    ) -> None:
        founding = _founding(create)
        self.room = TopicId(create.id)
        self.create = founding
        self._card_check = card_check
        self._facts = {create.id: founding}
        self._control: dict[EventId, tuple[EventId, ...]] = {create.id: ()}
        self.relay_keys: dict[str, None] = {}
        """The keys of all relays that were ever named."""
        self._heads: dict[EventId, None] = {create.id: None}
        self._sorted_heads: tuple[EventId, ...] | None = None
        self._current: State | None = None
        self._silenced: int | None = None
        self._past = Chains(self._control.__getitem__)
        self._past.mask(create.id)
        self._revocations = Revocations(self._past)
        self._revocations.add(founding)
        self._steps = Steps(founding, self._facts, self._past, self._revocations, self._allowed_in)
        self._whole = World(self._steps, 0)
        self._worlds: LruCache[int, World] = LruCache(_WORLDS)
        self._rejected: LruCache[EventId, Refusal] = LruCache(max_rejected)
        self._states: LruCache[tuple[EventId, ...], State] = LruCache(_STATES)
        self._views: LruCache[int, View] = LruCache(_VIEWS)
        self._examined: LruCache[EventId, Fact | Refusal] = LruCache(_FACTS)

    def __len__(self) -> int:
        return len(self._facts)

    @property
    def heads(self) -> tuple[EventId, ...]:
        """The events that no other event names as a control head, sorted."""
        if self._sorted_heads is None:
            self._sorted_heads = tuple(sorted(self._heads))
        return self._sorted_heads

    @property
    def current(self) -> State:
        """The state after all heads: a function of the events, not of the order in which they came."""
        if self._current is None:
            self._current = self.state_at(self.heads)
        return self._current

    @property
    def today(self) -> World:
        """The room without the events that are silenced today."""
        return self._world_without(self.silenced)

    @property
    def silenced(self) -> int:
        """The events that revocations silence today, as a mask. It changes only when the past does."""
        if self._silenced is None:
            self._silenced = self._revocations.silenced(self._past.everything)
        return self._silenced

    def silenced_at(self, heads: Iterable[EventId]) -> int:
        """Return the events that are silenced after these heads, as a mask; ignore unknown heads."""
        return self._revocations.silenced(self._past.union(head for head in heads if head in self._facts))

    def knows(self, event: EventId) -> bool:
        """Return whether an event is in the DAG."""
        return event in self._facts

    def missing(self, ids: Iterable[EventId]) -> tuple[EventId, ...]:
        """Return the ids that are unknown here: they must be fetched to judge an event that names them."""
        return tuple(one for one in ids if one not in self._facts and one not in self._rejected)

    def fact(self, event: EventId) -> Fact:
        """Return an event of the DAG; `KeyError` if it is not in it."""
        return self._facts[event]

    def is_before(self, event: EventId, other: EventId) -> bool:
        """Return whether the other follows the event, in any number of steps along control heads."""
        return event != other and self._past.reaches(other, event)

    def removal_of(self, person: AuthorId) -> EventId | None:
        """Return the event that removed a former member, who may not know of it; None if there is none.

        A member would have been shown the event, and all that it builds on. A person who left by choice is
        shown it too, as a sign that we know.
        """
        view = self.view()
        fact = view.get((MEMBER, member_key(person)))
        if fact is None or view.membership(person) not in (Membership.LEAVE, Membership.BAN):
            return None
        return fact.id if self.today.follows_a_join(fact.id) else None

    def between(self, heads: Iterable[EventId]) -> list[EventId]:
        """Return the events that are not in the past of these heads, causes first; ignore unknown heads."""
        known = self._past.union(head for head in heads if head in self._facts)
        return self._past.events(self._past.everything & ~known)

    def heads_against(self, person: AuthorId, device: DeviceId) -> tuple[EventId, ...]:
        """Return the heads of the events that follow no revocation of this device: its answer builds on them.

        If the device was not revoked, these are all heads.
        """
        theirs = self._revocations.of(person, device)
        if not theirs:
            return self.heads
        left = [
            event
            for event in self._past.events(self._past.everything)
            if not any(self._past.reaches(event, word) for word in theirs)
        ]
        return self._whole.tops(left)

    def state_at(self, heads: Sequence[EventId]) -> State:
        """Return the state that holds after these events, all of which are in the DAG.

        What comes later changes nothing in it, so it is remembered: most events name the same heads.
        """
        named = tuple(heads)
        state = self._states.get(named)
        if state is None:
            state = self._world(self._past.union(named)).state_at(named)
            self._states.put(named, state)
        return state

    def view(self, state: State | None = None) -> View:
        """Return a view of a state: of the current one, if none is given."""
        state = self.current if state is None else state
        view = self._views.get(id(state))
        if view is None or view.state is not state:
            view = View(self, state)
            self._views.put(id(state), view)
        return view

    def mainline_position(self, event: Event) -> int | None:
        """Return how far before the current power event the event's line of power events left the mainline.

        None if there is no power event, or none in common; such events count least.
        """
        power = self.today.state_at(event.tail.control or ()).get(POWER_KEY)
        return self.today.mainline.position(power, self.current.get(POWER_KEY))

    def judge(self, event: Event) -> Refusal | None:
        """Return None if the state at the event's own control heads allows it, else the refusal.

        The heads must be known. Every node gets the same result. For control events and all others.
        """
        heads = event.tail.control
        fact = self._examine(event)
        if isinstance(fact, Refusal) or fact.id == self.create.id:
            return fact if isinstance(fact, Refusal) else None
        if heads is None:
            return Refusal(Reason.MALFORMED, f"{fact.kind}: no control heads")
        if any(head in self._rejected for head in heads):
            return Refusal(Reason.NOT_ALLOWED, f"{fact.kind}: builds on a control event that was rejected")
        if self.missing(heads):
            raise ValueError("an event is judged once its control heads are known")
        return allowed(fact, self.view(self.state_at(heads)))

    def doubt(self, event: Event, heads: Sequence[EventId] | None = None) -> Refusal | None:
        """Return None if the current state allows the event too, else the refusal: a soft failure.

        Ask before a control event is added: afterwards it is part of the state itself. With `heads`, the
        state after these decides: the control events that cannot have come after the event.
        """
        fact = self._examine(event)
        if isinstance(fact, Refusal):
            return fact
        return self._doubt_in(fact, self.state_at(heads) if heads else self.current)

    def doubt_in_hindsight(self, event: Event, heads: Sequence[EventId]) -> Refusal | None:
        """Return None if the state after these heads allows the event, without what is silenced today.

        An event of a device that is revoked by now stays refused.
        """
        fact = self._examine(event)
        if isinstance(fact, Refusal):
            return fact
        if self.view().is_revoked(event.author, event.device):
            return Refusal(Reason.CARD_REVOKED, f"{fact.kind}: of a device that is revoked")
        return self._doubt_in(fact, self.today.state_at(heads))

    def _doubt_in(self, fact: Fact, state: State) -> Refusal | None:
        if fact.key is not None and state.get(fact.place) == fact.id:
            return None
        refusal = allowed(fact, self.view(state))
        if fact.kind == REVOCATION and refusal is not None and refusal.reason is Reason.CARD_REVOKED:
            return None  # The person's key has signed it; resolution decides which of two revocations stands.
        return refusal

    def add(self, event: Event) -> Refusal | None:
        """Judge a control event; add it if it is allowed, else remember and return its refusal."""
        if event.id in self._facts:
            return None
        if event.kind not in CONTROL_KINDS:
            raise ValueError(f"a {event.kind} event is no control event")
        refusal = self._rejected.get(event.id) or self.judge(event)
        if refusal is not None:
            self._rejected.put(event.id, refusal)
            return refusal
        self._take(fact_of(event))
        return None

    def excess(self, event: Event, most: int) -> Reason | None:
        """Return why an allowed event is one too many, or None; a room has `most` control events at most.

        With many concurrent heads the state is costly to compute. A full room still takes events of people
        who may ban, up to a quarter more: otherwise nobody could repair it.
        """
        own = sum(self._facts[head].sender == event.author for head in self._heads)
        named = (self._facts.get(head) for head in event.tail.control or ())
        followed = sum(
            fact is not None and fact.sender == event.author and fact.id in self._heads for fact in named
        )
        if own - followed >= HEADS_OF_ONE:
            return Reason.FLOODING
        levels = self.view().levels
        room = most + most // 4 if levels.of(event.author) >= levels.ban else most
        return Reason.QUOTA if len(self) >= room else None

    def reject(self, event: EventId, refusal: Refusal | None = None) -> None:
        """Remember that no event may build on this one: it was rejected, or is no control event at all."""
        if event in self._facts:
            raise ValueError("an event of the control DAG cannot be rejected any more")
        self._rejected.put(event, refusal or Refusal(Reason.NOT_ALLOWED, "rejected before"))

    def is_rejected(self, event: EventId) -> bool:
        """Return whether an event is remembered as rejected."""
        return event in self._rejected

    def _world(self, known: int) -> World:
        """Return the world in which the revocations of a set of events hold."""
        return self._world_without(self._revocations.silenced(known))

    def _world_without(self, silenced: int) -> World:
        if not silenced:
            return self._whole
        world = self._worlds.get(silenced)
        if world is None:
            world = World(self._steps, silenced)
            self._worlds.put(silenced, world)
        return world

    def _allowed_in(self, fact: Fact, state: State) -> Refusal | None:
        return allowed(fact, self.view(state))

    def _take(self, fact: Fact) -> None:
        heads = fact.control
        self._facts[fact.id] = fact
        self._control[fact.id] = heads
        known = self._past.mask(fact.id)
        self._revocations.add(fact)
        self._silenced = None
        self._world(known).state_at((fact.id,))
        if fact.kind == RELAY:
            self.relay_keys[fact.place[1]] = None
        for head in heads:
            self._heads.pop(head, None)
        self._heads[fact.id] = None
        self._sorted_heads = None
        self._current = None

    def _examine(self, event: Event) -> Fact | Refusal:
        """Check what can be checked of an event without a state; results are cached."""
        found = self._facts.get(event.id) or self._examined.get(event.id)
        if found is None:
            found = self._examined_anew(event)
            self._examined.put(event.id, found)
        return found

    def _examined_anew(self, event: Event) -> Fact | Refusal:
        if event.topic != self.room:
            return Refusal(Reason.UNKNOWN_ROOM, f"{event.kind}: of another room")
        try:
            fact = fact_of(event)
        except InvalidEvent as error:
            return Refusal(error.reason, error.detail)
        return proven(fact, self.room, self._card_check) or fact


def _founding(create: Event) -> Fact:
    """Return the fact of a create event; `InvalidEvent` if it founds no room that we understand."""
    tail = create.tail
    if create.kind != CREATE or create.topic != NO_TOPIC:
        raise InvalidEvent(Reason.MALFORMED, "a room begins with a create event of no topic")
    if create.prev is not None or tail.deps or tail.concurrent or tail.control:
        raise InvalidEvent(Reason.MALFORMED, "a create event comes after nothing")
    fact = fact_of(create)
    if isinstance(fact.content, Create) and fact.content.version != ROOM_VERSION:
        raise InvalidEvent(Reason.UNSUPPORTED, f"a room of version {fact.content.version}")
    return fact


Ask = Callable[[Fact, State], Refusal | None]
"""A function that returns None if a state allows an event, else the refusal."""


class Step(Struct, frozen=True, gc=False):
    """The state after an event, and the events that authorise it."""

    after: State
    auth: tuple[EventId, ...]
    replaced: EventId | None
    time: int


class Steps:
    """The steps of all events in all worlds, each computed once.

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
        """Return whether the step was computed."""
        return (event, silenced & self.past.mask(event)) in self._known

    def get(self, event: EventId, silenced: int) -> Step | None:
        """Return the step; None if the event is not in this world. Raises `KeyError` if not yet computed."""
        return self._known[event, silenced & self.past.mask(event)]

    def put(self, event: EventId, silenced: int, step: Step | None) -> None:
        """Keep a computed step."""
        self._known[event, silenced & self.past.mask(event)] = step


class World:
    """The room without the silenced events."""

    def __init__(self, steps: Steps, silenced: int) -> None:
        self._steps = steps
        self._silenced = silenced
        self._resolver = Resolver(
            steps.create, steps.facts.get, self.auth_of, time_of=self.time_of, causality=self
        )
        self.mainline = self._resolver.mainline
        self._states: LruCache[tuple[EventId, ...], State] = LruCache(_STATES)

    def tops(self, heads: Iterable[EventId]) -> tuple[EventId, ...]:
        """Return the heads that exist in this world and that none of the others follows.

        An event is never resolved against its own past.
        """
        past, below = self._steps.past, 0
        there = sorted(self._there(heads))
        for head in there:
            below |= past.mask(head) & ~past.bit(head)
        return tuple(head for head in there if not past.bit(head) & below)

    def auth_of(self, event: EventId) -> tuple[EventId, ...]:
        """Return the events that authorise an event, and the one that it replaced; none if it is absent."""
        step = self._get(event)
        return () if step is None else step.auth

    def time_of(self, event: EventId) -> int:
        """Return the time that resolution sorts by: the event's own, but later than all that it follows."""
        step = self._get(event)
        return self._steps.facts[event].time if step is None else step.time

    def time_at(self, time: int, heads: Iterable[EventId]) -> int:
        """Return the sorting time of any event with this time and these control heads."""
        return max(time, 1 + max((self.time_of(head) for head in self._there(heads)), default=-1))

    def is_before(self, event: EventId, other: EventId) -> bool:
        """Return whether the other follows the event, in any number of steps along control heads."""
        return event != other and self._steps.past.reaches(other, event)

    def replaced_by(self, event: EventId) -> EventId | None:
        """Return the event that an event replaced; None as well for an event that is not in this world."""
        step = self._get(event)
        return None if step is None else step.replaced

    def follows_a_join(self, event: EventId) -> bool:
        """Return whether the person of a membership event had joined at any time before it."""
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
        """Return these heads; those that are not in this world are replaced by the heads they followed."""
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
        """Compute every step up to these heads. In nearly all rooms they were computed on arrival."""
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
        before = self.state_at(fact.control)
        if past.mask(event) & self._silenced and self._steps.ask(fact, before) is not None:
            return None
        time = max(fact.time, 1 + max((self.time_of(head) for head in heads), default=-1))
        after = before.set(fact.place, event)
        return Step(after, select_in_room(fact, before), before.get(fact.place), time)

    def state_at(self, heads: Iterable[EventId]) -> State:
        """Return the state that holds after these events, all of which are in the DAG."""
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
        """Add the revocations to a resolved state: they stand even if their author was removed meanwhile."""
        past = self._steps.past
        for place, event in self._steps.revocations.places(past.union(heads) & ~self._silenced).items():
            if place not in state:
                state = state.set(place, event)
        return state


K = TypeVar("K")
V = TypeVar("V")


class LruCache(Generic[K, V]):
    """A bounded cache of results that can be computed or fetched again; evicts the least recently used."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._entries: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        """Return the entry and make it the newest; None if it is not cached."""
        value = self._entries.get(key)
        if value is not None:
            self._entries.move_to_end(key)
        return value

    def put(self, key: K, value: V) -> None:
        """Add an entry, and evict the oldest one if there are too many."""
        self._entries[key] = value
        self._entries.move_to_end(key)
        if len(self._entries) > self._most:
            self._entries.popitem(last=False)

    def __contains__(self, key: K) -> bool:
        return key in self._entries

    def __len__(self) -> int:
        return len(self._entries)


Voice: TypeAlias = tuple[AuthorId, DeviceId]
"""A device of a person."""


class _Word(Struct, frozen=True, gc=False):
    """One revocation: the event, the device that issued it, and the device that it revokes."""

    event: EventId
    by: Voice
    of: Voice
    place: StateKey


class Revocations:
    """The revocations of one room, and the events of the devices that they name."""

    def __init__(self, past: Chains) -> None:
        self._past = past
        self._words: list[_Word] = []
        self._said: dict[Voice, int] = {}
        """The events of each device, as a mask of the past."""

    def add(self, fact: Fact) -> None:
        """Add an event of the control DAG."""
        content = fact.content
        voices = {(fact.sender, fact.device): None}
        if isinstance(content, Member) and content.ticket is not None:
            # A ticket is an act of the device that signed it, but only the join event carries it in the DAG.
            voices[content.ticket.inviter, content.ticket.card.device] = None
        for voice in voices:
            self._said[voice] = self._said.get(voice, 0) | self._past.bit(fact.id)
        if isinstance(content, Revoked):
            of = (fact.sender, content.revocation.device)
            self._words.append(_Word(fact.id, (fact.sender, fact.device), of, fact.place))

    def silenced(self, within: int) -> int:
        """Return the events of a set that a revocation in the same set silences, as a mask."""
        mask, standing = 0, 0
        for word in self._standing(within):
            mask |= self._against(word)
            standing |= self._past.bit(word.event)
        return mask & within & ~standing

    def places(self, within: int) -> dict[StateKey, EventId]:
        """Return the state entries of a set's revocations; of several for one place, the smallest id."""
        found: dict[StateKey, EventId] = {}
        for word in self._words:
            if self._past.bit(word.event) & within:
                found[word.place] = min(word.event, found.get(word.place, word.event))
        return found

    def of(self, person: AuthorId, device: DeviceId) -> list[EventId]:
        """Return all revocations of a device, whether they stand or not."""
        return [word.event for word in self._words if word.of == (person, device)]

    def _against(self, word: _Word) -> int:
        """Return the events that a revocation silences if it stands, as a mask."""
        return self._said.get(word.of, 0) & ~self._past.mask(word.event)

    def _standing(self, within: int) -> list[_Word]:
        """Return the revocations that stand; where devices revoke each other, those of the elder.

        Step by step: a revocation that no remaining one silences stands, and those that it silences drop
        out. If the rest silence each other in a circle, the revocations of the eldest devices stand.
        """
        past = self._past
        left = {word.event: word for word in self._words if past.bit(word.event) & within}
        if len(left) < 2:
            return list(left.values())
        against = {event: self._against(word) for event, word in left.items()}
        standing: list[_Word] = []
        while left:
            free = self._unopposed(left, against) or self._eldest(left, within)
            standing += free
            gone = 0
            for word in free:
                gone |= against[word.event] | past.bit(word.event)
            left = {event: word for event, word in left.items() if not past.bit(event) & gone}
        return standing

    def _unopposed(self, left: dict[EventId, _Word], against: dict[EventId, int]) -> list[_Word]:
        threatened = 0
        for event in left:
            threatened |= against[event]
        return [word for event, word in left.items() if not self._past.bit(event) & threatened]

    def _eldest(self, left: dict[EventId, _Word], within: int) -> list[_Word]:
        """Return the revocations of the eldest devices; all of them, if the devices are elder in a circle."""
        voices = list(dict.fromkeys(word.by for word in left.values()))
        eldest = {
            one: None
            for one in voices
            if not any(self._is_elder(other, one, within) for other in voices if other != one)
        }
        return [word for word in left.values() if word.by in eldest] or list(left.values())

    def _is_elder(self, one: Voice, other: Voice, within: int) -> bool:
        """Return whether the first events of `other` follow an event of `one`, and not the reverse.

        A device can add first events of its own on old heads, but not to those of the other device.
        """
        if one[0] != other[0]:
            return False
        mine, theirs = self._first(one, within), self._first(other, within)
        return self._knew(theirs, one, within) and not self._knew(mine, other, within)

    def _first(self, voice: Voice, within: int) -> list[EventId]:
        """Return the first events of a device: those that follow no other event of it."""
        own = self._said.get(voice, 0) & within
        return [
            event for event in self._past.events(own) if self._past.mask(event) & own == self._past.bit(event)
        ]

    def _knew(self, events: Iterable[EventId], voice: Voice, within: int) -> bool:
        return bool(self._past.union(events) & self._said.get(voice, 0) & within)
