"""Only who has the key can give a receipt, and for one event only."""

from __future__ import annotations

from linnet.content.fast.signed_records import RECEIPT_BYTES, is_receipt, receipt
from linnet.core.ids import EventId

KEY, EVENT = b"k" * 32, EventId(b"e" * 32)


def test_a_receipt_is_of_one_member_for_one_event() -> None:
    given = receipt(KEY, EVENT)
    assert len(given) == RECEIPT_BYTES
    assert is_receipt(KEY, EVENT, given)
    assert not is_receipt(b"l" * 32, EVENT, given)
    assert not is_receipt(KEY, EventId(b"f" * 32), given)
    assert not is_receipt(KEY, EVENT, bytes(RECEIPT_BYTES))
    assert not is_receipt(KEY, EVENT, None)
