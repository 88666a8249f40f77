"""The anchor alone; with a whole stream it is tested in test_stream.py."""

from __future__ import annotations

from tests.streams.stage import context_of

from linnet.core.effects import CancelTimer, Hold, Release, SetTimer
from linnet.core.ids import Contact, PeerId
from linnet.core.timers import Tick
from linnet.streams.anchor import Anchor
from linnet.streams.names import topic_of

TOPIC = topic_of("weather")
NODE = Contact(PeerId(b"s" * 32), ("tls://s:1",))


def test_one_storage_node_is_held_until_it_answered() -> None:
    anchor = Anchor(TOPIC, context_of("ann"))
    tick, purpose = Tick("anchor", "ask", TOPIC), f"anchor {TOPIC.hex()[:16]}"
    assert anchor.weigh() == []
    assert anchor.cast([NODE]) == (NODE.peer, [Hold(NODE.peer, NODE.hints, purpose), SetTimer(5.0, tick)])
    assert anchor.peer == NODE.peer
    assert anchor.weigh() == [CancelTimer(tick), Release(NODE.peer, purpose)]
    assert anchor.weigh() == []
