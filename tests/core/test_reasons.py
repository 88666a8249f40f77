from __future__ import annotations

import msgspec
import pytest

from linnet.core.errors import MalformedMessage
from linnet.core.reasons import Reason
from linnet.peer.messages import CODEC, Bye


def test_reasons_are_their_names_in_small_letters() -> None:
    assert all(reason.value == reason.name.lower() for reason in Reason)
    assert all(str(reason) == reason.value for reason in Reason)


def test_reasons_fit_a_column_and_a_message() -> None:
    assert all(3 <= len(reason) <= 24 and reason.isascii() for reason in Reason)


def test_a_reason_of_a_newer_node_is_unknown_and_not_malformed() -> None:
    newer = msgspec.msgpack.encode([3, "invented_later"])
    assert CODEC.decode(newer) == Bye(Reason.UNKNOWN)
    with pytest.raises(MalformedMessage):
        CODEC.decode(msgspec.msgpack.encode([3, "x" * 65]))
