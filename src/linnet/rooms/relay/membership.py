"""The only thing that a relay ever says in a room: that it joins, or leaves."""

from __future__ import annotations

from collections.abc import Container

from linnet.core.ids import EventId, PeerId
from linnet.core.limits import DEPENDENCIES
from linnet.delivery.context import Context
from linnet.delivery.messages import Data
from linnet.event.event import Event, Tail, Verified
from linnet.event.signing import recall_unit, sign_unit
from linnet.machine.outbox import Outbox
from linnet.rooms.access.control_dag import ControlDag
from linnet.rooms.content import MEMBER, Member, Membership, body_of, member_key
from linnet.rooms.messages import RelaySend
from linnet.rooms.relay.event_cache import Cache
from linnet.rooms.relay.ingest import Fresh, Turn
from linnet.trace.records import Kind, Record


class OwnMembership:
    """Our own chain in one room."""

    def __init__(self, context: Context, dag: ControlDag, cache: Cache, out: Outbox) -> None:
        self._context = context
        self._dag = dag
        self._cache = cache
        self._out = out

    @property
    def standing(self) -> Membership:
        """How we stand to the room."""
        return self._dag.view().membership(self._context.author)

    def say_membership(
        self,
        membership: Membership,
        turn: Turn,
        members: Container[PeerId],
        relays: Container[PeerId],
        now: float,
    ) -> None:
        """Join or leave, if the room lets us, and tell those who are here.

        Members get it as they get anything. The other relays get our join forwarded; a relay that leaves is
        a peer like others to them.
        """
        verified = self._make(membership, now)
        event = verified.events[0]
        refusal = self._dag.add(event)
        if refusal is not None:
            reason, note = refusal.reason, event.kind
            self._out.record(Record(Kind.REJECTED, event.topic, event.id, reason=reason, note=note))
            return
        position = self._cache.keep_control(verified, True, now)
        turn.fresh.append(Fresh(position, event.id, verified.unit, self._context.peer))
        turn.forwards = True
        turn.promise_record(
            Record(Kind.PUBLISHED, event.topic, event.id, event.device, event.seq, note=event.kind)
        )
        message = Data(verified.unit, 1, 0, int(now * 1_000_000), self._context.card)
        send = RelaySend(event.topic, 0, (verified.unit,), (self._context.card,))
        for peer in self._context.links:
            if peer in relays and membership is Membership.LEAVE:
                turn.promise_send(peer, send)
            elif peer in members and peer not in relays and peer != self._context.peer:
                turn.promise_send(peer, message)

    def _make(self, membership: Membership, now: float) -> Verified:
        """After all control events that we know."""
        context, dag = self._context, self._dag
        mine = [event for event in self._cache.control if self._is_ours(event)]
        last = max(map(self._event, mine), key=lambda event: event.seq or 0, default=None)
        heads = dag.heads[:DEPENDENCIES]
        named = [*map(self._event, heads), *(() if last is None else (last,))]
        height = 1 + max(event.tail.height or 0 for event in named)
        key, body = member_key(context.author), body_of(Member(membership))
        tail = Tail(heads, None, height, heads, MEMBER, key, int(now * 1000), None, body)
        seq, prev = (0, None) if last is None else ((last.seq or 0) + 1, last.id)
        return sign_unit(context.key, dag.room, context.author, context.device, seq, prev, (tail,))

    def _is_ours(self, event: EventId) -> bool:
        fact = self._dag.fact(event)
        return (fact.sender, fact.device) == (self._context.author, self._context.device)

    def _event(self, event: EventId) -> Event:
        unit = self._cache.unit(event, 0.0)
        if unit is None:
            raise AssertionError(f"the control event {event.hex()} is not in the log")
        return recall_unit(unit).events[0]
