"""What a node says of itself: frozen for an epoch, the same after a restart, renewed in time."""

from __future__ import annotations

from msgspec.structs import replace

from linnet.core.ids import TopicId
from linnet.identity.keys import SigningKey
from linnet.overlay.gossip.config import DAY, TrackerlessConfig
from linnet.overlay.gossip.descriptor import OwnDescriptor, check_descriptor
from linnet.overlay.gossip.topic_tags import TopicKeys, tag_in, topic_keys
from linnet.store.memory import MemoryStore

KEY = SigningKey(bytes([3]) * 32)
CONFIG = TrackerlessConfig()
NOW = 1_800_000_000.0
AT = ("tls://h:1",)


def _entropy(count: int) -> bytes:
    return bytes(range(count))


def _topics(count: int) -> dict[TopicId, TopicKeys]:
    ids = [TopicId(bytes([at]) * 32) for at in range(count)]
    return {topic: topic_keys(topic) for topic in ids}


def _own(store: MemoryStore | None = None) -> OwnDescriptor:
    return OwnDescriptor(KEY, CONFIG, (store or MemoryStore()).cells, _entropy, AT)


def test_without_topics_nothing_is_shown_and_the_descriptor_is_good() -> None:
    shown = _own().make_profile(NOW)
    check_descriptor(shown.descriptor, NOW)
    assert (shown.descriptor.filter, shown.descriptor.hints, shown.released) == (b"", AT, False)


def test_the_filter_waits_for_more_topics_and_is_then_frozen_for_the_epoch() -> None:
    own = _own()
    own.set_topics(_topics(3), NOW)
    assert own.make_profile(NOW).descriptor.filter == b""
    later = NOW + CONFIG.release_delay
    first = own.make_profile(later)
    assert first.released
    assert len(first.descriptor.filter) == CONFIG.filter_bits // 8
    own.set_topics(_topics(9), later + 10)
    again = own.make_profile(later + 3600)
    assert (again.descriptor.filter, again.released) == (first.descriptor.filter, False)
    assert again.interests.topics == 9
    check_descriptor(again.descriptor, later + 3600)


def test_a_restart_shows_the_same_filter_and_another_epoch_another() -> None:
    store = MemoryStore()
    own = _own(store)
    own.set_topics(_topics(5), NOW)
    later = NOW + CONFIG.release_delay
    first = own.make_profile(later).descriptor
    restarted = _own(store)
    restarted.set_topics(_topics(2), later)
    assert restarted.make_profile(later + 1).descriptor.filter == first.filter
    next_epoch = later + CONFIG.epoch_days * DAY
    other = restarted.make_profile(next_epoch)
    assert other.released
    assert other.descriptor.filter not in (b"", first.filter)
    assert other.descriptor.epoch == first.epoch + 1


def test_it_is_signed_anew_at_half_its_life_with_a_higher_version() -> None:
    own = _own()
    first = own.make_profile(NOW).descriptor
    assert own.make_profile(NOW + DAY / 2 - 60).descriptor is first
    second = own.make_profile(NOW + DAY / 2 + 60).descriptor
    assert second.version > first.version
    assert second.expires > first.expires


def test_other_addresses_are_told_at_once() -> None:
    own = _own()
    first = own.make_profile(NOW).descriptor
    own.listens = ("tls://other:2",)
    second = own.make_profile(NOW).descriptor
    assert (second.hints, second.version) == (("tls://other:2",), first.version + 2)
    assert replace(second, version=first.version, hints=AT, sig=first.sig) == first


def test_tags_are_those_of_the_epoch() -> None:
    own = _own()
    topics = _topics(2)
    own.set_topics(topics, NOW)
    assert own.tags_in(7) == {tag_in(keys, 7): topic for topic, keys in topics.items()}


def test_on_a_local_network_no_filter_is_shown_and_it_never_replaces_the_whole() -> None:
    own = _own()
    own.set_topics(_topics(3), NOW)
    shown = own.make_profile(NOW + CONFIG.release_delay)
    check_descriptor(shown.plain, NOW + CONFIG.release_delay)
    assert (shown.plain.filter, shown.plain.version) == (b"", shown.descriptor.version - 1)
    assert own.make_profile(NOW + CONFIG.release_delay + 1).plain is shown.plain
