"""The places of one room's events: of those that arrive, and of those that this device makes.

An event takes its place once, after all that it refers to: in the log, the causal graph, the order of
reconciliation, and the plain state. An event that counts before that is stored early."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from msgspec import Struct

from linnet.core.errors import InvalidEvent, Refused, RemoteError
from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.limits import BODY_BYTES, DEPENDENCIES, KEY_CHARS, KIND_CHARS, LARGEST_COUNT
from linnet.core.reasons import Reason
from linnet.core.stores import Damage
from linnet.delivery.causal_graph import Dag
from linnet.delivery.context import Context
from linnet.delivery.set_reconciliation import SortedIds
from linnet.event.event import Event, Spot, Tail, Unverified, Verified
from linnet.event.signing import sign_unit
from linnet.identity.cards import check_dates
from linnet.rooms.auth.control_graph import ControlDag
from linnet.rooms.auth.event_auth import Refusal
from linnet.rooms.auth.plain_state import PlainState
from linnet.rooms.event_types import CONTROL_KINDS, CREATE, GROUP, Create, body_of
from linnet.rooms.room_store import LATE, SOFT, RoomMemory


class Verdict(Enum):
    """The verdict of the room's rules on an event."""

    ACCEPTED = "accepted"
    SOFT_FAILED = "soft_failed"
    REJECTED = "rejected"
    EARLY = "early"
    """A control event that counts already, and waits for its place."""


class Arrival(Struct, frozen=True, gc=False):
    """A checked event, and how it arrived."""

    verified: Verified
    source: PeerId | None
    """The peer that sent it; None if it is our own, or from the store."""
    hops: int
    age_us: int

    @property
    def event(self) -> Event:
        """The event."""
        return self.verified.events[0]

    @property
    def size(self) -> int:
        """The approximate size in bytes."""
        return sum(map(len, self.verified.unit.tails))


class Placed(Struct, frozen=True, gc=False):
    """An event that has its place, or was refused one."""

    arrival: Arrival
    verdict: Verdict
    position: int | None
    """The position in the log; None if the event was refused."""
    late: bool
    refusal: Refusal | None
    was_early: bool = False
    """Whether it counted, and was passed on, before it got its place."""
    again: bool = False
    """Whether it had a place before, and the log was damaged since."""


class Places:
    """Gives the events of one room their places."""

    def __init__(
        self, context: Context, dag: Dag, ids: SortedIds, plain: PlainState, memory: RoomMemory
    ) -> None:
        self._context = context
        self.dag = dag
        self._ids = ids
        self._plain = plain
        self.memory = memory
        self.early: dict[EventId, int] = {}
        """The heights of events that count and have no place yet: control events, and our own."""
        self._claims: dict[EventId, int] = {}
        """The heights that events claim, where these are too low: those of control events are not trusted."""

    def checked(self, unit: Unverified) -> Verified:
        """Verify a unit as an event of this room; `InvalidEvent` says what is wrong."""
        if len(unit.tails) != 1 or unit.seq is None:
            raise InvalidEvent(Reason.MALFORMED, "a room's events come one by one, in chains")
        card = self._context.cards.find(unit.author, unit.device)
        if card is None:
            raise InvalidEvent(Reason.UNKNOWN_DEVICE, "no card came with the device's first event")
        verified = self._context.verify(unit, card)
        event = verified.events[0]
        try:
            # A renewed card begins later than the device's history.
            check_dates(card, max(event.time / 1000, card.not_before))
        except RemoteError as error:
            raise InvalidEvent(error.reason, error.detail) from error
        if event.kind == CREATE:
            if bytes(event.id) != self.memory.room:
                raise InvalidEvent(Reason.NOT_ALLOWED, "a second create event")
        elif event.topic != self.memory.room:
            raise InvalidEvent(Reason.UNKNOWN_ROOM, "an event of another room")
        elif event.tail.deps is None or event.tail.control is None or event.tail.height is None:
            raise InvalidEvent(Reason.MALFORMED, "an event without dependencies, control heads or height")
        return verified

    def keep_early(self, arrival: Arrival) -> None:
        """Store an event that counts and cannot be in the log yet."""
        # With its card: after a restart it takes its place without having come over a link.
        self._context.cards.keep(arrival.event.author, arrival.event.device)
        self.memory.keep_early(arrival.verified)
        self.early[arrival.event.id] = arrival.event.tail.height or 0

    def append(self, arrival: Arrival, doubt: Refusal | None, now: float) -> Placed:
        """Append an event to the log, and enter it into all indexes."""
        event = arrival.event
        late = self.dag.is_settled(event.id)
        was_early = self.early.pop(event.id, None) is not None
        again = self.memory.is_written(event.id)
        flag = SOFT if doubt is not None else (LATE if late else None)
        position = self.memory.append(arrival.verified, flag, now)
        self._context.cards.keep(event.author, event.device)
        self.enter(event, shown=doubt is None)
        verdict = Verdict.ACCEPTED if doubt is None else Verdict.SOFT_FAILED
        return Placed(arrival, verdict, position, late, doubt, was_early, again)

    def enter(self, event: Event, shown: bool) -> None:
        """Enter an event of the log into the graph, the order of reconciliation, and the state."""
        mine = event.seq if self.is_ours(event) else None
        refs = causes_of(event)  # A control head may have no place yet, and then never adds to the past.
        claimed = event.tail.height or 0
        height = max(claimed, 1 + max(map(self.dag.height, refs), default=-1))
        if height != claimed:
            self._claims[event.id] = claimed
        late = self.dag.late
        # No event builds on an operation on keys: it is no head, and no dependency.
        self.dag.add(event.id, height, refs, shown and event.kind != GROUP, mine)
        self._ids.add(claimed, event.id)
        if self.dag.late != late:
            self._plain.rebuild()
        elif event.kind in CONTROL_KINDS:
            self._plain.reconsider()
        if event.tail.key is not None and event.kind not in CONTROL_KINDS:
            self._plain.add(event)

    def claimed(self, event: EventId) -> int:
        """Return the height that a known event claims, from which later events derive their heights."""
        for heights in (self.early, self._claims, self.memory.rejected):
            if event in heights:
                return heights[event]
        return self.dag.height(event)

    def wrong_height(self, event: Event) -> Refusal | None:
        """Return a refusal if the height of an event is wrong, else None; not for control events."""
        refs = refs_of(event)
        if any(self.dag.is_settled(each) and each not in self.memory.rejected for each in refs):
            return None  # The heights of expired events are unknown.
        height = min(LARGEST_COUNT, 1 + max(map(self.claimed, refs), default=-1))
        if event.tail.height != height:
            return Refusal(Reason.MALFORMED, f"its height is {event.tail.height}, not {height}")
        return None

    def is_ours(self, event: Event) -> bool:
        """Return whether this device has published an event."""
        return event.device == self._context.device and event.author == self._context.author


