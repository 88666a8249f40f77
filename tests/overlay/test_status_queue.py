from __future__ import annotations

from tests.overlay.harness import TOPIC, peer_id, said

from linnet.core.effects import CancelTimer, Send, SetTimer
from linnet.machine.outbox import Outbox
from linnet.overlay.messages import StatusAll, TopicStatus
from linnet.overlay.status_queue import StatusQueue
from linnet.overlay.timers import StatusDue

TRACKER, OTHER = peer_id("tracker"), peer_id("other")
OLD, NEW = StatusAll(()), StatusAll((TopicStatus(TOPIC, ()),))


def test_each_newer_status_replaces_the_older_and_starts_the_wait_anew() -> None:
    out = Outbox()
    queue = StatusQueue(0.2, out)
    wait = SetTimer(0.2, StatusDue(TRACKER))
    assert said(out, queue.put, TRACKER, (OLD,)) == [wait]
    assert said(out, queue.put, TRACKER, (NEW,)) == [wait]
    assert said(out, queue.put, OTHER, (OLD,)) == [SetTimer(0.2, StatusDue(OTHER))]
    assert said(out, queue.send, TRACKER) == [Send(TRACKER, NEW)]
    assert said(out, queue.send, TRACKER) == []
    assert said(out, queue.send, OTHER) == [Send(OTHER, OLD)]


def test_what_waits_goes_with_the_link() -> None:
    out = Outbox()
    queue = StatusQueue(0.2, out)
    assert said(out, queue.drop, TRACKER) == []
    queue.put(TRACKER, (OLD,))
    assert said(out, queue.drop, TRACKER) == [CancelTimer(StatusDue(TRACKER))]
    assert said(out, queue.send, TRACKER) == []
