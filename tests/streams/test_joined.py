"""Opening, lingering in and leaving streams."""

from __future__ import annotations

import pytest
from tests.delivery.voices import asked
from tests.overlay.harness import overlays_without_rings
from tests.streams.stage import NOW, context_of

from linnet.core.effects import SetTimer
from linnet.core.errors import BadText, Refused
from linnet.core.ids import Contact, PeerId
from linnet.machine.outbox import Outbox
from linnet.overlay.config import Overlay
from linnet.overlay.registry import Registry
from linnet.streams.commands import OverlayIs
from linnet.streams.joined import Joined, LingerDue
from linnet.streams.options import StorageRule
from linnet.streams.stream_names import topic_of

TRACKER = Contact(PeerId(b"t" * 32), ("tls://t:1",))


def joined_of(*rules: StorageRule) -> tuple[Joined, Outbox]:
    out = Outbox()
    overlays = overlays_without_rings(out)
    return Joined(context_of("us"), out, overlays, Registry([TRACKER]), {}, rules), out


def test_a_stream_is_opened_once_under_all_its_names() -> None:
    joined, out = joined_of()
    stream = joined.open("me/tea", NOW)
    assert out.take()
    assert joined.open("me/tea", NOW) is stream
    assert joined.open(stream.name, NOW) is stream
    assert out.take() == []
    assert list(joined) == [stream]
    assert joined.get(stream.topic) is stream


def test_who_only_published_stays_from_the_last_time_on() -> None:
    joined, out = joined_of()
    stream = joined.open("tea", NOW)
    timer = LingerDue(stream.topic)
    assert asked(out, joined.linger, stream, NOW) == [SetTimer(60.0, timer)]
    assert asked(out, joined.linger, stream, NOW + 20) == []
    assert asked(out, joined.leave_unused, stream, False, NOW + 60) == [SetTimer(20.0, timer)]
    joined.leave_unused(stream, False, NOW + 80)
    assert list(joined) == []
    assert joined.open("tea", NOW + 81) is not stream


def test_a_stream_that_is_kept_or_waited_for_is_not_left() -> None:
    joined, out = joined_of(StorageRule("kept"))
    kept = joined.open("kept", NOW)
    assert kept.stores
    assert joined.kept == ("kept",)
    other = joined.open("other", NOW)
    assert asked(out, joined.leave_unused, kept, False, NOW + 100) == []
    assert asked(out, joined.leave_unused, other, True, NOW + 100) == []
    assert list(joined) == [kept, other]


def test_a_stream_gets_another_overlay_whether_it_is_joined_or_not() -> None:
    joined, out = joined_of()
    with pytest.raises(Refused, match="linnet up --overlay ring"):
        joined.switch("tea", Overlay.RING, NOW)
    told = joined.switch("tea", Overlay.TRACKER, NOW)
    assert told == OverlayIs(topic_of("tea"), Overlay.TRACKER, Overlay.TRACKER)
    assert out.take() == []
    alone = Joined(context_of("us"), out, overlays_without_rings(out), Registry([]), {}, ())
    with pytest.raises(Refused, match="no tracker is known"):
        alone.switch("tea", Overlay.TRACKER, NOW)
    alone.switch("tea", None, NOW)
    with pytest.raises(BadText):
        joined.switch("", None, NOW)


def test_a_stream_is_kept_for_somebody_and_let_go_again() -> None:
    joined, out = joined_of(StorageRule("configured"))
    rule = StorageRule("tea", 60.0, 1000)
    joined.keep(rule, NOW)
    stream = joined.open("tea", NOW)
    assert stream.stores
    assert (stream.keeper.retention, stream.keeper.quota) == (60.0, 1000)
    assert asked(out, joined.keep, rule, NOW) == []
    joined.let_go("tea", NOW)
    assert not stream.stores
    assert (stream.keeper.retention, stream.keeper.quota) == (None, 0)
    joined.leave_unused(stream, False, NOW + 60)
    assert list(joined) == []
    assert asked(out, joined.let_go, "tea", NOW) == []


def test_what_the_configuration_keeps_stays_kept() -> None:
    joined, out = joined_of(StorageRule("configured", 5.0, 50))
    joined.keep(StorageRule("configured", 60.0, 1000), NOW)
    stream = joined.open("configured", NOW)
    assert (stream.keeper.retention, stream.keeper.quota) == (5.0, 50)
    assert asked(out, joined.let_go, "configured", NOW) == []
    assert stream.stores


def test_a_stream_that_is_open_already_is_kept_from_then_on() -> None:
    joined, _ = joined_of()
    stream = joined.open("tea", NOW)
    assert not stream.stores
    joined.keep(StorageRule("tea"), NOW)
    assert stream.stores
    assert stream.ingest.wants_all
