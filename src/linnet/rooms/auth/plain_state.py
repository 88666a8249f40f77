"""Plain state: values for people that nodes store but do not obey, such as a room's name.

Relays do not hold it, so it takes no part in the control DAG. Of the events that set one place, those that
are still allowed count; a later one replaces those that it builds on; among concurrent ones the winner is
chosen as state resolution would choose it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator

from linnet.core.ids import AuthorId, EventId
from linnet.event.event import Event
from linnet.rooms.auth.control_graph import ControlDag
from linnet.rooms.auth.event_auth import allowed
from linnet.rooms.auth.room_state import Fact, Rank, State, StateKey, View, fact_of
from linnet.rooms.event_types import CONTROL_KINDS, RELAY, Relay

Precedes = Callable[[EventId, EventId], bool]
"""Whether the first event is in the causal past of the second."""


class PlainState:
    """The plain state of one room."""

    def __init__(self, dag: ControlDag, precedes: Precedes) -> None:
        self._dag = dag
        self._precedes = precedes
        self._places: dict[StateKey, _Place] = {}
        self._turn = 0
        """Counts changes in the order of events; a winner decided in an earlier turn is decided again."""

    def reconsider(self) -> None:
        """Decide all winners again: a control event that counted early has got its place."""
        self._turn += 1

    def rebuild(self) -> None:
        """Order all candidates again: an event has come into the middle of the graph."""
        self._turn += 1
        for where, place in list(self._places.items()):
            anew = self._places[where] = _Place()
            for event in place.events:
                anew.add(event, self._precedes)

    def add(self, event: Event) -> None:
        """Add an event that sets plain state and was accepted, or failed only softly."""
        if event.kind in CONTROL_KINDS or event.tail.key is None:
            raise ValueError(f"a {event.kind} event sets no plain state")
        place = self._places.setdefault((event.kind, event.tail.key), _Place())
        place.add(event, self._precedes)

    def winner(self, kind: str, key: str) -> EventId | None:
        """Return the event that holds at this place; None if there is none."""
        place = self._places.get((kind, key))
        if place is None:
            return None
        now = self._dag.view()
        decided = place.decided
        if decided is None or decided[0] is not now.state or decided[1] != self._turn:
            decided = place.decided = (now.state, self._turn, self._decide(place, now))
        return decided[2]

    def entries(self) -> tuple[tuple[str, str, EventId], ...]:
        """Return all places with the events that hold there, sorted by kind and key."""
        found = ((*place, self.winner(*place)) for place in sorted(self._places))
        return tuple((kind, key, event) for kind, key, event in found if event is not None)

    def _decide(self, place: _Place, now: View) -> EventId | None:
        best = max(place.standing(lambda event: self._counts(event, now)), key=self._rank, default=None)
        return None if best is None else best.id

    def _counts(self, event: Event, now: View) -> bool:
        own = self._dag.view(self._dag.today.state_at(event.tail.control or ()))
        return allowed(fact_of(event), _Mixed(event.id, self._dag, own, now, self._precedes)) is None

    def _rank(self, event: Event) -> tuple[Rank, int, EventId]:
        position = self._dag.mainline_position(event)
        time = self._dag.today.time_at(event.time, event.tail.control or ())
        return float("-inf") if position is None else -position, time, event.id


class _Place:
    """The candidates for one place, and the order in which they build on each other."""

    def __init__(self) -> None:
        self.decided: tuple[State, int, EventId | None] | None = None
        """The winner, and the control state and turn that it won under."""
        self.events: list[Event] = []
        self._known: dict[EventId, None] = {}
        self._past: list[int] = []
        """For each candidate, the mask of the candidates that it supersedes."""
        self._order: list[tuple[int, int]] = []
        """Heights with positions, lowest first: an event is higher than those that it supersedes."""

    def add(self, event: Event, precedes: Precedes) -> None:
        if event.id in self._known:
            return
        position, height = len(self.events), event.tail.height or 0
        below = self._below(event, height, precedes)
        for other_height, other in reversed(self._order):
            if other_height <= height:
                break
            if precedes(event.id, self.events[other].id):
                self._past[other] |= below | 1 << position
        self._known[event.id] = None
        self.events.append(event)
        self._past.append(below)
        insort(self._order, (height, position))
        self.decided = None

    def standing(self, counts: Callable[[Event], bool]) -> Iterator[Event]:
        """Yield the candidates that count and that no other counting candidate supersedes."""
        left = (1 << len(self.events)) - 1
        for _, position in reversed(self._order):
            if not left:
                return
            if left >> position & 1:
                left ^= 1 << position
                if counts(self.events[position]):
                    left &= ~self._past[position]
                    yield self.events[position]

    def _below(self, event: Event, height: int, precedes: Precedes) -> int:
        """Return the candidates that an event supersedes: mostly the latest, and through it all others."""
        lower = self._order[: bisect_left(self._order, (height, -1))]
        all_lower = len(lower) == len(self.events)
        left = (1 << len(lower)) - 1 if all_lower else sum(1 << position for _, position in lower)
        below = 0
        for _, position in reversed(lower):
            if not left:
                break
            if left >> position & 1:
                left ^= 1 << position
                if precedes(self.events[position].id, event.id):
                    below |= self._past[position] | 1 << position
                    left &= ~below
        return below


class _Mixed:
    """The state that an event is judged by: the current one without changes that followed the event."""

    def __init__(self, event: EventId, dag: ControlDag, own: View, now: View, precedes: Precedes) -> None:
        self.create = now.create
        self._event = event
        self._dag = dag
        self._own = own
        self._now = now
        self._precedes = precedes

    def get(self, place: StateKey) -> Fact | None:
        """Return the last version that did not follow the event; if all did, the one the event knew."""
        current = self._now.state.get(place)
        if current is None:
            return None
        version: EventId | None = current
        while version is not None and self._precedes(self._event, version):
            version = self._dag.today.replaced_by(version)
        return self._own.get(place) if version is None else self._dag.fact(version)

    def is_relay_person(self, person: AuthorId) -> bool:
        """Return whether a relay event that did not follow the event makes the person a relay."""
        words = (self.get((RELAY, key)) for key in self._dag.relay_keys)
        relays = (word.content for word in words if word is not None)
        return any(isinstance(one, Relay) and one.active and one.person == person for one in relays)
