from __future__ import annotations

from tests.overlay.harness import TOPIC, peer_id

from linnet.core.effects import CancelTimer, Send, SetTimer
from linnet.core.timers import Tick
from linnet.overlay.messages import StatusAll, TopicStatus
from linnet.overlay.status_queue import StatusQueue

TRACKER, OTHER = peer_id("tracker"), peer_id("other")
OLD, NEW = StatusAll(()), StatusAll((TopicStatus(TOPIC, ()),))


def test_each_newer_status_replaces_the_older_and_starts_the_wait_anew() -> None:
    queue = StatusQueue(0.2)
    wait = SetTimer(0.2, Tick("member", "status", TRACKER))
    assert queue.put(TRACKER, (OLD,)) == [wait]
    assert queue.put(TRACKER, (NEW,)) == [wait]
    assert queue.put(OTHER, (OLD,)) == [SetTimer(0.2, Tick("member", "status", OTHER))]
    assert queue.fire(TRACKER) == [Send(TRACKER, NEW)]
    assert queue.fire(TRACKER) == []
    assert queue.fire(OTHER) == [Send(OTHER, OLD)]


def test_what_waits_goes_with_the_link() -> None:
    queue = StatusQueue(0.2)
    assert queue.drop(TRACKER) == []
    queue.put(TRACKER, (OLD,))
    assert queue.drop(TRACKER) == [CancelTimer(Tick("member", "status", TRACKER))]
    assert queue.fire(TRACKER) == []
