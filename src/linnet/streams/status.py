"""How one stream stands at this node, for people and programs that ask."""

from __future__ import annotations

from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.delivery.context import Context
from linnet.overlay.config import Overlay
from linnet.streams.commands import ChainStatus, StreamStatus
from linnet.streams.stream import Stream

MOST_CHAINS = 256
"""Chains that a status lists; a stream may have very many."""


def status_of(
    stream: Stream, context: Context, tracker: PeerId | None, overlay: Overlay, alone: Reason | None = None
) -> StreamStatus:
    """How a stream stands."""
    kept = context.store.log.kept(stream.topic)
    chains = [
        ChainStatus(
            chain.author,
            chain.device,
            chain.seen.last,
            sum(last - first + 1 for first, last in chain.missing()),
        )
        for chain in list(stream.ingest.chains.values())[:MOST_CHAINS]
    ]
    return StreamStatus(
        stream.name,
        stream.topic,
        tracker,
        tuple(stream.flood.neighbors),
        tuple(stream.storage),
        stream.stores,
        len(stream.readers),
        stream.received,
        stream.duplicates,
        stream.rejected,
        stream.gaps.open,
        stream.gaps.filled,
        stream.gaps.lost,
        kept.events,
        kept.bytes,
        tuple(chains),
        overlay,
        alone,
    )
