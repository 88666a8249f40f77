"""Records that the network keeps."""

from __future__ import annotations

from random import Random

import pytest
from msgspec.structs import replace

from linnet.core.errors import RemoteError
from linnet.core.reasons import Reason
from linnet.identity.keys import SigningKey
from linnet.overlay.kademlia.routing_table import record_key
from linnet.overlay.kademlia.value_records import BODY_BYTES, LONGEST, Stored, check_record, sign_record

NOW = 1_800_000_000.0
OWNER = SigningKey.generate(Random(1).randbytes)
KEY = record_key(b"test", b"music")
RECORD = sign_record(OWNER, KEY, int(NOW * 1000), int(NOW) + 60, b"here")


def test_what_is_signed_and_good_passes() -> None:
    check_record(RECORD, NOW)


@pytest.mark.parametrize(
    "changed",
    [
        replace(RECORD, key=record_key(b"test", b"other")),
        replace(RECORD, owner=SigningKey.generate(Random(2).randbytes).public),
        replace(RECORD, version=RECORD.version - 1),
        replace(RECORD, expires=RECORD.expires + 1),
        replace(RECORD, body=b"there"),
        replace(RECORD, sig=bytes(64)),
    ],
)
def test_whatever_is_altered_is_noticed(changed: Stored) -> None:
    with pytest.raises(RemoteError) as caught:
        check_record(changed, NOW)
    assert caught.value.reason is Reason.BAD_SIGNATURE


@pytest.mark.parametrize(
    ("version", "expires", "size", "reason"),
    [
        (0, 0, 1, Reason.STALE),
        (0, LONGEST + 301, 1, Reason.FUTURE_TIME),
        (301_000, 60, 1, Reason.FUTURE_TIME),
        (0, 60, BODY_BYTES + 1, Reason.TOO_LARGE),
    ],
)
def test_times_and_sizes_have_bounds(version: int, expires: int, size: int, reason: Reason) -> None:
    record = sign_record(OWNER, KEY, int(NOW * 1000) + version, int(NOW) + expires, bytes(size))
    with pytest.raises(RemoteError) as caught:
        check_record(record, NOW)
    assert caught.value.reason is reason
