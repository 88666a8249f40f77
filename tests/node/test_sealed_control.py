"""The endpoints of sealed streams; by their commands they are called in tests/cli/stream."""

from __future__ import annotations

from linnet.core.ids import AuthorId, DeviceId, PeerId, TopicId
from linnet.identity.text import Sort, from_text
from linnet.node.sealed_control import readers_view
from linnet.streams.commands import ReaderIs, ReadersAre


def test_readers_are_told_with_their_ids_as_text() -> None:
    reader = ReaderIs(AuthorId(b"a" * 32), DeviceId(b"d" * 8), PeerId(b"k" * 32), "bea", 3, 1_800_000_000)
    view = readers_view("me/news", ReadersAre(TopicId(b"t" * 32), 4, 1.5, (reader,), (reader,)))
    assert (view.stream, view.epoch, view.since) == ("me/news", 4, 1.5)
    assert view.readers == view.changed
    (shown,) = view.readers
    assert from_text(Sort.PERSON, shown.person) == reader.person
    assert from_text(Sort.DEVICE, shown.key) == reader.key
    assert (shown.device, shown.label, shown.epoch, shown.at) == (b"d".hex() * 8, "bea", 3, 1_800_000_000)
