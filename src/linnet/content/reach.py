"""Messages to peers, over links that are held for as long as something goes that way."""

from __future__ import annotations

from collections.abc import Callable

from linnet.content.config import ContentConfig
from linnet.content.messages import ContentMessage, Held, Reached, Settled, Taken
from linnet.core.ids import Contact, PeerId
from linnet.core.reasons import Reason
from linnet.machine.outbox import Committed, Outbox
from linnet.trace.records import Kind, Record

PURPOSE = "content"
Promise = Callable[[], Outbox | Committed]
"""Where it is to be said that an event arrived: at once, or when what was taken of it is durable."""


class Reach:
    """Which links are up, which are held, and what waits for one."""

    def __init__(self, config: ContentConfig, out: Outbox, promise: Promise | None = None) -> None:
        """Without a promise it is said at once that events arrived."""
        self._config = config
        self._out = out
        self._promise: Promise = promise or (lambda: out)
        self._up: dict[PeerId, tuple[str, ...]] = {}
        """Peers with a link, and where they say that they can be dialled."""
        self._held: dict[PeerId, None] = {}
        self._waiting: dict[PeerId, list[ContentMessage]] = {}

    def send(self, contact: Contact, message: ContentMessage) -> None:
        """Send a message, if need be as soon as there is a link."""
        peer = contact.peer
        self.hold(contact)
        if peer in self._up:
            self._out.send(peer, message)
            return
        waiting = self._waiting.setdefault(peer, [])
        if len(waiting) >= self._config.waiting:
            self._drop(peer, Reason.QUEUE_FULL, message)
            return
        waiting.append(message)

    def hold(self, contact: Contact) -> None:
        """Have a link to a peer, since something will go there."""
        if contact.peer in self._held:
            return
        self._held[contact.peer] = None
        self._out.hold(contact.peer, contact.hints, PURPOSE)

    def answer(self, peer: PeerId, message: ContentMessage) -> None:
        """Send a message to a peer that has a link to us; if it is gone, it will ask again."""
        if peer not in self._up:
            self._drop(peer, Reason.UNREACHABLE, message)
        elif _tells_arrival(message):
            self._promise().send(peer, message)
        else:
            self._out.send(peer, message)

    def is_up(self, peer: PeerId) -> bool:
        """Whether there is a link."""
        return peer in self._up

    def contact(self, peer: PeerId) -> Contact:
        """A peer, and where it can be dialled as far as it said."""
        return Contact(peer, self._up.get(peer, ()))

    def handle_link_up(self, peer: PeerId, hints: tuple[str, ...] = ()) -> None:
        """Send what waited for a link that is up."""
        self._up[peer] = hints
        for message in self._waiting.pop(peer, ()):
            self._out.send(peer, message)

    def handle_link_down(self, peer: PeerId, reason: Reason) -> None:
        """Drop what waited for a link that is down or did not come up; who wants it so sends it anew."""
        self._up.pop(peer, None)
        if peer in self._held:
            del self._held[peer]
            self._out.release(peer, PURPOSE)
        for message in self._waiting.pop(peer, ()):
            self._drop(peer, reason, message)

    def release_idle(self, needed: dict[PeerId, None]) -> None:
        """Let all links go but these, and those for which something waits."""
        idle = [peer for peer in self._held if peer not in needed and peer not in self._waiting]
        for peer in idle:
            del self._held[peer]
            self._out.release(peer, PURPOSE)

    def _drop(self, peer: PeerId, reason: Reason, message: ContentMessage) -> None:
        self._out.record(Record(Kind.DROPPED, peer=peer, reason=reason, note=type(message).__name__))


def _tells_arrival(message: ContentMessage) -> bool:
    if isinstance(message, Held | Taken):
        return message.so_far is not None
    return isinstance(message, Reached | Settled)
