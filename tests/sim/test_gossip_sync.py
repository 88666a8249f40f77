"""Sessions between two members of a simulated topic, message by message."""

from __future__ import annotations

from linnet.core.effects import CancelTimer, Send, SetTimer
from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.causal_messages import Beyond, Further, Reconcile
from linnet.delivery.dag import Dag
from linnet.delivery.sorted_ids import SortedIds
from linnet.sim.gossip_sync import TIMEOUT, GossipSync, SyncDue, Told
from linnet.trace.records import Kind, Record

A, B = PeerId(b"a" * 32), PeerId(b"b" * 32)
TOPIC = TopicId(b"t" * 32)


def event(number: int, height: int = 0) -> EventId:
    return EventId(bytes([height]) + number.to_bytes(31, "big"))


def side(ours: PeerId, own: int, events: int = 0) -> GossipSync:
    """A chain of two that both share, and some above it that only one has."""
    dag, ids = Dag(), SortedIds()
    chain = [event(1), event(2, 1), *(event(own + height, height) for height in range(2, 2 + events))]
    for height, (before, each) in enumerate(zip([None, *chain], chain, strict=False)):
        dag.add(each, height, () if before is None else (before,), shown=True)
        ids.add(height, each)
    return GossipSync(TOPIC, ours, dag, ids)


def test_equal_heads_need_nothing_and_unknown_ones_a_walk() -> None:
    a, b = side(A, 100), side(B, 200, 3)
    assert b.compare(A, Told(a.heads, 2)) == []
    assert a.heads == (event(2, 1),)
    tick = SyncDue(TOPIC, B)
    asked = a.compare(B, Told(b.heads, 5))
    assert asked == [Send(B, Beyond(TOPIC, 2, a.heads)), SetTimer(TIMEOUT, tick)]
    assert a.awaits(B, 2)
    assert a.compare(B, Told(b.heads, 5)) == []
    assert a.on_further(B, Further(TOPIC, 9, (), (), False, ())) == []
    # Heads were told meanwhile and are still unknown: it begins again.
    ended = a.on_further(B, Further(TOPIC, 2, (), (), False, ()))
    assert ended == [CancelTimer(tick), Send(B, Beyond(TOPIC, 4, a.heads)), SetTimer(TIMEOUT, tick)]


def test_sides_that_went_on_apart_reconcile() -> None:
    a, b = side(A, 100, 90), side(B, 200, 90)
    a.compare(B, Told(b.heads, 92))
    began = a.on_further(B, Further(TOPIC, 2, (), (), True, a.heads))
    assert isinstance(began[0], Send)
    assert isinstance(began[0].message, Reconcile)
    message: Reconcile | None = began[0].message
    found: dict[PeerId, list[EventId]] = {A: [], B: []}
    sides, to = {A: a, B: b}, B
    while message is not None:
        effects, need = sides[to].on_reconcile(B if to == A else A, message)
        found[to] += need
        replies = [each.message for each in effects if isinstance(each, Send)]
        message = next((each for each in replies if isinstance(each, Reconcile)), None)
        to = A if to == B else B
    assert sorted(found[A]) == sorted(event(200 + height, height) for height in range(2, 92))
    assert sorted(found[B]) == sorted(event(100 + height, height) for height in range(2, 92))


def test_a_session_that_makes_no_progress_ends() -> None:
    a, b = side(A, 100), side(B, 200, 3)
    a.compare(B, Told(b.heads, 5))
    tick = SyncDue(TOPIC, B)
    dropped = Record(Kind.DROPPED, TOPIC, peer=B, reason=Reason.TIMEOUT, note="synchronisation")
    assert a.end_stalled(B) == [dropped]
    assert a.end_stalled(B) == []
    a.compare(B, Told(b.heads, 5))
    assert a.down(B) == [CancelTimer(tick)]
    assert a.down(B) == []


def test_what_belongs_to_no_session_of_ours_is_stale() -> None:
    a = side(A, 100)
    number = 2 * 7 + (A > B)
    effects, need = a.on_reconcile(B, Reconcile(TOPIC, number, ()))
    record = Record(Kind.REJECTED, TOPIC, peer=B, reason=Reason.STALE, note="reconciliation")
    assert (effects, need) == ([record], ())
    failed, _ = a.on_reconcile(B, Reconcile(TOPIC, number + 1, ()))
    assert failed[-1] == Record(
        Kind.REJECTED, TOPIC, peer=B, reason=Reason.PROTOCOL_ERROR, note="reconciliation"
    )
