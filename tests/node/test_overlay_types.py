from __future__ import annotations

import msgspec
import pytest

from linnet.node.overlay_types import SwitchRequest, TrustRequest
from linnet.overlay.config import Overlay


def test_what_may_be_asked() -> None:
    assert msgspec.json.decode(b'{"device":"ld1"}', type=TrustRequest).value is None
    assert msgspec.json.decode(b'{"device":"ld1","value":1}', type=TrustRequest).value == 1.0
    for wrong in (b'{"value":1}', b'{"device":"ld1","value":0}', b'{"device":"ld1","value":1.5}'):
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(wrong, type=TrustRequest)
    switch = msgspec.json.decode(b'{"stream":"s","overlay":"ring"}', type=SwitchRequest)
    assert switch.overlay is Overlay.RING
    assert msgspec.json.decode(b'{"stream":"s"}', type=SwitchRequest).overlay is None
    for wrong in (b'{"stream":"s","overlay":"mesh"}', b'{"overlay":"ring"}'):
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(wrong, type=SwitchRequest)
