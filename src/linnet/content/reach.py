"""Messages to peers, over links that are held for as long as something goes that way."""

from __future__ import annotations

from linnet.content.config import ContentConfig
from linnet.content.effects import PURPOSE, ContentEffect
from linnet.content.messages import ContentMessage
from linnet.core.effects import Hold, Release, Send
from linnet.core.ids import Contact, PeerId
from linnet.core.reasons import Reason
from linnet.trace.records import Kind, Record


class Reach:
    """Which links are up, which are held, and what waits for one."""

    def __init__(self, config: ContentConfig) -> None:
        self._config = config
        self._up: dict[PeerId, tuple[str, ...]] = {}
        """Peers with a link, and where they say that they can be dialled."""
        self._held: dict[PeerId, None] = {}
        self._waiting: dict[PeerId, list[ContentMessage]] = {}

    def say(self, contact: Contact, message: ContentMessage) -> list[ContentEffect]:
        """Send a message, if need be as soon as there is a link."""
        peer = contact.peer
        effects = self.hold(contact)
        if peer in self._up:
            return [*effects, Send(peer, message)]
        waiting = self._waiting.setdefault(peer, [])
        if len(waiting) >= self._config.waiting:
            return [*effects, _dropped(peer, Reason.QUEUE_FULL, message)]
        waiting.append(message)
        return effects

    def hold(self, contact: Contact) -> list[ContentEffect]:
        """Have a link to a peer, since something will go there."""
        if contact.peer in self._held:
            return []
        self._held[contact.peer] = None
        return [Hold(contact.peer, contact.hints, PURPOSE)]

    def answer(self, peer: PeerId, message: ContentMessage) -> list[ContentEffect]:
        """Send a message to a peer that has a link to us; if it is gone, it will ask again."""
        if peer in self._up:
            return [Send(peer, message)]
        return [_dropped(peer, Reason.UNREACHABLE, message)]

    def is_up(self, peer: PeerId) -> bool:
        """Whether there is a link."""
        return peer in self._up

    def contact(self, peer: PeerId) -> Contact:
        """A peer, and where it can be dialled as far as it said."""
        return Contact(peer, self._up.get(peer, ()))

    def link_up(self, peer: PeerId, hints: tuple[str, ...] = ()) -> list[ContentEffect]:
        """A link is up: what waited for it goes."""
        self._up[peer] = hints
        return [Send(peer, message) for message in self._waiting.pop(peer, ())]

    def gone(self, peer: PeerId, reason: Reason) -> list[ContentEffect]:
        """A link is down, or none came up: what waits for it is lost, and sent anew by who wants it so."""
        self._up.pop(peer, None)
        effects: list[ContentEffect] = []
        if peer in self._held:
            del self._held[peer]
            effects.append(Release(peer, PURPOSE))
        return [*effects, *(_dropped(peer, reason, message) for message in self._waiting.pop(peer, ()))]

    def keep(self, needed: dict[PeerId, None]) -> list[ContentEffect]:
        """Let all links go but these, and those for which something waits."""
        idle = [peer for peer in self._held if peer not in needed and peer not in self._waiting]
        for peer in idle:
            del self._held[peer]
        return [Release(peer, PURPOSE) for peer in idle]


def _dropped(peer: PeerId, reason: Reason, message: ContentMessage) -> Record:
    return Record(Kind.DROPPED, peer=peer, reason=reason, note=type(message).__name__)
