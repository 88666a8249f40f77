from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.core.errors import RemoteError
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.identity.keys import SigningKey
from linnet.overlay.gossip.config import DAY
from linnet.overlay.gossip.descriptor import LEEWAY, check_descriptor, check_signature, sign_descriptor
from linnet.overlay.gossip.messages import Descriptor

KEY = SigningKey(bytes(32))
NOW = 1_000_000.0


def descriptor(expires: int = int(NOW) + 3600, version: int = 1) -> Descriptor:
    return sign_descriptor(KEY, version, 7, b"\x01" * 128, 3000, 1, ("tls://a:1",), expires)


def reason_of(descriptor: Descriptor) -> Reason | None:
    try:
        check_descriptor(descriptor, NOW)
    except RemoteError as error:
        return error.reason
    return None


def test_a_signed_descriptor_passes_on_the_wire_and_back() -> None:
    made = descriptor()
    back = msgspec.msgpack.decode(msgspec.msgpack.encode(made), type=Descriptor)
    assert back == made
    assert reason_of(back) is None


@pytest.mark.parametrize(
    ("expires", "reason"),
    [
        (int(NOW) - 1, Reason.STALE),
        (int(NOW), None),
        (int(NOW + DAY + LEEWAY), None),
        (int(NOW + DAY + LEEWAY) + 1, Reason.FUTURE_TIME),
    ],
)
def test_it_ends_within_a_day_and_has_not_ended(expires: int, reason: Reason | None) -> None:
    assert reason_of(descriptor(expires)) is reason


CHANGES = st.sampled_from(
    [
        {"peer": PeerId(SigningKey(b"\x01" * 32).public)},
        {"version": 2},
        {"epoch": 8},
        {"filter": b"\x00" * 128},
        {"epsilon_milli": 1},
        {"hashes": 2},
        {"hints": ("tls://b:1",)},
        {"expires": int(NOW) + 3601},
        {"sig": bytes(64)},
    ]
)


@given(CHANGES)
def test_no_part_can_be_changed_by_another(change: dict[str, object]) -> None:
    assert reason_of(msgspec.structs.replace(descriptor(), **change)) is Reason.BAD_SIGNATURE


@pytest.mark.parametrize(
    "change", [{"filter": bytes(1025)}, {"hints": ("x",) * 9}, {"sig": b""}, {"peer": b"x"}]
)
def test_wrong_lengths_are_named_before_any_signature_is_looked_at(change: dict[str, object]) -> None:
    checked: list[Descriptor] = []
    with pytest.raises(RemoteError) as raised:
        check_descriptor(msgspec.structs.replace(descriptor(), **change), NOW, checked.append)
    assert raised.value.reason is Reason.MALFORMED
    assert checked == []


def test_the_check_of_signatures_is_given() -> None:
    checked: list[Descriptor] = []
    check_descriptor(descriptor(), NOW, checked.append)
    assert checked == [descriptor()]
    check_signature(descriptor())


def test_nothing_local_is_in_it() -> None:
    assert [field.name for field in msgspec.structs.fields(Descriptor)] == [
        "peer",
        "version",
        "epoch",
        "filter",
        "epsilon_milli",
        "hashes",
        "hints",
        "expires",
        "sig",
    ]
