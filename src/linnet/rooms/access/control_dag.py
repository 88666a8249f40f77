"""The control DAG of one room: who may do what, as every member and every relay works it out alike.

Its events are create, membership, power, join rules, relays, retention and revocations, and its edges are
the control heads that each of them names. What is allowed is defined by the state at the heads that an
event names, so a relay that has nothing but this DAG judges as a member does (docs/adr/0010).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from linnet.core.errors import InvalidEvent
from linnet.core.ids import AuthorId, DeviceId, EventId, TopicId
from linnet.core.reasons import Reason
from linnet.event.event import Event
from linnet.identity.cards import CardCheck, check_card
from linnet.rooms.access.chains import Chains
from linnet.rooms.access.facts import POWER_KEY, Fact, State, fact_of
from linnet.rooms.access.proofs import proven
from linnet.rooms.access.remembering import Remembered
from linnet.rooms.access.revocations import Revocations
from linnet.rooms.access.rules import allowed
from linnet.rooms.access.verdict import Refusal
from linnet.rooms.access.view import View
from linnet.rooms.access.worlds import Steps, World
from linnet.rooms.content import (
    CONTROL_KINDS,
    CREATE,
    RELAY,
    REVOCATION,
    ROOM_VERSION,
    Create,
)

NO_TOPIC = TopicId(bytes(32))
"""The topic of a create event, which cannot name itself."""

_WORLDS = 8
_VIEWS = 64
_FACTS = 1024
_REJECTED = 10_000

HEADS_OF_ONE = 16
"""Heads that are one person's: a device says one thing after the other, and few people have more devices."""


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
        """Keys of all relays that were ever named."""
        self._heads: dict[EventId, None] = {create.id: None}
        self._sorted_heads: tuple[EventId, ...] | None = None
        self._current: State | None = None
        self._past = Chains(self._control.__getitem__)
        self._past.mask(create.id)
        self._revocations = Revocations(self._past)
        self._revocations.add(founding)
        self._steps = Steps(founding, self._facts, self._past, self._revocations, self._allowed_in)
        self._whole = World(self._steps, 0)
        self._worlds: Remembered[int, World] = Remembered(_WORLDS)
        self._rejected: Remembered[EventId, Refusal] = Remembered(max_rejected)
        self._views: Remembered[int, View] = Remembered(_VIEWS)
        self._examined: Remembered[EventId, Fact | Refusal] = Remembered(_FACTS)

    def __len__(self) -> int:
        return len(self._facts)

    @property
    def heads(self) -> tuple[EventId, ...]:
        """The events that no other names, sorted."""
        if self._sorted_heads is None:
            self._sorted_heads = tuple(sorted(self._heads))
        return self._sorted_heads

    @property
    def current(self) -> State:
        """The state after all heads: a function of the events, not of the order in which they came."""
        if self._current is None:
            self._current = self.state_at(self.heads)
        return self._current

    def knows(self, event: EventId) -> bool:
        """Whether it is in the DAG."""
        return event in self._facts

    def missing(self, ids: Iterable[EventId]) -> tuple[EventId, ...]:
        """Those that have to be fetched before anything that names them can be judged."""
        return tuple(one for one in ids if one not in self._facts and one not in self._rejected)

    def fact(self, event: EventId) -> Fact:
        """An event of the DAG; `KeyError` if it is not in it."""
        return self._facts[event]

    def auth_of(self, event: EventId) -> tuple[EventId, ...]:
        """The events that authorise an event of the DAG, and the one that it replaced."""
        return self._now.auth_of(event)

    def time_of(self, event: EventId) -> int:
        """The event's time, but later than all that it follows: what resolution sorts by."""
        return self._now.time_of(event)

    def time_at(self, time: int, heads: Iterable[EventId]) -> int:
        """The same for any event with this time and these control heads."""
        return self._now.time_at(time, heads)

    def is_before(self, event: EventId, other: EventId) -> bool:
        """Whether the other follows the event, in however many steps along control heads."""
        return event != other and self._past.reaches(other, event)

    def replaced_by(self, event: EventId) -> EventId | None:
        """What stood in the event's place where it came, as all that is known today has it."""
        return self._now.replaced_by(event)

    def follows_a_join(self, event: EventId) -> bool:
        """Whether a membership came, in however many steps, after one by which its person was in the room."""
        return self._now.follows_a_join(event)

    def between(self, heads: Iterable[EventId]) -> list[EventId]:
        """Events that are not in the past of these heads, causes first. Unknown heads count for nothing."""
        known = self._past.union(head for head in heads if head in self._facts)
        return self._past.events(self._past.everything & ~known)

    def heads_against(self, person: AuthorId, device: DeviceId) -> tuple[EventId, ...]:
        """The heads of what does not follow a revocation of this device: where its answer to one belongs.

        The heads of everything, if it was not revoked.
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
        """The state that holds after these events, all of which are in the DAG."""
        return self._world(self._past.union(heads)).state_at(heads)

    def state_now_at(self, heads: Sequence[EventId]) -> State:
        """The same without what revocations silence that are known today, but were not to these heads."""
        return self._now.state_at(heads)

    def view(self, state: State | None = None) -> View:
        """A state to be read: the current one, if none is given."""
        state = self.current if state is None else state
        view = self._views.get(id(state))
        if view is None or view.state is not state:
            view = View(self, state)
            self._views.put(id(state), view)
        return view

    def mainline_position(self, event: Event) -> int | None:
        """How far from the current power event the line that authorised this event turned off.

        None: there is no power event, or none in common. Such events count least.
        """
        power = self.state_now_at(event.tail.control or ()).get(POWER_KEY)
        return self._now.mainline.position(power, self.current.get(POWER_KEY))

    def judge(self, event: Event) -> Refusal | None:
        """None if the state at its own control heads, which must be known, allows the event.

        Alike at every node. For control events and all others.
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
        """None if the current state allows the event too; else it is a soft failure.

        To be asked before a control event is added: afterwards it is part of what it is asked of. With
        `heads` the state after these is asked: of the control events that cannot have come after it.
        """
        fact = self._examine(event)
        if isinstance(fact, Refusal):
            return fact
        state = self.state_at(heads) if heads else self.current
        if fact.key is not None and state.get(fact.place) == fact.id:
            return None
        refusal = allowed(fact, self.view(state))
        if fact.kind == REVOCATION and refusal is not None and refusal.reason is Reason.CARD_REVOKED:
            return None  # The person's key has signed it. Which of two stands is for resolution to say.
        return refusal

    def add(self, event: Event) -> Refusal | None:
        """Judge a control event and take it in if it is allowed, else remember that it was rejected."""
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
        """Why an event is one too many, although it is allowed; `most` are the control events of a room.

        Where many events stand beside each other, what holds is costly to find out. A full room still
        takes what those say who may put people out, or else nobody could help it.
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
        """Remember that nothing may build on this event: it was rejected, or is no control event at all."""
        if event in self._facts:
            raise ValueError("an event of the control DAG cannot be rejected any more")
        self._rejected.put(event, refusal or Refusal(Reason.NOT_ALLOWED, "rejected before"))

    def is_rejected(self, event: EventId) -> bool:
        """Whether it is remembered as rejected."""
        return event in self._rejected

    @property
    def _now(self) -> World:
        """The room without all that is silenced today."""
        return self._world(self._past.everything)

    def _world(self, known: int) -> World:
        """The room as a set of events has it."""
        silenced = self._revocations.silenced(known)
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
        self._world(known).state_at((fact.id,))
        if fact.kind == RELAY:
            self.relay_keys[fact.place[1]] = None
        for head in heads:
            self._heads.pop(head, None)
        self._heads[fact.id] = None
        self._sorted_heads = None
        self._current = None

    def _examine(self, event: Event) -> Fact | Refusal:
        """What can be told of an event without a state, remembered."""
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
    """The fact of a create event; `InvalidEvent` if it founds no room that we understand."""
    tail = create.tail
    if create.kind != CREATE or create.topic != NO_TOPIC:
        raise InvalidEvent(Reason.MALFORMED, "a room begins with a create event of no topic")
    if create.prev is not None or tail.deps or tail.concurrent or tail.control:
        raise InvalidEvent(Reason.MALFORMED, "a create event comes after nothing")
    fact = fact_of(create)
    if isinstance(fact.content, Create) and fact.content.version != ROOM_VERSION:
        raise InvalidEvent(Reason.UNSUPPORTED, f"a room of version {fact.content.version}")
    return fact
