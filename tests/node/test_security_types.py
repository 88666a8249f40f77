from __future__ import annotations

import msgspec
import pytest

from linnet.node.security_types import SecurityReply, VerifiedRequest


def test_to_verify_is_said_in_so_many_words() -> None:
    assert msgspec.json.decode(b'{"verified":false}', type=VerifiedRequest) == VerifiedRequest(False)
    for wrong in (b"{}", b'{"verified":1}', b'{"verified":true,"by":"whom"}'):
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(wrong, type=VerifiedRequest)


def test_what_is_told_can_be_read_back() -> None:
    reply = SecurityReply("lt1", False, None, False, (), (), False, False, None, {"key_spent": 1}, None, ())
    assert msgspec.json.decode(msgspec.json.encode(reply), type=SecurityReply) == reply