Seal = Callable[[int, EventId | None, Tail], Tail]
"""A function that encrypts the body of a tail, given the event's number and predecessor; binds the rest."""

NO_TOPIC = TopicId(bytes(32))
"""The topic of a create event, whose room is named by its own id."""


def found(context: Context, content: Create, now: float) -> Verified:
    """Sign the first event of a new room."""
    tail = Tail(None, None, 0, None, CREATE, "", int(now * 1000), None, body_of(content))
    return sign_unit(context.key, Spot(NO_TOPIC, context.author, context.device, 0, None), (tail,))


class Draft(NamedTuple):
    """The content of an event to be made."""

    kind: str
    key: str | None
    body: bytes


class Author:
    """Our own chain in one room."""

    def __init__(
        self, context: Context, control: ControlDag, dag: Dag, height_of: Callable[[EventId], int]
    ) -> None:
        self._context = context
        self._control = control
        self._dag = dag
        self._height_of = height_of
        """A function that returns the height of a known event, in the DAG or not yet."""
        self.seq = -1
        self.prev: EventId | None = None

    def note(self, event: Event) -> None:
        """Note an event of ours, from the store or just made: the next one follows it."""
        if event.author == self._context.author and event.device == self._context.device:
            seq = event.seq if event.seq is not None else -1
            if seq > self.seq:
                self.seq, self.prev = seq, event.id

    def note_damage(self, damage: Damage) -> None:
        """Note a damaged unit of the log: if it is ours, its number must not be used again."""
        is_ours = damage.author == self._context.author and damage.device == self._context.device
        if is_ours and damage.last is not None and damage.last > self.seq:
            self.seq, self.prev = damage.last, damage.head

    def make(
        self,
        draft: Draft,
        now: float,
        after: tuple[EventId, ...] | None = None,
        seal: Seal | None = None,
        control: tuple[EventId, ...] | None = None,
    ) -> Verified:
        """Sign an event that follows all events known here, or just the events in `after`.

        Raises `Refused` if it breaks a limit.

        `control` replaces the current control heads. The event is not remembered before `note`: the caller
        may find that it is not allowed.
        """
        kind, key, body = draft
        check_limits(kind, key, body)
        heads = self._dag.heads if after is None else after
        control = (self._control.heads if control is None else control)[:DEPENDENCIES]
        prev = self.prev
        deps = heads[:DEPENDENCIES] or ((prev,) if prev is not None else control)
        concurrent = heads[DEPENDENCIES : 2 * DEPENDENCIES] or None
        refs = (*deps, *(concurrent or ()), *control, *(() if prev is None else (prev,)))
        height = min(LARGEST_COUNT, 1 + max(map(self._height_of, refs)))
        tail = Tail(deps, concurrent, height, control, kind, key, int(now * 1000), None, body)
        context = self._context
        if seal is not None:
            tail = seal(self.seq + 1, prev, tail)
        return sign_unit(
            context.key, Spot(self._control.room, context.author, context.device, self.seq + 1, prev), (tail,)
        )


def check_limits(kind: str, key: str | None, body: bytes) -> None:
    """Raise `Refused` if an event like this breaks the limits that every node enforces."""
    if not 1 <= len(kind) <= KIND_CHARS:
        raise Refused(Reason.MALFORMED, f"a kind has 1 to {KIND_CHARS} characters")
    if key is not None and len(key) > KEY_CHARS:
        raise Refused(Reason.TOO_LARGE, f"a key has at most {KEY_CHARS} characters")
    if len(body) > BODY_BYTES:
        raise Refused(Reason.TOO_LARGE, f"a body of {len(body)} bytes, at most {BODY_BYTES} are allowed")


def causes_of(event: Event) -> tuple[EventId, ...]:
    """Return the events that an event comes after, each once: its references without control heads."""
    tail = event.tail
    prev = () if event.prev is None else (event.prev,)
    return tuple(dict.fromkeys((*(tail.deps or ()), *(tail.concurrent or ()), *prev)))


def refs_of(event: Event) -> tuple[EventId, ...]:
    """Return all events that an event refers to, each once."""
    tail = event.tail
    prev = () if event.prev is None else (event.prev,)
    return tuple(dict.fromkeys((*(tail.deps or ()), *(tail.concurrent or ()), *(tail.control or ()), *prev)))
