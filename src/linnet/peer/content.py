"""Content at a node: the machine, and where its lookups are answered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

from linnet.content.commands import ContentCommand, ContentResult, Match
from linnet.content.directory import Directory, Locate, Located
from linnet.content.effects import ContentEffect
from linnet.content.messages import ContentMessage
from linnet.content.scout import Scout
from linnet.core.effects import CancelTimer, Deliver, Hold, Release, Reply, Send, SetTimer
from linnet.core.ids import Contact, PeerId
from linnet.core.inputs import DialFailed, LinkDown, LinkUp
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.delivery.commands import Declined
from linnet.delivery.context import Context
from linnet.overlay.kademlia.ids import NodeId
from linnet.peer.config import PeerConfig
from linnet.trace.records import Kind, Record

ContentPartEffect: TypeAlias = (
    Send[ContentMessage]
    | Hold
    | Release
    | SetTimer[Tick]
    | CancelTimer[Tick]
    | Deliver[Match]
    | Reply[ContentResult]
    | Reply[Declined]
    | Record
)


class Search(Directory, Protocol):
    """A directory that can also look all over the network."""

    def search(self, key: NodeId) -> tuple[Contact, ...]:
        """The nodes closest to a key of all that answer, this node not among them, the closest first."""


class Content:
    """Content, if this node was told how others are found; otherwise every word of it is declined."""

    def __init__(self, context: Context, config: PeerConfig, search: Search | None) -> None:
        self._search = search
        self.scout = None if search is None else Scout(context, config.content, search)

    def start(self, now: float) -> list[ContentPartEffect]:
        """The node begins."""
        return [] if self.scout is None else self._found(self.scout.start(now), now)

    def ask(self, request: int, command: ContentCommand, now: float) -> list[ContentPartEffect]:
        """A command of the application."""
        if self.scout is None:
            return [Reply(request, Declined(Reason.UNSUPPORTED, "this node does not take part in content"))]
        return self._found(self.scout.ask(request, command, now), now)

    def on_message(self, peer: PeerId, message: ContentMessage, now: float) -> list[ContentPartEffect]:
        """A message of a peer."""
        if self.scout is None:
            note = f"{type(message).__name__}: this node does not take part in content"
            return [Record(Kind.REJECTED, peer=peer, reason=Reason.UNSUPPORTED, note=note)]
        return self._found(self.scout.on_message(peer, message, now), now)

    def links(self, event: LinkUp | LinkDown | DialFailed, now: float) -> list[ContentPartEffect]:
        """A link is up or down, or none came of a dial."""
        if self.scout is None:
            return []
        if isinstance(event, LinkUp):
            return self._found(self.scout.link_up(event, now), now)
        return self._found(self.scout.link_gone(event, now), now)

    def fired(self, tick: Tick, now: float) -> list[ContentPartEffect]:
        """A timer has run out."""
        return [] if self.scout is None else self._found(self.scout.fired(tick, now), now)

    def _found(self, effects: Sequence[ContentEffect], now: float) -> list[ContentPartEffect]:
        """With every lookup answered, and what comes of that."""
        out: list[ContentPartEffect] = []
        waiting = [*effects]
        while waiting:
            effect = waiting.pop(0)
            if not isinstance(effect, Locate):
                out.append(effect)
            elif self.scout is not None and self._search is not None:
                found = Located(effect.key, self._search.search(effect.key))
                waiting = [*self.scout.located(found, now), *waiting]
        return out
