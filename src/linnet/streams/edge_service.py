"""A stream between a node on the edge and its proxy: how far it is known, and that the two have met."""

from __future__ import annotations

from collections.abc import Iterator

from linnet.core.ids import PeerId, TopicId
from linnet.delivery.context import Context
from linnet.delivery.messages import ChainPlace
from linnet.edge.standing import digest_of
from linnet.streams.membership import Memberships
from linnet.streams.stream import Stream


class Serving:
    """All streams of a node, as proxies and clients speak of them (`linnet.edge.standing.Standing`)."""

    def __init__(self, context: Context, memberships: Memberships) -> None:
        self._context = context
        self._memberships = memberships

    def digest(self, topic: TopicId) -> bytes | None:
        """A digest of how far a stream is known; None if it is not open here."""
        stream = self._memberships.get(topic)
        return None if stream is None else digest(stream, self._context)

    def reached(self, topic: TopicId) -> tuple[ChainPlace, ...]:
        """Every chain that was received without a gap, and up to where."""
        stream = self._memberships.get(topic)
        return () if stream is None else reached(stream)


def reached(stream: Stream) -> tuple[ChainPlace, ...]:
    """Every chain that was received without a gap, and up to where."""
    return tuple(
        ChainPlace(chain.author, chain.device, min(chain.base, chain.next - 1), chain.next - 1, False)
        for chain in stream.ingest.chains.values()
        if chain.next > 0
    )


def digest(stream: Stream, context: Context) -> bytes:
    """The same at two nodes that know the same of a stream: its chains, its policy, who was revoked."""
    return digest_of(stream.topic, reached(stream), _marks(stream, context))


def _marks(stream: Stream, context: Context) -> Iterator[bytes]:
    policy = stream.governance.unit
    if policy is not None:
        yield policy.sig
    for chain in stream.ingest.chains.values():
        if context.cards.revocation_of(chain.author, chain.device) is not None:
            yield chain.key


def meet(stream: Stream, peer: PeerId, same: bool, now: float) -> None:
    """The proxy, or the client, of this stream is there. Who knows the same need not be told."""
    stream.flood.up(peer)
    stream.flood.neighbors[peer].is_served = True
    if not same:
        stream.handle_neighbor_up(peer, now)
        _ask_storage(stream, peer, same)
        return
    _ask_storage(stream, peer, same)
    stream.send_backlog(now)
    if peer in stream.storage and not stream.ingest.anchored:
        stream.note_anchored()


def _ask_storage(stream: Stream, peer: PeerId, same: bool) -> None:
    """What waited for somebody to ask asks now."""
    if peer not in stream.storage:
        return
    stream.gaps.handle_link_up(peer)
    if same:
        stream.publisher.watch_if_owed(peer)
    else:
        stream.publisher.handle_link_up(peer)
    stream.readers.handle_link_up(peer)
    stream.acknowledgements.handle_link_up(peer)
