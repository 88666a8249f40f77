"""A session that is over: its messages move nothing. The rest is tested where rooms synchronise."""

from __future__ import annotations

from linnet.core.ids import PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.causal_graph import Dag
from linnet.delivery.messages import Reconcile
from linnet.delivery.set_reconciliation import SortedIds
from linnet.machine.outbox import Outbox
from linnet.sim.light_topic import LightSync
from linnet.trace.records import Kind, Record

A, B = PeerId(b"a" * 32), PeerId(b"b" * 32)
TOPIC = TopicId(b"t" * 32)


def test_what_belongs_to_no_session_of_ours_is_stale() -> None:
    out = Outbox()
    sync = LightSync(TOPIC, A, Dag(), SortedIds(), out)
    number = 2 * 7 + (A > B)
    assert sync.handle_reconcile(B, Reconcile(TOPIC, number, ()), None) == ()
    stale, broken = (
        Record(Kind.REJECTED, TOPIC, peer=B, reason=reason, note="reconciliation")
        for reason in (Reason.STALE, Reason.PROTOCOL_ERROR)
    )
    assert out.take() == [stale]
    sync.handle_reconcile(B, Reconcile(TOPIC, number + 1, ()), None)
    assert out.take()[-1] == broken
