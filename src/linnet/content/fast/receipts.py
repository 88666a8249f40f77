"""Receipts: who serves members for a publisher cannot make up that they have an event.

A member shares a key with the publisher alone, told when it joins over a link that is theirs. Its receipt for
an event is a message authentication code: 3 microseconds, where a signature would cost the publisher 65 for
each member and event.
"""

from __future__ import annotations

import hmac

from linnet.core.ids import EventId

KEY_BYTES = 32
RECEIPT_BYTES = 16
_TAG = b"linnet/fast/receipt/1"


def receipt(key: bytes, event: EventId) -> bytes:
    """A member's word to its publisher that it has this event."""
    return hmac.digest(key, _TAG + event, "sha256")[:RECEIPT_BYTES]


def is_receipt(key: bytes, event: EventId, given: bytes | None) -> bool:
    """Whether the member with this key gave it for this event."""
    return given is not None and hmac.compare_digest(receipt(key, event), given)
