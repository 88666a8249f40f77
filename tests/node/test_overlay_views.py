from __future__ import annotations

from math import exp

import msgspec
import pytest

from linnet.core.ids import PeerId, TopicId
from linnet.identity.text import Sort, from_text
from linnet.node.control_views import device_text, topic_text
from linnet.node.overlay_types import EarlierView, PrivacyReply, RingView
from linnet.node.overlay_views import names_of, overlay_view, privacy_view, switch_view, trust_view
from linnet.overlay.config import Overlay
from linnet.overlay.trackerless.commands import TrustIs
from linnet.overlay.trackerless.privacy import Budget
from linnet.overlay.trackerless.status import RingStatus, TrackerlessStatus
from linnet.peer.interface import NodeStatus
from linnet.store.memory import MemoryStore
from linnet.streams.commands import OverlayIs, StreamStatus

A, B = PeerId(b"a" * 32), PeerId(b"b" * 32)
TEA, NEWS = TopicId(b"t" * 32), TopicId(b"n" * 32)


def _budget() -> Budget:
    return Budget(MemoryStore().cells)


def test_nothing_told_is_nothing() -> None:
    view = privacy_view(_budget().told())
    assert view == PrivacyReply((), 0.0, 1.0, 0.5, (), 0, (), (), EarlierView(0, 0.0, 0, 0, 0, 0, 0))


def test_all_that_was_told_is_there_and_adds_up() -> None:
    budget = _budget()
    budget.released(2952, 3.0, 10.0)
    budget.released(2953, 3.0, 20.0)
    budget.released(2953, 3.0, 21.0, b"\x0a")
    budget.answered(2953, 3.0, 22.0)
    budget.intersected(A, 5, 2, 30.0, tested=16)
    budget.announced(b"\x0a", 40.0)
    budget.served(B, TEA, 50.0)
    view = privacy_view(budget.told())
    assert [(one.epoch, one.network, one.epsilon, one.answers) for one in view.filters] == [
        (2952, "", 3.0, 0.0),
        (2953, "", 6.0, 3.0),
        (2953, "0a", 3.0, 0.0),
    ]
    assert view.epsilon == 12.0
    assert view.odds == pytest.approx(exp(12))
    assert view.surest == pytest.approx(1 / (1 + exp(-12)))
    (met,) = view.intersections
    assert (from_text(Sort.DEVICE, met.peer), met.runs, met.bucket, met.tested, met.common) == (
        *(A, 1, 16, 16, 2),
    )
    assert [(one.network, one.times) for one in view.announcements] == [("0a", 1)]
    assert [(one.proxy, one.topics) for one in view.proxies] == [(device_text(B), 1)]


def test_decades_of_filters_are_still_a_number() -> None:
    budget = _budget()
    for epoch in range(2000):
        budget.released(epoch, 3.0, float(epoch))
    view = privacy_view(budget.told())
    assert view.epsilon == 6000.0
    assert view.earlier.releases == 2000 - len(view.filters)
    assert msgspec.json.decode(msgspec.json.encode(view), type=PrivacyReply) == view


def test_topics_have_the_names_of_their_streams() -> None:
    stream = StreamStatus("tea", TEA, None, (), (), False, 0, 0, 0, 0, 0, 0, 0, 0, 0, ())
    status = NodeStatus(A, bytes(32), 0.0, (), (), None, None, (), (), (stream,), ())
    rings = (RingStatus(TEA, 3, (A,), (B,), (A, B), 1), RingStatus(NEWS, 0, (), (), (), 0))
    told = TrackerlessStatus(7, (A, B), (A,), (B,), 5, 2, rings, 4, 1)
    view = overlay_view(told, names_of(status))
    assert (view.rounds, view.acquaintances, view.held, view.intersections, view.intersections_empty) == (
        *(7, 5, 2, 4, 1),
    )
    a, b = device_text(A), device_text(B)
    assert (view.sample, view.alike, view.fingers) == ((a, b), (a,), (b,))
    assert view.rings == (
        RingView(topic_text(TEA), "tea", 3, (a,), (b,), (a, b), 1),
        RingView(topic_text(NEWS), None, 0, (), (), (), 0),
    )


def test_trust_and_a_switch() -> None:
    assert [(one.device, one.value) for one in trust_view(TrustIs(((A, 1.0),))).devices] == [
        (device_text(A), 1.0)
    ]
    view = switch_view("tea", OverlayIs(TEA, Overlay.RING, Overlay.TRACKER))
    assert (view.stream, view.topic, view.overlay, view.before) == ("tea", topic_text(TEA), "ring", "tracker")
