"""The anchor alone; with a whole stream it is tested in test_stream.py."""

from __future__ import annotations

from tests.delivery.voices import asked
from tests.streams.stage import context_of

from linnet.core.effects import CancelTimer, Hold, Release, SetTimer
from linnet.core.ids import Contact, PeerId
from linnet.machine.outbox import Outbox
from linnet.streams.anchor import Anchor, AnchorDue
from linnet.streams.stream_names import topic_of

TOPIC = topic_of("weather")
NODE = Contact(PeerId(b"s" * 32), ("tls://s:1",))


def test_one_storage_node_is_held_until_it_answered() -> None:
    out = Outbox()
    anchor = Anchor(TOPIC, context_of("ann"), out)
    timer, purpose = AnchorDue(TOPIC), f"anchor {TOPIC.hex()[:16]}"
    assert asked(out, anchor.release) == []
    assert anchor.hold_one([NODE]) == NODE.peer
    assert out.take() == [Hold(NODE.peer, NODE.hints, purpose), SetTimer(5.0, timer)]
    assert anchor.peer == NODE.peer
    assert asked(out, anchor.release) == [CancelTimer(timer), Release(NODE.peer, purpose)]
    assert asked(out, anchor.release) == []
