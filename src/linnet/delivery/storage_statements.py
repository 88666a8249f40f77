"""Statements of storage nodes: what they keep, signed so that anybody can hold it against them later.

A statement names a range of each chain and the id of its last event. The id of an event covers the event
before it, so this one id commits to the whole range (docs/adr/0038-what-storage-nodes-sign.md).

Two statements of one storage node may contradict each other. Nobody else can sign them, so the two are a
proof. An honest node never makes one, whatever it evicts, loses, or does to its clock:

- The position of its log only grows, and no chain ends earlier at a later position.
- No number of a chain ever has two ids.
- For an event that it has stated and no longer has, it says why: evicted, or damaged.
- A store that began anew, or was put back from a copy, has another number, and is held to nothing of before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import islice

import msgspec

from linnet.core.errors import InvalidEvent
from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.spaces import STORE_NUMBER
from linnet.core.stores import Cells
from linnet.delivery.chain import ChainKey
from linnet.delivery.messages import ChainPlace, Contradiction, Kept, Shown
from linnet.identity.keys import SigningKey, verify

EXCUSES = (Reason.RETENTION, Reason.QUOTA, Reason.DAMAGED)
"""Why an honest storage node may lack an event that it has stated."""
MAX_PROOFS = 1024
"""The most proofs that a node keeps: one for a storage node."""

MOST_SHOWN = 16
"""The most proofs from one topic that a newcomer is shown: anybody can make some against their own keys."""

_KEPT_TAG, _SHOWN_TAG = b"linnet/kept/1", b"linnet/shown/1"
_PROOFS = "contradiction"
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Contradiction).decode


def store_number(cells: Cells, peer: PeerId, now: float) -> bytes:
    """Return the number of our store, made when it is first asked for."""
    kept = cells.get(*STORE_NUMBER)
    if kept is None:
        kept = hashlib.sha256(_encode((b"linnet/store/1", peer, now))).digest()[:8]
        cells.put(*STORE_NUMBER, kept)
    return kept


def sign_kept(
    key: SigningKey,
    topic: TopicId,
    store: bytes,
    position: int,
    now: float,
    chains: tuple[ChainPlace, ...],
    heads: tuple[EventId, ...],
    *,
    request: int = 0,
    since_ms: int = 0,
    done: bool = True,
    refuses: Reason | None = None,
) -> Kept:
    """Sign a statement as this device."""
    keeper, at_ms = PeerId(key.public), int(now * 1000)
    fields = (topic, keeper, store, position, at_ms, request, since_ms, done, chains, heads, refuses)
    return Kept(*fields, sig=key.sign(_KEPT_TAG + _encode(fields)))


def check_kept(kept: Kept) -> None:
    """Raise `RemoteError` unless the storage node signed it and it is whole."""
    if len(kept.heads) != len(kept.chains):
        raise InvalidEvent(Reason.MALFORMED, "a statement needs the last id of each chain")
    fields = (
        *(kept.topic, kept.keeper, kept.store, kept.position, kept.at_ms),
        *(kept.request, kept.since_ms, kept.done, kept.chains, kept.heads),
        kept.refuses,
    )
    verify(kept.keeper, _KEPT_TAG + _encode(fields), kept.sig)


def sign_shown(key: SigningKey, shown: Shown) -> Shown:
    """Sign the answer to a request for one event as this device."""
    return msgspec.structs.replace(shown, sig=key.sign(_SHOWN_TAG + _encode(_signed(shown))))


def check_shown(shown: Shown) -> None:
    """Raise `RemoteError` unless the storage node signed it."""
    if (shown.id is None) == (shown.reason is None):
        raise InvalidEvent(Reason.MALFORMED, "an event is shown, or there is a reason why it is not")
    verify(shown.keeper, _SHOWN_TAG + _encode(_signed(shown)), shown.sig)


def _signed(shown: Shown) -> tuple[object, ...]:
    return (
        *(shown.topic, shown.keeper, shown.store, shown.position, shown.request),
        *(shown.author, shown.device, shown.number, shown.id, shown.reason),
    )


def place_of(kept: Kept, chain: ChainKey) -> tuple[ChainPlace, EventId] | None:
    """Return what a statement says of a chain, if anything."""
    for place, head in zip(kept.chains, kept.heads, strict=True):
        if place.author + place.device == chain:
            return place, head
    return None


def contradicting_chain(kept: Kept, other: Kept | Shown) -> ChainPlace | None:
    """Return the chain of which two checked statements cannot both be true; None if both can."""
    same = (kept.topic, kept.keeper, kept.store) == (other.topic, other.keeper, other.store)
    if not same:
        return None
    if isinstance(other, Shown):
        return _contradicts_answer(kept, other)
    stated = {place.author + place.device: (place, head) for place, head in _pairs(other)}
    for place, head in _pairs(kept):
        found = stated.get(place.author + place.device)
        if found is None:
            continue
        last, other_last = place.last, found[0].last
        if last == other_last:
            is_wrong = head != found[1]
        else:
            # Whoever has more is the later one, and its log has grown.
            later, earlier = (kept, other) if last > other_last else (other, kept)
            is_wrong = later.position <= earlier.position
        if is_wrong:
            return place
    return None


def _pairs(kept: Kept) -> Iterator[tuple[ChainPlace, EventId]]:
    return zip(kept.chains, kept.heads, strict=True)


def _contradicts_answer(kept: Kept, shown: Shown) -> ChainPlace | None:
    found = place_of(kept, shown.author + shown.device)
    if found is None:
        return None
    place, head = found
    if shown.id is not None:
        return place if shown.number == place.last and shown.id != head else None
    is_stated = place.first <= shown.number <= place.last and shown.position >= kept.position
    return place if is_stated and shown.reason not in EXCUSES else None


def check_contradiction(proof: Contradiction) -> ChainPlace:
    """Return the chain about which a storage node contradicts itself; raises `RemoteError` if it does not."""
    check_kept(proof.kept)
    if isinstance(proof.other, Kept):
        check_kept(proof.other)
    else:
        check_shown(proof.other)
    place = contradicting_chain(proof.kept, proof.other)
    if place is None:
        raise InvalidEvent(Reason.MALFORMED, "two statements that may both be true prove nothing")
    return place


class Contradictions:
    """The storage nodes that are proved to have contradicted themselves, and the proofs."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self._known: dict[PeerId, TopicId] = {
            PeerId(key): _decode(raw).topic for key, raw in cells.scan(_PROOFS)
        }
        """The storage nodes, and the topics of the proofs."""

    def __contains__(self, keeper: object) -> bool:
        return keeper in self._known

    def __len__(self) -> int:
        return len(self._known)

    def keep(self, proof: Contradiction) -> None:
        """Keep a checked proof; the oldest one makes room."""
        if len(self._known) >= MAX_PROOFS and proof.kept.keeper not in self._known:
            oldest = next(iter(self._known))
            del self._known[oldest]
            self._cells.delete(_PROOFS, oldest)
        small = proof
        if isinstance(proof.other, Shown):
            small = Contradiction(proof.kept, msgspec.structs.replace(proof.other, unit=None, card=None))
        self._known[proof.kept.keeper] = proof.topic
        self._cells.put(_PROOFS, proof.kept.keeper, _encode(small))

    def of_topic(self, topic: TopicId) -> Iterator[Contradiction]:
        """Yield the latest proofs from a topic, as many as a newcomer is shown."""
        found = (keeper for keeper in reversed(self._known) if self._known[keeper] == topic)
        for keeper in islice(found, MOST_SHOWN):
            raw = self._cells.get(_PROOFS, keeper)
            if raw is not None:
                yield _decode(raw)
