"""Cryptography that a simulation does once for all nodes, or not at all.

`RememberingVerifier`, `RememberingCardCheck` and `RememberingDescriptorCheck` check each value once. Their
results are those of the real checks, forgeries included: they are remembered by the whole value, never by an
id that it only claims.

`IDEAL` stands for the group of private set intersection. It hides nothing: a node that knows one masked
element can remove the mask. But blinding commutes as it does in the real group, messages have the same sizes,
and so honest nodes get the same results.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from linnet.core.errors import InvalidEvent, RemoteError
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.event.event import Unverified, Verified
from linnet.event.signing import verify_unit
from linnet.identity.cards import Card, check_card
from linnet.overlay.gossip.descriptor import check_descriptor, check_signature
from linnet.overlay.gossip.messages import Descriptor
from linnet.overlay.gossip.private_set_intersection import POINT_BYTES, SCALAR_BYTES

REMEMBERED = 65_536
"""Results that are kept: more than are under way at once in any scenario of ours."""


class RememberingVerifier:
    """`verify_unit` with its results remembered; one for all nodes of a network."""

    __slots__ = ("_last_card", "_last_result", "_last_unit", "_results", "checked")

    def __init__(self) -> None:
        self._results: dict[tuple[Unverified, Card], Verified | InvalidEvent] = {}
        self._last_unit: Unverified | None = None
        self._last_card: Card | None = None
        self._last_result: Verified | None = None
        self.checked = 0
        """Signatures that were really checked."""

    def __call__(self, unit: Unverified, card: Card) -> Verified:
        """See `verify_unit`; raises `InvalidEvent` alike."""
        # By far the most calls are for the very same object: a flood passes it from node to node.
        if unit is self._last_unit and card is self._last_card and self._last_result is not None:
            return self._last_result
        question = (unit, card)
        result = self._results.get(question)
        if result is None:
            result = self._check(unit, card)
            if len(self._results) >= REMEMBERED:
                del self._results[next(iter(self._results))]
            self._results[question] = result
        if isinstance(result, InvalidEvent):
            raise InvalidEvent(result.reason, result.detail)
        self._last_unit, self._last_card, self._last_result = unit, card, result
        return result

    def _check(self, unit: Unverified, card: Card) -> Verified | InvalidEvent:
        self.checked += 1
        try:
            return verify_unit(unit, card)
        except InvalidEvent as error:
            return error


class RememberingCardCheck:
    """`check_card` with its results remembered; one for all nodes of a network."""

    __slots__ = ("_results", "checked")

    def __init__(self) -> None:
        self._results: dict[Card, RemoteError | None] = {}
        self.checked = 0
        """Signatures that were really checked."""

    def __call__(self, card: Card) -> None:
        """See `check_card`; raises `RemoteError` alike."""
        if card not in self._results:
            if len(self._results) >= REMEMBERED:
                del self._results[next(iter(self._results))]
            self._results[card] = self._check(card)
        failure = self._results[card]
        if failure is not None:
            raise RemoteError(failure.reason, failure.detail)

    def _check(self, card: Card) -> RemoteError | None:
        self.checked += 1
        try:
            check_card(card)
        except RemoteError as error:
            return error
        return None


class RememberingDescriptorCheck:
    """`check_descriptor` that checks a signature once for all nodes of a simulation."""

    def __init__(self) -> None:
        self._good: dict[bytes, Descriptor] = {}
        self.checked = 0
        """Signatures that were really checked."""

    def __call__(self, descriptor: Descriptor, now: float) -> None:
        """See `check_descriptor`."""
        check_descriptor(descriptor, now, self._signed)

    def _signed(self, descriptor: Descriptor) -> None:
        known = self._good.get(descriptor.sig)
        if known is not descriptor and known != descriptor:
            self.checked += 1
            check_signature(descriptor)
            self._good[descriptor.sig] = descriptor


class IdealGroup:
    """Elements are hashes, and blinding is exclusive or; see `Group` of `private_set_intersection`."""

    def hash_to_group(self, data: bytes) -> bytes:
        """Return the element that stands for these bytes."""
        return blake2b(data, digest_size=POINT_BYTES).digest()

    def scalar(self, entropy: Entropy) -> bytes:
        """Draw a mask."""
        return entropy(SCALAR_BYTES)

    def inverses(self, scalars: Sequence[bytes]) -> list[bytes]:
        """Return the masks: each undoes itself."""
        return list(scalars)

    def multiply(self, scalar: bytes, point: bytes) -> bytes:
        """Mask an element; zero stands for the identity, and is refused as in the real group."""
        if len(point) != POINT_BYTES or not any(point):
            raise RemoteError(Reason.MALFORMED, "no point of the group, or its identity")
        masked = int.from_bytes(scalar, "big") ^ int.from_bytes(point, "big")
        return masked.to_bytes(POINT_BYTES, "big")


IDEAL = IdealGroup()
