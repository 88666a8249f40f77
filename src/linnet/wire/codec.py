"""The bounded codec: typed messages to bytes and back. The only parser of foreign bytes.

Messages are msgpack arrays whose first element is the tag of their type; see
docs/adr/0002-encoding.md. `Codec` is made for a closed union of message types.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar, get_args

import msgspec

from linnet.core.errors import MalformedMessage
from linnet.core.limits import FRAME_BYTES
from linnet.core.reasons import Reason

M = TypeVar("M")

# msgpack: where the first element of a longer array is, and how wide a larger tag is.
_LONG_ARRAYS = {b"\xdc": 3, b"\xdd": 5}
_LONG_NUMBERS = {b"\xcc": 1, b"\xcd": 2}


class UnknownMessage(MalformedMessage):
    """A message of a type that we do not know: a newer node's, not a wrong one."""

    def __init__(self, tag: int) -> None:
        super().__init__(f"no message has the tag {tag}", Reason.UNSUPPORTED)
        self.tag = tag


class Codec(Generic[M]):
    """Encodes and decodes the messages of one union of tagged structs."""

    def __init__(self, union: Any, limit: int = FRAME_BYTES) -> None:  # noqa: ANN401 - a union is no type to mypy
        members = get_args(union) or (union,)
        self._tags = frozenset(member.__struct_config__.tag for member in members)
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder: msgspec.msgpack.Decoder[M] = msgspec.msgpack.Decoder(union)
        self._limit = limit

    def encode(self, message: M) -> bytes:
        """The bytes of a message."""
        return self._encoder.encode(message)

    def decode(self, data: bytes) -> M:
        """The message of these bytes. Raises `MalformedMessage`, and nothing else, if there is none."""
        if len(data) > self._limit:
            raise MalformedMessage(f"{len(data)} bytes, at most {self._limit} are read", Reason.TOO_LARGE)
        try:
            return self._decoder.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            tag = _tag_of(data)
            if tag is not None and tag not in self._tags:
                raise UnknownMessage(tag) from error
            raise MalformedMessage(str(error)) from error


def _tag_of(data: bytes) -> int | None:
    """The tag of a message, if it has one at all: an array that begins with a whole number."""
    head = data[:1]
    if b"\x91" <= head <= b"\x9f":
        start = 1
    elif head in _LONG_ARRAYS:
        start = _LONG_ARRAYS[head]
    else:
        return None
    first = data[start : start + 1]
    if not first:
        return None
    if first < b"\x80":
        return first[0]
    width = _LONG_NUMBERS.get(first, 0)
    number = data[start + 1 : start + 1 + width]
    return int.from_bytes(number, "big") if width and len(number) == width else None
