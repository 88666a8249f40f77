from __future__ import annotations

import msgspec
import pytest

from linnet.node.sealed_types import AllowRequest, DisallowRequest


def test_what_a_request_may_be() -> None:
    assert not msgspec.json.decode(b'{"stream":"s","request":"lr1"}', type=AllowRequest).from_now
    for wrong in (b'{"stream":"s"}', b'{"stream":"","request":"lr1"}', b'{"stream":"s","request":"a","x":1}'):
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(wrong, type=AllowRequest)
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"stream":"s","device":"bea"}', type=DisallowRequest)
