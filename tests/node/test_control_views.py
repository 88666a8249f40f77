from __future__ import annotations

from linnet.core.ids import AuthorId, DeviceId, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.items import CaughtUp, Ended, Missed
from linnet.event.event import Event
from linnet.event.signing import message_tail
from linnet.identity.text import Sort, to_text
from linnet.node.control_types import CaughtUpView, EdgeView, EndedView, EventView, MissedView, RttView
from linnet.node.control_views import graph_view, item_view, publish_view
from linnet.overlay.tracked import Graph
from linnet.streams.commands import Fate, Published

TOPIC, AUTHOR, DEVICE = TopicId(b"t" * 32), AuthorId(b"a" * 32), DeviceId(b"d" * 8)
ONE, TWO = PeerId(b"1" * 32), PeerId(b"2" * 32)
TOPIC_TEXT, AUTHOR_TEXT = to_text(Sort.TOPIC, TOPIC), to_text(Sort.PERSON, AUTHOR)


def event(body: bytes) -> Event:
    return Event(EventId(b"e" * 32), TOPIC, AUTHOR, DEVICE, 3, EventId(b"p" * 32), message_tail(body, 9))


def test_an_event_has_its_body_as_text_if_it_is_text() -> None:
    shared = (to_text(Sort.EVENT, b"e" * 32), TOPIC_TEXT, AUTHOR_TEXT, DEVICE.hex(), "message", 9)
    prev = to_text(Sort.EVENT, b"p" * 32)
    assert item_view(event(b"hi")) == EventView(*shared, b"hi", 3, prev, "hi")
    assert item_view(event(b"\xff")) == EventView(*shared, b"\xff", 3, prev, None)


def test_what_is_said_between_events() -> None:
    missed = Missed(TOPIC, AUTHOR, DEVICE, 1, 2, Reason.GAP_UNFILLED)
    assert item_view(missed) == MissedView(TOPIC_TEXT, AUTHOR_TEXT, DEVICE.hex(), 1, 2, "gap_unfilled")
    assert item_view(CaughtUp(1.5, True, None)) == CaughtUpView(1.5, True, None)
    assert item_view(Ended(Reason.SHUTDOWN)) == EndedView("shutdown")


def test_an_outcome_tells_its_fates() -> None:
    reply = publish_view("s", Published(TOPIC, 4, (EventId(b"e" * 32),), 2, (Fate(ONE, True, None),)))
    assert (reply.topic, reply.first, reply.neighbors) == (TOPIC_TEXT, 4, 2)
    assert [(fate.receiver, fate.delivered_at) for fate in reply.fates] == [(to_text(Sort.DEVICE, ONE), None)]


def test_a_graph_has_every_node_and_what_was_measured() -> None:
    graph = graph_view(Graph(TOPIC, 4, True, ((ONE, (TWO,)), (TWO, (ONE,))), ((ONE, TWO, 0.5),)))
    one, two = to_text(Sort.DEVICE, ONE), to_text(Sort.DEVICE, TWO)
    assert graph.nodes == (EdgeView(one, (two,)), EdgeView(two, (one,)))
    assert (graph.near, graph.rtts) == (True, (RttView(one, two, 0.5),))
