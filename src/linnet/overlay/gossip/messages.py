"""The messages of nodes without trackers (tags 19 to 29, and 80). No message names a topic.

None of them says anything about trust, age or similarity: each node keeps these to itself.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

from linnet.core.ids import Count, Hints, WirePeerId
from linnet.core.messages import Message
from linnet.core.reasons import Reason

FILTER_BYTES = 1024
DESCRIPTORS = 32
POINTS = 256
RINGS = 64
POSITIONS = 32
SEALED_BYTES = 1024

Signature = Annotated[bytes, Meta(min_length=64, max_length=64)]
Point = Annotated[bytes, Meta(min_length=32, max_length=32)]
Nonce = Annotated[bytes, Meta(min_length=16, max_length=16)]
Proof = Annotated[bytes, Meta(min_length=16, max_length=16)]
Hint = Annotated[bytes, Meta(min_length=8, max_length=8)]
Points = Annotated[tuple[Point, ...], Meta(max_length=POINTS)]


class Descriptor(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """The statement of a node about itself, signed with the key that authenticates its links."""

    peer: WirePeerId
    version: Count
    """The newest version counts."""
    epoch: Count
    filter: Annotated[bytes, Meta(max_length=FILTER_BYTES)]
    """The node's topics as a filter, randomised once for the epoch; empty if it shows none."""
    epsilon_milli: Annotated[int, Meta(ge=0, le=1_000_000)]
    """Thousandths of the epsilon with which the filter was randomised."""
    hashes: Annotated[int, Meta(ge=1, le=16)]
    hints: Hints
    expires: Count
    """Unix time in seconds after which the descriptor is passed on no more."""
    sig: Signature


Descriptors = Annotated[tuple[Descriptor, ...], Meta(max_length=DESCRIPTORS)]


class Pull(Message, frozen=True, tag=19):
    """Asks for some nodes, and introduces the sender."""

    number: Count
    own: Descriptor


class Pulled(Message, frozen=True, tag=20):
    """The answer to a pull: the answering node, and some nodes of its sample."""

    number: Count
    nodes: Descriptors


class AskAlike(Message, frozen=True, tag=21):
    """Asks for nodes that seem to have the interests of the sender."""

    number: Count
    own: Descriptor


class Alike(Message, frozen=True, tag=22):
    """Nodes that seem similar to the one that asked, and a few others."""

    number: Count
    nodes: Descriptors


class Intersect(Message, frozen=True, tag=23):
    """Begins a private set intersection: the sender's elements, blinded, with dummies that fill the
    bucket."""

    nonce: Nonce
    epoch: Count
    blinded: Points


class Intersected(Message, frozen=True, tag=24):
    """The answer: the initiator's elements blinded once more in their order, and the responder's elements."""

    nonce: Nonce
    twice: Points
    blinded: Points


class IntersectEnd(Message, frozen=True, tag=25):
    """The end of an intersection, sent by both: proofs for shared elements, and noise for others.

    They stand in the order of the responder's points. The initiator sends them first.
    """

    nonce: Nonce
    proofs: Annotated[tuple[Proof, ...], Meta(max_length=POINTS)]
    refused: Reason | None = None
    """Why there is no intersection; then the rest is empty."""


class Seek(Message, frozen=True, tag=26):
    """A walker that looks for members of a topic; only bits of a filter, among decoys, hint at the topic."""

    request: Nonce
    positions: Annotated[tuple[Annotated[int, Meta(ge=0, le=65_535)], ...], Meta(max_length=POSITIONS)]
    epoch: Count
    reply_key: Point
    """An ephemeral key to which answers are sealed."""
    hops: Annotated[int, Meta(ge=0, le=255)]
    """How many more nodes it may visit."""
    back: bool
    """Whether the walker comes back because there was no way on."""


class Sought(Message, frozen=True, tag=27):
    """The answer of a member to a walker, sent back along its way; no node on the way can read it."""

    request: Nonce
    sealed: Annotated[bytes, Meta(max_length=SEALED_BYTES)]


class RingMember(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A member of a topic, with a proof of its membership made by some member."""

    node: Descriptor
    epoch: Count
    proof: Proof
    keeps: bool = False
    """Whether the member keeps the topic's events and answers requests for them."""


class RingPart(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """Members of one ring; only the two peers, which share the topic, know the hint."""

    hint: Hint
    members: Annotated[tuple[RingMember, ...], Meta(max_length=DESCRIPTORS)]


class RingAsk(Message, frozen=True, tag=28):
    """Tells a peer the members known beside its place on shared rings, and asks for the same."""

    number: Count
    rings: Annotated[tuple[RingPart, ...], Meta(max_length=RINGS)]


class RingTell(Message, frozen=True, tag=29):
    """The answer to `RingAsk`."""

    number: Count
    rings: Annotated[tuple[RingPart, ...], Meta(max_length=RINGS)]


class Beside(Message, frozen=True, tag=80):
    """Tells a peer that it counts as a neighbour in the topic of this hint, or no longer; with proof of
    membership."""

    hint: Hint
    epoch: Count
    proof: Proof
    open: bool
    keeps: bool = False
    chosen: bool = True
    """Whether the sender chose the neighbour by itself, or only agrees because the peer did."""


TrackerlessMessage: TypeAlias = (
    Pull
    | Pulled
    | AskAlike
    | Alike
    | Intersect
    | Intersected
    | IntersectEnd
    | Seek
    | Sought
    | RingAsk
    | RingTell
    | Beside
)
