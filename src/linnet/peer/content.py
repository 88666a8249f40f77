"""Content at a node: its machines, and whom of the hash table over the network they may speak to.

Not everyone in the hash table takes part in content. Who does is said in the hello of a link; who does not
is left out of what the machines know, so that a rendezvous is the nearest of those who take part.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Protocol

from linnet.content.commands import ContentCommand
from linnet.content.directory import Directory, Locate, Located
from linnet.content.effects import OWNER as CONTENT_OWNER
from linnet.content.fast.commands import FastCommand
from linnet.content.fast.delivery import FastDelivery
from linnet.content.fast.effects import OWNER as FAST_OWNER
from linnet.content.fast.messages import FastMessage
from linnet.content.messages import ContentMessage
from linnet.content.scout import Scout
from linnet.core.effects import Reply
from linnet.core.ids import Contact, PeerId
from linnet.core.inputs import DialFailed, LinkDown, LinkUp
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.delivery.commands import Consumed, Declined, Unsubscribe
from linnet.delivery.context import Context
from linnet.machine.outbox import Outbox
from linnet.machine.part import Part, on_link, on_notice
from linnet.overlay.kademlia.ids import NodeId
from linnet.overlay.kademlia.kademlia import Kademlia
from linnet.overlay.kademlia.outcomes import NodesFound, SeekNodes
from linnet.peer.config import PeerConfig
from linnet.peer.content_desk import ContentDesk, DeskEffect
from linnet.trace.records import Kind, Record

PROTOCOL = "content"
PROTOCOLS = (PROTOCOL, "fast")
"""What a node speaks that takes part."""
OWNERS = (CONTENT_OWNER, FAST_OWNER)
"""Whose timers are content's."""
ABSENT = "this node does not take part in content: set content.enabled = true"
UNFOUND = f"{ABSENT} and, as rendezvous are found by the hash table, kademlia.enabled = true"
LACKING = 4096
"""Peers without content that are remembered; a forgotten one costs a link."""


class Search(Directory, Protocol):
    """A directory that can also look all over the network at once: that of a simulation."""

    def search(self, key: NodeId) -> tuple[Contact, ...]:
        """The nodes closest to a key of all that answer, this node not among them, the closest first."""


class TableDirectory:
    """What this node knows of others by the routing table of Kademlia."""

    def __init__(self, kademlia: Kademlia) -> None:
        self._table = kademlia.table

    def closest(self, key: NodeId, count: int) -> list[Contact]:
        """See `Directory.closest`."""
        return [*self._table.nearest(key, count)]


