"""The default bounds fit together, and with those of the frames and the WebSocket."""

from __future__ import annotations

import msgspec

from linnet.core.limits import FRAME_BYTES
from linnet.net.config import NetConfig
from linnet.net.websocket import MESSAGE_BYTES
from linnet.wire.frame import HEADER_BYTES

CONFIG = NetConfig()


def test_a_link_is_congested_before_it_is_cut_and_drained_before_it_is_empty() -> None:
    assert 0 < CONFIG.low_mark < CONFIG.high_mark < CONFIG.outbox_bytes


def test_the_largest_frame_fits_everywhere() -> None:
    """A frame that can never be sent or read would cut every link that it is tried on."""
    largest = HEADER_BYTES + FRAME_BYTES
    assert CONFIG.outbox_bytes > largest + CONFIG.write_bytes
    # A write takes frames until it has enough bytes, so the last may be the largest.
    assert CONFIG.write_bytes - 1 + largest <= MESSAGE_BYTES


def test_nothing_is_unbounded_or_forbidden() -> None:
    values = msgspec.structs.asdict(CONFIG)
    assert values.pop("shared_networks") == ()
    assert {name: value for name, value in values.items() if not 0 < value < 2**31} == {}


def test_one_who_dials_waits_no_longer_than_one_who_is_dialled() -> None:
    """Otherwise a dial could still hope for an answer that the other side gave up."""
    assert CONFIG.dial_stagger < CONFIG.dial_timeout
    assert CONFIG.hold_timeout < CONFIG.dial_timeout <= CONFIG.handshake_timeout
