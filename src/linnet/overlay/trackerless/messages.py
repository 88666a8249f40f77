"""What nodes without trackers tell each other (tags 19 to 29, and 80). No message names a topic.

Nothing about trust, age or likeness is in any of them: those are each node's own business.
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
    """What a node says of itself, signed with the key that its links are authenticated to."""

    peer: WirePeerId
    version: Count
    """The newest counts."""
    epoch: Count
    filter: Annotated[bytes, Meta(max_length=FILTER_BYTES)]
    """Its topics as a filter, randomised once for the epoch; empty if it shows none."""
    epsilon_milli: Annotated[int, Meta(ge=0, le=1_000_000)]
    """Thousandths of the epsilon that the filter was randomised with."""
    hashes: Annotated[int, Meta(ge=1, le=16)]
    hints: Hints
    expires: Count
    """Unix time in seconds after which it is passed on no more."""
    sig: Signature


Descriptors = Annotated[tuple[Descriptor, ...], Meta(max_length=DESCRIPTORS)]


class Pull(Message, frozen=True, tag=19):
    """Tell me of some nodes; this is me."""

    number: Count
    own: Descriptor


class Pulled(Message, frozen=True, tag=20):
    """The answerer, and some nodes of its sample."""

    number: Count
    nodes: Descriptors


class AskAlike(Message, frozen=True, tag=21):
    """Tell me of nodes that seem to be interested in what I am."""

    number: Count
    own: Descriptor


class Alike(Message, frozen=True, tag=22):
    """Nodes that seem to be like the one who asked, and a few others."""

    number: Count
    nodes: Descriptors


class Intersect(Message, frozen=True, tag=23):
    """Begin a private set intersection: our elements, blinded, and as many dummies as fill the bucket."""

    nonce: Nonce
    epoch: Count
    blinded: Points


class Intersected(Message, frozen=True, tag=24):
    """The answer: yours blinded once more in your order, and ours."""

    nonce: Nonce
    twice: Points
    blinded: Points


class IntersectEnd(Message, frozen=True, tag=25):
    """The end, sent by both: proofs of what is shared, and noise for what is not.

    They stand in the order of the points of the one who answered. The one who asked sends them first.
    """

    nonce: Nonce
    proofs: Annotated[tuple[Proof, ...], Meta(max_length=POINTS)]
    refused: Reason | None = None
    """Why there is no intersection; then the rest is empty."""


class Seek(Message, frozen=True, tag=26):
    """A walker that looks for members of a topic; only bits of a filter, and decoys, say of which."""

    request: Nonce
    positions: Annotated[tuple[Annotated[int, Meta(ge=0, le=65_535)], ...], Meta(max_length=POSITIONS)]
    epoch: Count
    reply_key: Point
    """An ephemeral key to which answers are sealed."""
    hops: Annotated[int, Meta(ge=0, le=255)]
    """How many more nodes it may visit."""
    back: bool
    """Whether it comes back because there was no way on."""


class Sought(Message, frozen=True, tag=27):
    """A member answers a walker, along the way that it came; none of those on the way can read it."""

    request: Nonce
    sealed: Annotated[bytes, Meta(max_length=SEALED_BYTES)]


class RingMember(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A member of a topic, with some member's word for it."""

    node: Descriptor
    epoch: Count
    proof: Proof
    keeps: bool = False
    """Whether it keeps what is said in the topic and answers requests for it."""


class RingPart(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """What is told of one ring; the hint is known to the two who share the topic."""

    hint: Hint
    members: Annotated[tuple[RingMember, ...], Meta(max_length=DESCRIPTORS)]


class RingAsk(Message, frozen=True, tag=28):
    """Whom I know beside your place on the rings that we share; tell me the same."""

    number: Count
    rings: Annotated[tuple[RingPart, ...], Meta(max_length=RINGS)]


class RingTell(Message, frozen=True, tag=29):
    """The answer."""

    number: Count
    rings: Annotated[tuple[RingPart, ...], Meta(max_length=RINGS)]


class Beside(Message, frozen=True, tag=80):
    """I count you as a neighbour in the topic of this hint, or no longer; and my proof that I am in it."""

    hint: Hint
    epoch: Count
    proof: Proof
    open: bool
    keeps: bool = False
    chosen: bool = True
    """Whether the sender wants it by itself, or only agrees because the other does."""


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
