"""A digest of how far chains go: the same for the same, another for anything else."""

from __future__ import annotations

from linnet.core.ids import AuthorId, DeviceId, TopicId
from linnet.delivery.messages import ChainPlace
from linnet.edge.messages import digest_of

TOPIC, OTHER = TopicId(b"t" * 32), TopicId(b"o" * 32)


def place(name: bytes, last: int, first: int = 0) -> ChainPlace:
    return ChainPlace(AuthorId(name * 32), DeviceId(name * 8), first, last, False)


def test_the_order_does_not_matter_and_neither_does_where_a_chain_begins() -> None:
    one = digest_of(TOPIC, [place(b"a", 4), place(b"b", 7)], [b"policy", b"gone"])
    assert one == digest_of(TOPIC, [place(b"b", 7, first=3), place(b"a", 4)], [b"gone", b"policy"])
    assert len(one) == 16


def test_everything_else_does() -> None:
    digests = [
        digest_of(TOPIC, []),
        digest_of(OTHER, []),
        digest_of(TOPIC, [place(b"a", 4)]),
        digest_of(TOPIC, [place(b"a", 5)]),
        digest_of(TOPIC, [place(b"b", 4)]),
        digest_of(TOPIC, [place(b"a", 4), place(b"b", 4)]),
        digest_of(TOPIC, [place(b"a", 4)], [b"policy"]),
        digest_of(TOPIC, [place(b"a", 4)], [b"another"]),
    ]
    assert len(set(digests)) == len(digests)
