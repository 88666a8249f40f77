from __future__ import annotations

import msgspec
import pytest

from linnet.node.control_types import EventView, HeartbeatView, ItemView, PublishRequest, SubscribeQuery


def test_bytes_travel_as_base64_and_lines_name_their_type() -> None:
    event = EventView("le1", "lt1", "lp1", "00", "message", 5, b"\xff", seq=1)
    raw = msgspec.json.encode(event)
    assert msgspec.json.decode(raw) == {
        "type": "event",
        "id": "le1",
        "topic": "lt1",
        "author": "lp1",
        "device": "00",
        "kind": "message",
        "time": 5,
        "body": "/w==",
        "seq": 1,
    }
    assert msgspec.json.decode(raw, type=ItemView) == event
    assert msgspec.json.decode(b'{"type": "heartbeat"}', type=ItemView) == HeartbeatView()


@pytest.mark.parametrize(
    "wrong",
    [
        {"stream": ""},
        {"stream": "s", "bodies": ["*"]},
        {"stream": "s", "confirm": 3601},
        {"stream": "x" * 201},
        {"stream": "s", "texts": [""] * 4097},
        {"stream": "s", "other": 1},
    ],
)
def test_a_request_has_bounds(wrong: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(msgspec.json.encode(wrong), type=PublishRequest)


def test_a_query_comes_as_text() -> None:
    given = {"stream": "s", "since": "0.5", "live": "false"}
    assert msgspec.convert(given, SubscribeQuery, strict=False) == SubscribeQuery("s", 0.5, live=False)
