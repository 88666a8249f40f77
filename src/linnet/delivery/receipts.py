"""Receipts: small signed statements of how far a device has the chains of a topic.

Receipts are not events; only the latest one of a device counts. The ledger of a publisher holds what receipts
have confirmed, and nothing else. The fate of an event at a receiver is what its sender knows of it there;
streams, rooms and places share this.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

import msgspec
from msgspec import Struct

from linnet.core.errors import RemoteError
from linnet.core.ids import PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.chain import ChainKey
from linnet.delivery.messages import ChainPlace, Kept, Receipt
from linnet.delivery.storage_statements import check_kept
from linnet.event.times import is_ahead
from linnet.identity.keys import SigningKey, verify


class Fate(StrEnum):
    """The state of an event at one receiver, as far as the sender knows."""

    PENDING = "pending"
    AT_RELAY = "at_relay"
    DELIVERED = "delivered"
    EXPIRED = "expired"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    """The receiver sends no receipts."""


class ReceiverFate(Struct, frozen=True, gc=False):
    """The fate of an event at one receiver that sends receipts."""

    receiver: PeerId
    storage: bool
    delivered_at: float | None
    """When the sender learned of the delivery; None: pending."""
    volunteer: bool = False
    """Whether it says that it keeps the stream, and neither the owner nor our configuration names it."""

    @property
    def fate(self) -> Fate:
        """The fate as a word."""
        return Fate.PENDING if self.delivered_at is None else Fate.DELIVERED


_TAG = b"linnet/receipt/1"
_encode = msgspec.msgpack.Encoder().encode
MAX_RECEIVERS = 10_000
"""The most receivers of one topic whose receipts are remembered; others show as unknown."""
MAX_PLACES = 131_072
"""The most chains that the remembered receipts of one topic name together."""


def sign_receipt(
    key: SigningKey, topic: TopicId, storage: bool, now: float, chains: tuple[ChainPlace, ...]
) -> Receipt:
    """Sign a receipt as this device."""
    at_ms = int(now * 1000)
    signed = _TAG + _encode((topic, key.public, storage, at_ms, chains))
    return Receipt(topic, PeerId(key.public), storage, at_ms, chains, key.sign(signed))


def check_receipt(receipt: Receipt) -> None:
    """Raise `RemoteError` unless the receiver signed it."""
    fields = (receipt.topic, receipt.receiver, receipt.storage, receipt.at_ms, receipt.chains)
    verify(receipt.receiver, _TAG + _encode(fields), receipt.sig)


Confirmation: TypeAlias = Receipt | Kept
"""What confirms events: the statement of a storage node, or a receipt, which cannot be checked later."""


def signer_of(confirmation: Confirmation) -> PeerId:
    """Return the device that confirms."""
    return confirmation.keeper if isinstance(confirmation, Kept) else confirmation.receiver


def is_of_storage(confirmation: Confirmation) -> bool:
    """Return whether the device says that it keeps the events for others."""
    return isinstance(confirmation, Kept) or confirmation.storage


def check_confirmation(confirmation: Confirmation) -> None:
    """Raise `RemoteError` unless the device signed it."""
    if isinstance(confirmation, Kept):
        check_kept(confirmation)
    else:
        check_receipt(confirmation)


class Confirmed(Struct, eq=False):
    """The confirmations of one receiver."""

    chains: dict[ChainKey, int] = {}
    """The last event up to which there is no gap, by chain."""
    since: dict[ChainKey, float] = {}
    """When we learned it, by chain."""


class Ledger:
    """How far each receiver has the chains of one topic."""

    def __init__(self, only: ChainKey | None = None) -> None:
        """Count only one chain, the one that is asked for: receipts may name others that do not exist."""
        self._only = only
        self._places = 0
        self.receivers: dict[PeerId, Confirmed] = {}
        self.latest: dict[PeerId, Confirmation] = {}
        """The latest receipt of each device, to be passed on to watchers."""

    def learn(self, receipt: Confirmation, now: float, counts: bool = False) -> bool:
        """Take in a receipt; return whether it is news; raises `RemoteError` if it is false or excessive.

        One of a storage node that `counts` always finds room: keys are free, and so are receivers.
        """
        receiver = signer_of(receipt)
        latest = self.latest.get(receiver)
        if latest is not None and receipt.at_ms < latest.at_ms and not is_ahead(latest.at_ms, now):
            return False  # But one from a clock that was ahead does not silence its device from then on.
        check_confirmation(receipt)
        more = len(receipt.chains) - (0 if latest is None else len(latest.chains))
        if more > 0 and self._places + more > MAX_PLACES and not counts:
            raise RemoteError(Reason.TOO_MANY, f"receipts that name {MAX_PLACES} chains are known already")
        known = self.receivers.get(receiver)
        if known is None:
            if len(self.receivers) >= MAX_RECEIVERS and not counts:
                raise RemoteError(Reason.TOO_MANY, f"{MAX_RECEIVERS} receivers are known already")
            known = self.receivers[receiver] = Confirmed()
        for place in receipt.chains:
            key = place.author + place.device
            if self._only in (None, key) and known.chains.get(key, -1) < place.last:
                known.chains[key] = place.last
                known.since[key] = now
        self.latest[receiver] = receipt
        self._places += more
        return True

    def forget(self, receiver: PeerId) -> None:
        """Forget what a device has confirmed: its word counts no more."""
        self.receivers.pop(receiver, None)
        latest = self.latest.pop(receiver, None)
        if latest is not None:
            self._places -= len(latest.chains)

    def find_last(self, receiver: PeerId, chain: ChainKey) -> int:
        """Return the last event of a chain that a receiver is known to have; -1 if there is none."""
        known = self.receivers.get(receiver)
        return -1 if known is None else known.chains.get(chain, -1)
