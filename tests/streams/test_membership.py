"""Opening, lingering in and leaving streams."""

from __future__ import annotations

import pytest
from tests.delivery.voices import asked
from tests.overlay.harness import overlays_without_rings
from tests.streams.stage import NOW, context_of

from linnet.core.effects import SetTimer
from linnet.core.errors import BadText, Refused, StoreError
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.machine.outbox import Outbox
from linnet.overlay.config import Overlay
from linnet.overlay.tracker_choice import TrackerChoice
from linnet.store.memory import MemoryStore
from linnet.streams.commands import OverlayIs
from linnet.streams.config import StorageRule, StreamOptions, StreamsConfig
from linnet.streams.membership import SPACE, LingerDue, Memberships, OverlayChoice
from linnet.streams.stream_names import topic_of

TEA, NEWS = TopicId(b"t" * 32), TopicId(b"n" * 32)
TRACKER = Contact(PeerId(b"t" * 32), ("tls://t:1",))


def memberships_of(*rules: StorageRule) -> tuple[Memberships, Outbox]:
    out = Outbox()
    overlays = overlays_without_rings(out)
    return Memberships(
        context_of("us"), out, overlays, TrackerChoice([TRACKER]), StreamsConfig(rules=rules)
    ), out


def test_a_stream_is_opened_once_under_all_its_names() -> None:
    memberships, out = memberships_of()
    stream = memberships.open("me/tea", NOW)
    assert out.take()
    assert memberships.open("me/tea", NOW) is stream
    assert memberships.open(stream.name, NOW) is stream
    assert out.take() == []
    assert list(memberships) == [stream]
    assert memberships.get(stream.topic) is stream


def test_who_only_published_stays_from_the_last_time_on() -> None:
    memberships, out = memberships_of()
    stream = memberships.open("tea", NOW)
    timer = LingerDue(stream.topic)
    assert asked(out, memberships.linger, stream, NOW) == [SetTimer(60.0, timer)]
    assert asked(out, memberships.linger, stream, NOW + 20) == []
    assert asked(out, memberships.leave_unused, stream, False, NOW + 60) == [SetTimer(20.0, timer)]
    memberships.leave_unused(stream, False, NOW + 80)
    assert list(memberships) == []
    assert memberships.open("tea", NOW + 81) is not stream


def test_a_stream_that_is_kept_or_waited_for_is_not_left() -> None:
    memberships, out = memberships_of(StorageRule("kept"))
    kept = memberships.open("kept", NOW)
    assert kept.stores
    assert memberships.kept == ("kept",)
    other = memberships.open("other", NOW)
    assert asked(out, memberships.leave_unused, kept, False, NOW + 100) == []
    assert asked(out, memberships.leave_unused, other, True, NOW + 100) == []
    assert list(memberships) == [kept, other]


def test_a_stream_gets_another_overlay_whether_it_is_joined_or_not() -> None:
    memberships, out = memberships_of()
    with pytest.raises(Refused, match="linnet up --overlay ring"):
        memberships.switch("tea", Overlay.RING, NOW)
    told = memberships.switch("tea", Overlay.TRACKER, NOW)
    assert told == OverlayIs(topic_of("tea"), Overlay.TRACKER, Overlay.TRACKER)
    assert out.take() == []
    alone = Memberships(
        context_of("us"), out, overlays_without_rings(out), TrackerChoice([]), StreamsConfig()
    )
    with pytest.raises(Refused, match="no tracker is known"):
        alone.switch("tea", Overlay.TRACKER, NOW)
    alone.switch("tea", None, NOW)
    with pytest.raises(BadText):
        memberships.switch("", None, NOW)


def test_a_stream_is_kept_for_somebody_and_let_go_again() -> None:
    memberships, out = memberships_of(StorageRule("configured"))
    rule = StorageRule("tea", 60.0, 1000)
    memberships.keep(rule, NOW)
    stream = memberships.open("tea", NOW)
    assert stream.stores
    assert (stream.keeper.retention, stream.keeper.quota) == (60.0, 1000)
    assert asked(out, memberships.keep, rule, NOW) == []
    memberships.let_go("tea", NOW)
    assert not stream.stores
    assert (stream.keeper.retention, stream.keeper.quota) == (None, 0)
    memberships.leave_unused(stream, False, NOW + 60)
    assert list(memberships) == []
    assert asked(out, memberships.let_go, "tea", NOW) == []


def test_what_the_configuration_keeps_stays_kept() -> None:
    memberships, out = memberships_of(StorageRule("configured", 5.0, 50))
    memberships.keep(StorageRule("configured", 60.0, 1000), NOW)
    stream = memberships.open("configured", NOW)
    assert (stream.keeper.retention, stream.keeper.quota) == (5.0, 50)
    assert asked(out, memberships.let_go, "configured", NOW) == []
    assert stream.stores


def test_a_stream_that_is_open_already_is_kept_from_then_on() -> None:
    memberships, _ = memberships_of()
    stream = memberships.open("tea", NOW)
    assert not stream.stores
    memberships.keep(StorageRule("tea"), NOW)
    assert stream.stores
    assert stream.ingest.wants_all


def test_what_the_user_chose_goes_before_the_stream_s_setting_and_that_before_the_node_s() -> None:
    cells = MemoryStore().cells
    options = {"tea": StreamOptions(overlay=Overlay.RING), "news": StreamOptions()}
    choice = OverlayChoice(cells, options, Overlay.TRACKER)
    assert [choice.of("tea", TEA), choice.of("news", NEWS)] == [Overlay.RING, Overlay.TRACKER]
    choice.choose(TEA, Overlay.TRACKER)
    choice.choose(NEWS, Overlay.RING)
    again = OverlayChoice(cells, options, Overlay.TRACKER)
    assert [again.of("tea", TEA), again.of("news", NEWS)] == [Overlay.TRACKER, Overlay.RING]
    again.choose(TEA, None)
    assert again.of("tea", TEA) is Overlay.RING


def test_a_damaged_choice_is_told() -> None:
    cells = MemoryStore().cells
    cells.put(SPACE, TEA, b"mesh")
    with pytest.raises(StoreError, match="damaged"):
        OverlayChoice(cells, {}, Overlay.TRACKER).of("tea", TEA)