class _Speaking:
    """A directory without those who are known not to take part in content."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self.lacking: dict[PeerId, None] = {}

    def closest(self, key: NodeId, count: int) -> list[Contact]:
        """See `Directory.closest`."""
        near = self._directory.closest(key, count + len(self.lacking))
        return [contact for contact in near if contact.peer not in self.lacking][:count]

    def met(self, event: LinkUp) -> bool:
        """A link is up; whether who is there takes part."""
        if PROTOCOL in event.hello.protocols:
            self.lacking.pop(event.peer, None)
            return True
        self.lacking[event.peer] = None
        if len(self.lacking) > LACKING:
            del self.lacking[next(iter(self.lacking))]
        return False

    def found(self, contacts: tuple[Contact, ...]) -> tuple[Contact, ...]:
        """What a lookup found, without them."""
        return tuple(contact for contact in contacts if contact.peer not in self.lacking)


class Content(Part):
    """Content, if this node takes part and can find others; otherwise every word of it is declined.

    Its machines still return their effects. It hears as a part of links and of lookups that have ended; the
    node machine calls it for all else, and is returned what is left when lookups were asked of Kademlia.
    """

    def __init__(
        self,
        context: Context,
        config: PeerConfig,
        kademlia: Kademlia | None,
        out: Outbox,
        search: Search | None = None,
    ) -> None:
        self._search = search
        """What answers lookups at once, in a simulation."""
        self._out = out
        self.scout: Scout | None = None
        self.fast: FastDelivery | None = None
        self._desk: ContentDesk | None = None
        found = search if search is not None else None if kademlia is None else TableDirectory(kademlia)
        self._absent = UNFOUND if found is None else ABSENT
        if config.content is not None and found is not None:
            self._speaking = _Speaking(found)
            self.scout = Scout(context, config.content, self._speaking)
            self.fast = FastDelivery(context, config.fast, config.content, self._speaking, config.listens)
            self._desk = ContentDesk(config.content, context.store.cells, self.scout, self.fast)

    @property
    def is_on(self) -> bool:
        """Whether this node takes part."""
        return self._desk is not None

    def start(self, now: float) -> None:
        """Tell again what is kept."""
        if self.scout is not None and self.fast is not None and self._desk is not None:
            begun = [*self.scout.start(now), *self.fast.start(now), *self._desk.start(now)]
            self._out.extend(self._without_lookups(begun, now))

    def ask(self, request: int, command: ContentCommand | FastCommand, now: float) -> list[DeskEffect]:
        """A command of the application."""
        if self._desk is None:
            return [Reply(request, Declined(Reason.UNSUPPORTED, self._absent))]
        return self._without_lookups(self._desk.ask(request, command, now), now)

    def reads(self, reader: int) -> bool:
        """Whether a reader is one of content."""
        return self._desk is not None and self._desk.reads(reader)

    def reader_says(self, request: int, command: Unsubscribe | Consumed, now: float) -> list[DeskEffect]:
        """A reader has handled something, or reads no more."""
        if self._desk is None:
            return []
        return self._without_lookups(self._desk.reader_says(request, command, now), now)

    def on_message(self, peer: PeerId, message: ContentMessage | FastMessage, now: float) -> list[DeskEffect]:
        """A message of a peer."""
        if self.scout is None or self.fast is None or self._desk is None:
            note = f"{type(message).__name__}: this node does not take part in content"
            return [Record(Kind.REJECTED, peer=peer, reason=Reason.UNSUPPORTED, note=note)]
        if isinstance(message, FastMessage):
            effects = self._desk.handed([*self.fast.on_message(peer, message, now)])
        else:
            effects = self._desk.handed([*self.scout.on_message(peer, message, now)])
        return self._without_lookups(effects, now)

    def fired(self, tick: Tick, now: float) -> list[DeskEffect]:
        """A timer has run out."""
        if self.scout is None or self.fast is None or self._desk is None:
            return []
        machine = self.fast if tick.owner == FAST_OWNER else self.scout
        return self._without_lookups(self._desk.handed([*machine.fired(tick, now)]), now)

    @on_link(LinkUp)
    def handle_link_up(self, event: LinkUp, now: float) -> None:
        """A peer is there; who takes no part counts as one that cannot be reached."""
        if self.scout is None or self.fast is None or self._desk is None:
            return
        if self._speaking.met(event):
            effects = self._desk.handed([*self.scout.link_up(event, now), *self.fast.link_up(event, now)])
            self._out.extend(self._without_lookups(effects, now))
        else:
            self._lose_link(DialFailed(event.peer, Reason.UNSUPPORTED), now)

    @on_link(LinkDown)
    def handle_link_down(self, event: LinkDown, now: float) -> None:
        """A peer is gone."""
        self._lose_link(event, now)

    @on_link(DialFailed)
    def handle_dial_failed(self, event: DialFailed, now: float) -> None:
        """A peer could not be reached."""
        self._lose_link(event, now)

    @on_notice(NodesFound)
    def handle_nodes_found(self, notice: NodesFound, now: float) -> None:
        """A lookup has ended."""
        self._out.extend(self._without_lookups(self._located(notice.key, notice.contacts, now), now))

    def _lose_link(self, event: LinkDown | DialFailed, now: float) -> None:
        if self.scout is not None and self.fast is not None and self._desk is not None:
            effects = self._desk.handed([*self.scout.link_gone(event, now), *self.fast.link_gone(event, now)])
            self._out.extend(self._without_lookups(effects, now))

    def _without_lookups(self, effects: Iterable[DeskEffect], now: float) -> list[DeskEffect]:
        """Ask Kademlia who is nearest to a key, or in a simulation the search; the rest is for the node."""
        rest: list[DeskEffect] = []
        waiting = deque(effects)
        while waiting:
            effect = waiting.popleft()
            if not isinstance(effect, Locate):
                rest.append(effect)
            elif self._search is None:
                self._out.notify(SeekNodes(effect.key))
            else:
                found = self._search.search(effect.key)
                waiting.extendleft(reversed(self._located(effect.key, found, now)))
        return rest

    def _located(self, key: NodeId, contacts: tuple[Contact, ...], now: float) -> list[DeskEffect]:
        if self.scout is None or self.fast is None or self._desk is None:
            return []
        found = Located(key, self._speaking.found(contacts))
        # Both may have asked for it; who did not takes no notice.
        return self._desk.handed([*self.scout.located(found, now), *self.fast.located(found, now)])
