"""What a sealed event of a room binds: tests/event/test_binding.py looks at it field by field."""

from __future__ import annotations

from linnet.event import binding as shared
from linnet.rooms.secrecy import binding


def test_rooms_bind_what_streams_bind() -> None:
    assert (binding.bound, binding.bound_of) == (shared.bound, shared.bound_of)
