"""Who is meant: a device of a person, and one stay of it in a group."""

from __future__ import annotations

from typing import NamedTuple, NewType

from linnet.core.ids import AuthorId, DeviceId

MemberId = NewType("MemberId", bytes)
"""16 bytes, unique per addition: a device that is added again is another member, with other keys."""


class Device(NamedTuple):
    """A device of a person, as the events that it signs name it."""

    author: AuthorId
    device: DeviceId
