"""What the control API is asked about the readers of sealed streams and what it answers."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from linnet.node.control_types import PersonText, StreamName
from linnet.node.device_types import DeviceName


class ReadersQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Whose readers are meant."""

    stream: StreamName


class ReadingRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Ask to read a sealed stream."""

    stream: StreamName


class AllowRequest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Let a device read a stream that this device seals."""

    stream: StreamName
    request: Annotated[str, Meta(min_length=1, max_length=8192, description="the line `lr1…` that it made")]
    from_now: bool = False
    """Whether a new key is made first; otherwise it reads what has the present one, too."""


class DisallowRequest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Put readers out of a stream that this device seals: a person, a device, or one device of a person."""

    stream: StreamName
    person: PersonText | None = None
    device: DeviceName | None = None


class RequestReply(Struct, frozen=True):
    """A request to read a stream, to be handed to its owner."""

    stream: str
    topic: str
    request: str


class ReaderView(Struct, frozen=True):
    """A device that may read a sealed stream."""

    person: str
    device: str
    """The short name of the device, hexadecimal."""
    key: str
    label: str
    """What the device calls itself."""
    epoch: int
    """The first that it reads."""
    at: int
    """When it was let in, Unix time."""


class ReadersReply(Struct, frozen=True):
    """Who may read a stream that this device seals."""

    stream: str
    topic: str
    epoch: int
    """How many keys the stream has had; 0: nothing was said and nobody let in yet."""
    since: float | None
    """When the present key was made, Unix time."""
    readers: tuple[ReaderView, ...]
    changed: tuple[ReaderView, ...] = ()
    """Who was just let in or put out."""
