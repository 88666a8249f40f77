"""A message of our own on its way into the room."""

from __future__ import annotations

from msgspec.structs import replace

from linnet.core.ids import EventId, TopicId
from linnet.event.binding import bound
from linnet.event.event import Tail
from linnet.groups import sealing
from linnet.groups.ids import Device
from linnet.groups.state import GroupState


class Sealed:
    """A message on its way out: encrypted once its place in the chain is known."""

    def __init__(
        self, room: TopicId, ours: Device, state: GroupState, envelope: sealing.Envelope, text: bytes
    ) -> None:
        self._room = room
        self._ours = ours
        self.state = state
        """After the message: its key is gone from it."""
        self.envelope = envelope
        self.text = text

    def fill(self, seq: int, prev: EventId | None, tail: Tail) -> Tail:
        """The tail with its body encrypted, bound to all else that it says."""
        open_tail = replace(tail, clear=self.envelope.clear, body=b"")
        fields = bound(self._room, self._ours.author, self._ours.device, seq, prev, open_tail)
        return replace(open_tail, body=self.envelope.seal(self.text, fields))
