"""Receipts: small signed statements of how far a device has the chains of a topic.

The latest one of a device counts; they are not events. Storage nodes give them to publishers that
watch, and pass on those of receivers that opted in. The ledger of a publisher keeps what it has
learned, and nothing that it has not.
"""

from __future__ import annotations

import msgspec

from linnet.core.errors import RemoteError
from linnet.core.ids import PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.chain import ChainKey
from linnet.delivery.messages import ChainPlace, Receipt
from linnet.identity.keys import SigningKey, verify

_TAG = b"linnet/receipt/1"
_encode = msgspec.msgpack.Encoder().encode
MAX_RECEIVERS = 10_000
"""Receivers of one topic whose receipts are remembered; others show as unknown."""


def sign_receipt(
    key: SigningKey, topic: TopicId, storage: bool, now: float, chains: tuple[ChainPlace, ...]
) -> Receipt:
    """A statement of this device."""
    at_ms = int(now * 1000)
    signed = _TAG + _encode((topic, key.public, storage, at_ms, chains))
    return Receipt(topic, PeerId(key.public), storage, at_ms, chains, key.sign(signed))


def check_receipt(receipt: Receipt) -> None:
    """Raise `RemoteError` unless the receiver signed it."""
    fields = (receipt.topic, receipt.receiver, receipt.storage, receipt.at_ms, receipt.chains)
    verify(receipt.receiver, _TAG + _encode(fields), receipt.sig)


class Confirmed:
    """What is known of one receiver."""

    __slots__ = ("at_ms", "chains", "since", "storage")

    def __init__(self, storage: bool) -> None:
        self.storage = storage
        self.at_ms = -1
        self.chains: dict[ChainKey, int] = {}
        """The last event without a gap, by chain."""
        self.since: dict[ChainKey, float] = {}
        """When we learned it."""


class Ledger:
    """Who is known to have what, in one topic."""

    def __init__(self) -> None:
        self.receivers: dict[PeerId, Confirmed] = {}
        self.latest: dict[PeerId, Receipt] = {}
        """The latest receipt of each device, to be passed on."""

    def learn(self, receipt: Receipt, now: float) -> bool:
        """Take a receipt in; whether it is news. `RemoteError` if it is false, or one too many."""
        known = self.receivers.get(receipt.receiver)
        if known is not None and receipt.at_ms < known.at_ms:
            return False
        check_receipt(receipt)
        if known is None:
            if len(self.receivers) >= MAX_RECEIVERS:
                raise RemoteError(Reason.TOO_MANY, f"{MAX_RECEIVERS} receivers are known already")
            known = self.receivers[receipt.receiver] = Confirmed(receipt.storage)
        known.at_ms = receipt.at_ms
        for place in receipt.chains:
            key = place.author + place.device
            if known.chains.get(key, -1) < place.last:
                known.chains[key] = place.last
                known.since[key] = now
        self.latest[receipt.receiver] = receipt
        return True

    def reached(self, receiver: PeerId, chain: ChainKey) -> int:
        """The last event of a chain that a receiver is known to have; -1: none."""
        known = self.receivers.get(receiver)
        return -1 if known is None else known.chains.get(chain, -1)
