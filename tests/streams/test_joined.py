"""Opening, lingering in and leaving streams."""

from __future__ import annotations

import pytest
from tests.overlay.harness import overlays_without_rings
from tests.streams.stage import NOW, context_of

from linnet.core.effects import SetTimer
from linnet.core.errors import BadText, Refused
from linnet.core.ids import Contact, PeerId
from linnet.core.timers import Tick
from linnet.overlay.config import Overlay
from linnet.overlay.registry import Registry
from linnet.streams.commands import OverlayIs
from linnet.streams.joined import Joined
from linnet.streams.names import topic_of
from linnet.streams.options import StorageRule

TRACKER = Contact(PeerId(b"t" * 32), ("tls://t:1",))


def joined_of(*rules: StorageRule) -> Joined:
    return Joined(context_of("us"), overlays_without_rings(), Registry([TRACKER]), {}, rules)


def test_a_stream_is_opened_once_under_all_its_names() -> None:
    joined = joined_of()
    stream, effects = joined.open("me/tea", NOW)
    assert effects
    assert joined.open("me/tea", NOW) == (stream, [])
    assert joined.open(stream.name, NOW) == (stream, [])
    assert list(joined) == [stream]
    assert joined.get(stream.topic) is stream


def test_who_only_published_stays_from_the_last_time_on() -> None:
    joined = joined_of()
    stream, _ = joined.open("tea", NOW)
    tick = Tick("joined", "linger", stream.topic)
    assert joined.linger(stream, NOW) == [SetTimer(60.0, tick)]
    assert joined.linger(stream, NOW + 20) == []
    assert joined.lingered(stream, False, NOW + 60) == [SetTimer(20.0, tick)]
    joined.lingered(stream, False, NOW + 80)
    assert list(joined) == []
    assert joined.open("tea", NOW + 81)[0] is not stream


def test_a_stream_that_is_kept_or_waited_for_is_not_left() -> None:
    joined = joined_of(StorageRule("kept"))
    kept, _ = joined.open("kept", NOW)
    assert kept.stores
    assert joined.kept == ("kept",)
    other, _ = joined.open("other", NOW)
    assert joined.lingered(kept, False, NOW + 100) == []
    assert joined.lingered(other, True, NOW + 100) == []
    assert list(joined) == [kept, other]


def test_a_stream_gets_another_overlay_whether_it_is_joined_or_not() -> None:
    joined = joined_of()
    with pytest.raises(Refused, match="linnet up --overlay ring"):
        joined.switch("tea", Overlay.RING, NOW)
    told, effects = joined.switch("tea", Overlay.TRACKER, NOW)
    assert (told, effects) == (OverlayIs(topic_of("tea"), Overlay.TRACKER, Overlay.TRACKER), [])
    alone = Joined(context_of("us"), overlays_without_rings(), Registry([]), {}, ())
    with pytest.raises(Refused, match="no tracker is known"):
        alone.switch("tea", Overlay.TRACKER, NOW)
    alone.switch("tea", None, NOW)
    with pytest.raises(BadText):
        joined.switch("", None, NOW)


def test_a_stream_is_kept_for_somebody_and_let_go_again() -> None:
    joined = joined_of(StorageRule("configured"))
    rule = StorageRule("tea", 60.0, 1000)
    joined.keep(rule, NOW)
    stream, _ = joined.open("tea", NOW)
    assert stream.stores
    assert (stream.keeper.retention, stream.keeper.quota) == (60.0, 1000)
    assert joined.keep(rule, NOW) == []
    joined.let_go("tea", NOW)
    assert not stream.stores
    assert (stream.keeper.retention, stream.keeper.quota) == (None, 0)
    joined.lingered(stream, False, NOW + 60)
    assert list(joined) == []
    assert joined.let_go("tea", NOW) == []


def test_what_the_configuration_keeps_stays_kept() -> None:
    joined = joined_of(StorageRule("configured", 5.0, 50))
    joined.keep(StorageRule("configured", 60.0, 1000), NOW)
    stream, _ = joined.open("configured", NOW)
    assert (stream.keeper.retention, stream.keeper.quota) == (5.0, 50)
    assert joined.let_go("configured", NOW) == []
    assert stream.stores


def test_a_stream_that_is_open_already_is_kept_from_then_on() -> None:
    joined = joined_of()
    stream, _ = joined.open("tea", NOW)
    assert not stream.stores
    joined.keep(StorageRule("tea"), NOW)
    assert stream.stores
    assert stream.intake.wants_all
