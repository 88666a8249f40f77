"""What a node on the edge published and no proxy has confirmed: remembered over restarts, sent on contact."""

from __future__ import annotations

import msgspec

from linnet.delivery.context import Context
from linnet.event.signing import recall_unit
from linnet.machine.outbox import Outbox
from linnet.streams.stream import Stream

_UNSENT = "edge.unsent"
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[str, int]).decode


class Unsent:
    """The streams of one node in which something waits for a proxy."""

    def __init__(self, context: Context, out: Outbox) -> None:
        self._context = context
        self._out = out
        self._cells = context.store.cells

    def streams(self) -> list[tuple[str, int]]:
        """Every such stream, and the number of our first event in it that waits."""
        return [_decode(value) for _, value in self._cells.scan(_UNSENT)]

    def note_published(self, stream: Stream, first: int) -> None:
        """From this event on a proxy has still to be told."""
        if stream.publishing.next > first and self._cells.get(_UNSENT, stream.topic) is None:
            self._cells.put(_UNSENT, stream.topic, _encode((stream.name, first)))

    def is_in(self, stream: Stream) -> bool:
        """Whether something waits in a stream; it is forgotten once nothing does."""
        waits = stream.publishing.is_unconfirmed
        if not waits and self._cells.get(_UNSENT, stream.topic) is not None:
            self._cells.delete(_UNSENT, stream.topic)
        return waits

    def recall(self, stream: Stream, first: int) -> None:
        """After a restart: let it wait again for whoever comes first."""
        author, device = self._context.author, self._context.device
        while first < stream.publishing.next:
            units = stream.archive.page(author, device, first, stream.publishing.next - 1)
            for unit in units:
                stream.publishing.hold_back(recall_unit(unit), self._out)
                first = (unit.seq or 0) + len(unit.tails)
            if not units:
                break  # evicted meanwhile, with a record
