"""How a stream stands, for people and programs that ask."""

from __future__ import annotations

from tests.delivery.voices import Voice
from tests.streams.stage import NOW, Staged, context_of

from linnet.core.ids import Contact, PeerId
from linnet.overlay.config import Overlay
from linnet.streams.commands import ChainStatus
from linnet.streams.membership import MOST_CHAINS, status_of

A, S, T = PeerId(b"a" * 32), PeerId(b"s" * 32), PeerId(b"t" * 32)


def test_it_tells_neighbours_storage_chains_and_counts() -> None:
    context = context_of()
    stream = Staged("tea", context)
    stream.handle_neighbor_up(A, NOW)
    stream.set_storage((Contact(S),), NOW)
    ann = Voice(topic=stream.topic)
    units = ann.units(4)
    for number in (0, 3):
        stream.ingest.accept(units[number], NOW)
    status = status_of(stream, context, T, Overlay.RING)
    assert (status.stream, status.topic, status.tracker, status.overlay) == (
        "tea",
        stream.topic,
        T,
        Overlay.RING,
    )
    assert (status.neighbors, status.storage_nodes, status.stores) == ((A,), (S,), False)
    identity = ann.identity
    assert status.chains == (ChainStatus(identity.author, identity.card.device, 3, 2),)


def test_it_lists_no_more_chains_than_anyone_reads() -> None:
    context = context_of()
    stream = Staged("tea", context)
    for number in range(MOST_CHAINS + 5):
        stream.ingest._begin(number.to_bytes(32, "big"), b"d" * 8, 0)  # type: ignore[arg-type]
    assert len(status_of(stream, context, None, Overlay.TRACKER).chains) == MOST_CHAINS
