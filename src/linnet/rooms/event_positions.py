"""Where the events of a room stand: in the log, the graph, the order of reconciliation, and the state.

An event takes its place once, after all that it refers to. Whatever counts before that is kept early.
"""

from __future__ import annotations

from linnet.core.ids import EventId
from linnet.core.limits import LARGEST_COUNT
from linnet.core.reasons import Reason
from linnet.delivery.context import Context
from linnet.delivery.dag import Dag
from linnet.delivery.sorted_ids import SortedIds
from linnet.event.event import Event
from linnet.rooms.access.plain import PlainState
from linnet.rooms.access.verdict import Refusal
from linnet.rooms.arrival import Arrival, Placed, Verdict
from linnet.rooms.content import CONTROL_KINDS, GROUP
from linnet.rooms.event_builder import causes_of, refs_of
from linnet.rooms.room_store import FUTURE, LATE, SOFT, RoomMemory


class Places:
    """Those of one room."""

    def __init__(
        self, context: Context, dag: Dag, ids: SortedIds, plain: PlainState, memory: RoomMemory
    ) -> None:
        self._context = context
        self._dag = dag
        self._ids = ids
        self._plain = plain
        self._memory = memory
        self.early: dict[EventId, int] = {}
        """Heights of events that count and have no place yet: control events, and our own."""
        self._claims: dict[EventId, int] = {}
        """Heights that events claim, where these are too low: a control event's is believed by nobody."""

    def keep_early(self, arrival: Arrival) -> None:
        """Keep an event that counts and cannot be in the log yet."""
        # With its card: after a restart it takes its place without having come over a link.
        self._context.cards.keep(arrival.event.author, arrival.event.device)
        self._memory.keep_early(arrival.verified)
        self.early[arrival.event.id] = arrival.event.tail.height or 0

    def append(self, arrival: Arrival, doubt: Refusal | None, now: float) -> Placed:
        """Into the log with an event, and to all that follows from that."""
        event = arrival.event
        late = self._dag.is_settled(event.id)
        was_early = self.early.pop(event.id, None) is not None
        again = self._memory.is_written(event.id)
        is_future = doubt is not None and doubt.reason is Reason.FUTURE_TIME
        flag = (FUTURE if is_future else SOFT) if doubt is not None else (LATE if late else None)
        position = self._memory.append(arrival.verified, flag, now)
        self._context.cards.keep(event.author, event.device)
        self.enter(event, shown=doubt is None)
        verdict = Verdict.ACCEPTED if doubt is None else Verdict.SOFT_FAILED
        return Placed(arrival, verdict, position, late, doubt, was_early, again)

    def enter(self, event: Event, shown: bool) -> None:
        """Into the graph, the order of reconciliation, and the state; it is in the log."""
        mine = event.seq if self.is_ours(event) else None
        refs = causes_of(event)  # A control head may have no place yet, and then never adds to the past.
        claimed = event.tail.height or 0
        height = max(claimed, 1 + max(map(self._dag.height, refs), default=-1))
        if height != claimed:
            self._claims[event.id] = claimed
        late = self._dag.late
        # What devices say of keys is never built upon: it is no head, and nobody's dependency.
        self._dag.add(event.id, height, refs, shown and event.kind != GROUP, mine)
        self._ids.add(claimed, event.id)
        if self._dag.late != late:
            self._plain.rebuild()
        elif event.kind in CONTROL_KINDS:
            self._plain.reconsider()
        if event.tail.key is not None and event.kind not in CONTROL_KINDS:
            self._plain.add(event)

    def claimed(self, event: EventId) -> int:
        """The height that a known event claims: what is reckoned with by those that refer to it."""
        for heights in (self.early, self._claims, self._memory.rejected):
            if event in heights:
                return heights[event]
        return self._dag.height(event)

    def wrong_height(self, event: Event) -> Refusal | None:
        """Of a control event nobody asks: relays and newcomers judge it without what it depends on."""
        refs = refs_of(event)
        if any(self._dag.is_settled(each) and each not in self._memory.rejected for each in refs):
            return None  # Heights of what has expired are not known.
        height = min(LARGEST_COUNT, 1 + max(map(self.claimed, refs), default=-1))
        if event.tail.height != height:
            return Refusal(Reason.MALFORMED, f"its height is {event.tail.height}, not {height}")
        return None

    def is_ours(self, event: Event) -> bool:
        """Whether this device has said it."""
        return event.device == self._context.device and event.author == self._context.author
