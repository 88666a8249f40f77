"""A stream between a node on the edge and its proxy: how far it is known, and that the two have met."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from linnet.core.ids import PeerId, TopicId
from linnet.delivery.context import Context
from linnet.delivery.messages import ChainPlace
from linnet.edge.standing import digest_of
from linnet.streams.effects import StreamEffect
from linnet.streams.joined import Joined, JoinedEffect
from linnet.streams.options import StorageRule
from linnet.streams.stream import Stream

Heed = Callable[[Iterable[JoinedEffect], float], list[StreamEffect]]


class Serving:
    """All streams of a node, as proxies and clients speak of them (`linnet.edge.standing.Standing`)."""

    def __init__(self, context: Context, joined: Joined, heed: Heed) -> None:
        self._context = context
        self._joined = joined
        self._heed = heed

    def keep(self, rule: StorageRule, now: float) -> list[StreamEffect]:
        """Keep a stream for others from now on."""
        return self._heed(self._joined.keep(rule, now), now)

    def let_go(self, name: str, now: float) -> list[StreamEffect]:
        """Keep a stream for others no longer."""
        return self._heed(self._joined.let_go(name, now), now)

    def trim(self, topic: TopicId, most: int, now: float) -> list[StreamEffect]:
        """Remove the oldest of a stream until it takes no more than so many bytes."""
        stream = self._joined.get(topic)
        return [] if stream is None else [*stream.archive.evict(None, most, now)]

    def settle(
        self, nearby: Iterable[TopicId], withheld: Iterable[TopicId], now: float
    ) -> list[StreamEffect]:
        """On the edge: which streams are spoken of on local networks too, and which not with proxies."""
        return self._heed(self._joined.settle(nearby, withheld, now), now)

    def digest(self, topic: TopicId) -> bytes | None:
        """A digest of how far a stream is known; None if it is not open here."""
        stream = self._joined.get(topic)
        return None if stream is None else digest(stream, self._context)

    def reached(self, topic: TopicId) -> tuple[ChainPlace, ...]:
        """Every chain that was received without a gap, and up to where."""
        stream = self._joined.get(topic)
        return () if stream is None else reached(stream)


def reached(stream: Stream) -> tuple[ChainPlace, ...]:
    """Every chain that was received without a gap, and up to where."""
    return tuple(
        ChainPlace(chain.author, chain.device, min(chain.base, chain.next - 1), chain.next - 1, False)
        for chain in stream.intake.chains.values()
        if chain.next > 0
    )


def digest(stream: Stream, context: Context) -> bytes:
    """The same at two nodes that know the same of a stream: its chains, its policy, who was revoked."""
    return digest_of(stream.topic, reached(stream), _marks(stream, context))


def _marks(stream: Stream, context: Context) -> Iterator[bytes]:
    policy = stream.governance.unit
    if policy is not None:
        yield policy.sig
    for chain in stream.intake.chains.values():
        if context.cards.revocation_of(chain.author, chain.device) is not None:
            yield chain.key


def meet(stream: Stream, peer: PeerId, same: bool, now: float) -> list[StreamEffect]:
    """The proxy, or the client, of this stream is there. Who knows the same need not be told."""
    stream.flood.up(peer)
    stream.flood.neighbors[peer].is_served = True
    if not same:
        return [*stream.neighbor_up(peer, now), *_storage_up(stream, peer, same)]
    effects: list[StreamEffect] = [*_storage_up(stream, peer, same), *stream.backlog(now)]
    if peer in stream.storage and not stream.intake.anchored:
        stream.intake.anchored = True
        effects += [*stream.readers.anchored(), *stream.anchor.weigh()]
    return effects


def _storage_up(stream: Stream, peer: PeerId, same: bool) -> list[StreamEffect]:
    """What waited for somebody to ask asks now."""
    if peer not in stream.storage:
        return []
    watched = stream.publishing.rest(peer) if same else stream.publishing.up(peer)
    return [*stream.gaps.up(peer), *watched, *stream.readers.up(peer), *stream.confirming.up(peer)]
