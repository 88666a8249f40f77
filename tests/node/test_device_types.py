from __future__ import annotations

import msgspec
import pytest

from linnet.node.device_types import RevokeRequest


def test_a_request_survives_its_form() -> None:
    request = RevokeRequest("00112233aabbccdd", 7, b"s" * 64)
    assert msgspec.json.decode(msgspec.json.encode(request), type=RevokeRequest) == request


@pytest.mark.parametrize("device", ["", "00", "00112233AABBCCDD", "00112233aabbccdd\n", "0x112233aabbccdd"])
def test_a_device_is_sixteen_digits(device: str) -> None:
    raw = msgspec.json.encode({"device": device, "at": 1, "signature": b"s" * 64})
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(raw, type=RevokeRequest)
