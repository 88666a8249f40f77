"""Whom a proxy serves, and with what: it is written down, so that a restart goes on serving."""

from __future__ import annotations

import msgspec

from linnet.core.ids import PeerId, TopicId
from linnet.core.stores import Cells

_SERVED = "edge.served"
_ENDING = "edge.ending"
_FRESH = 3600.0
"""Seconds by which the time that a client was last here may be behind in the store."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[str, float]).decode


class Wish:
    """A stream that a client is served."""

    __slots__ = ("asked_at", "stream", "written_at")

    def __init__(self, stream: str, asked_at: float) -> None:
        self.stream = stream
        self.asked_at = asked_at
        """When the client was last served it over a link."""
        self.written_at = asked_at


class ServedBook:
    """The wishes of all clients, and streams that nobody wants any more but that are kept for a while."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self.wishes: dict[PeerId, dict[TopicId, Wish]] = {}
        self.ending: dict[TopicId, tuple[str, float]] = {}
        """Name of the stream, and until when it is kept."""
        self._clients: dict[TopicId, dict[PeerId, None]] = {}
        for key, value in cells.scan(_SERVED):
            stream, asked_at = _decode(value)
            peer, topic = PeerId(key[:32]), TopicId(key[32:])
            self.wishes.setdefault(peer, {})[topic] = Wish(stream, asked_at)
            self._clients.setdefault(topic, {})[peer] = None
        for key, value in cells.scan(_ENDING):
            self.ending[TopicId(key)] = _decode(value)

    @property
    def streams(self) -> dict[TopicId, str]:
        """Every stream that is kept for a client, or was."""
        names = {topic: wish.stream for wishes in self.wishes.values() for topic, wish in wishes.items()}
        return names | {topic: name for topic, (name, _) in self.ending.items()}

    def keeps(self, topic: TopicId) -> bool:
        """Whether this stream is kept for a client, or was."""
        return topic in self._clients or topic in self.ending

    @property
    def is_empty(self) -> bool:
        """Whether nothing is kept for anybody."""
        return not self._clients and not self.ending

    def want(self, peer: PeerId, topic: TopicId, stream: str, now: float) -> bool:
        """A client wants a stream, or is still here; whether something was written."""
        wishes = self.wishes.setdefault(peer, {})
        wish = wishes.get(topic)
        is_new = wish is None
        if wish is None:
            wish = wishes[topic] = Wish(stream, now)
            self._clients.setdefault(topic, {})[peer] = None
        wish.asked_at = now
        if self.ending.pop(topic, None) is not None:
            self._cells.delete(_ENDING, topic)
        if not is_new and now - wish.written_at < _FRESH:
            return False
        wish.written_at = now
        self._cells.put(_SERVED, peer + topic, _encode((stream, now)))
        return True

    def forget(self, peer: PeerId, topic: TopicId, keep_until: float) -> bool:
        """A client wants a stream no longer; whether nobody does, so that it is kept until then at most."""
        wishes = self.wishes.get(peer, {})
        wish = wishes.pop(topic, None)
        if wish is None:
            return False
        self._cells.delete(_SERVED, peer + topic)
        if not wishes:
            del self.wishes[peer]
        clients = self._clients[topic]
        del clients[peer]
        if clients:
            return False
        del self._clients[topic]
        self.ending[topic] = (wish.stream, keep_until)
        self._cells.put(_ENDING, topic, _encode(self.ending[topic]))
        return True

    def ended(self, now: float) -> list[tuple[TopicId, str]]:
        """Streams whose time is over; they are forgotten by this."""
        over = [(topic, name) for topic, (name, until) in self.ending.items() if until <= now]
        for topic, _ in over:
            del self.ending[topic]
            self._cells.delete(_ENDING, topic)
        return over
