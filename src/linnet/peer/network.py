"""The hash table over the network at one node, and its users: who asked for what, and who is told.

Names and content say what they wish (`SeekRecords`, `PlaceInNetwork`, `Locate`); this asks Kademlia and
hands back what comes of it. A node that takes no part refuses what it is asked and wishes for nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TypeAlias

from linnet.content.commands import ContentCommand
from linnet.content.directory import Locate
from linnet.content.fast.commands import FastCommand
from linnet.content.fast.messages import FastMessage
from linnet.content.messages import ContentMessage
from linnet.core.errors import Refused
from linnet.core.ids import Contact, PeerId
from linnet.core.inputs import DialFailed, LinkDown, LinkUp
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.delivery.commands import Consumed, Unsubscribe
from linnet.names.asking import OWNER as NAMES
from linnet.names.commands import NamesCommand
from linnet.names.messages import NameMessage
from linnet.names.names import Names, NamesEffect
from linnet.names.network_records import PlaceInNetwork, SeekRecords
from linnet.overlay.kademlia.ids import NodeId
from linnet.overlay.kademlia.kademlia import Kademlia, KademliaEffect
from linnet.overlay.kademlia.messages import KademliaMessage
from linnet.overlay.kademlia.outcomes import NodesFound, Placed, RecordsFound
from linnet.overlay.kademlia.questions import OWNER as KADEMLIA
from linnet.peer.content import OWNERS as CONTENT
from linnet.peer.content import Content
from linnet.peer.content_desk import DeskEffect
from linnet.trace.records import Kind, Record

OWNERS = frozenset({NAMES, KADEMLIA, *CONTENT})
"""Whose timers are for this part."""
WAITING = 1024
"""Lookups of content that wait for others to end."""

NetworkEffect: TypeAlias = NamesEffect | KademliaEffect | DeskEffect
"""What is left when wishes and outcomes are dealt with; their types go no further than this."""


class Network:
    """Kademlia, if this node takes part, and its users."""

    def __init__(
        self, kademlia: Kademlia | None, names: Names, content: Content, bootstrap: tuple[Contact, ...]
    ) -> None:
        self.kademlia = kademlia
        """None: this node takes no part in the hash table."""
        self._names = names
        self._content = content
        self._bootstrap = bootstrap
        self._sought: dict[int, int] = {}
        """Searches that are under way: by Kademlia's number, that of the question of names."""
        self._located: dict[int, NodeId] = {}
        """Lookups of content that are under way, by Kademlia's number."""
        self._waiting: dict[NodeId, None] = {}
        """Lookups of content that wait until this node has met others, and for others to end."""

    @property
    def is_on(self) -> bool:
        """Whether this node takes part in the hash table."""
        return self.kademlia is not None

    def start(self, now: float) -> list[NetworkEffect]:
        """The node is up."""
        begun: list[NetworkEffect] = []
        if self.kademlia is not None:
            begun += self.kademlia.start(self._bootstrap, now)
        return self._heed([*begun, *self._names.start(now), *self._content.start(now)], now)

    def ask(
        self, request: int, command: NamesCommand | ContentCommand | FastCommand, now: float
    ) -> list[NetworkEffect]:
        """A command about names or content."""
        if isinstance(command, ContentCommand | FastCommand):
            return self._heed(self._content.ask(request, command, now), now)
        return self._heed(self._names.ask(request, command, now), now)

    def reader_says(self, request: int, command: Unsubscribe | Consumed, now: float) -> list[NetworkEffect]:
        """A reader of content has handled something, or reads no more."""
        return self._heed(self._content.reader_says(request, command, now), now)

    def on_message(
        self,
        peer: PeerId,
        message: NameMessage | KademliaMessage | ContentMessage | FastMessage,
        now: float,
    ) -> list[NetworkEffect]:
        """A peer asks or answers."""
        if isinstance(message, ContentMessage | FastMessage):
            return self._heed(self._content.on_message(peer, message, now), now)
        if isinstance(message, NameMessage):
            return self._heed(self._names.on_message(peer, message, now), now)
        if self.kademlia is None:
            note = f"{type(message).__name__}: this node takes no part in the hash table"
            return [Record(Kind.REJECTED, peer=peer, reason=Reason.UNSUPPORTED, note=note)]
        return self._heed(self.kademlia.on_message(peer, message, now), now)

    def link_up(self, event: LinkUp, now: float) -> list[NetworkEffect]:
        """A peer is there."""
        met: list[NetworkEffect] = [*self._names.link_up(event, now)]
        if self.kademlia is not None:
            met += self.kademlia.link_up(event, now)
        return self._heed([*met, *self._content.links(event, now)], now)

    def link_gone(self, event: LinkDown | DialFailed, now: float) -> list[NetworkEffect]:
        """A peer is gone, or could not be reached."""
        lost: list[NetworkEffect] = []
        if isinstance(event, LinkDown):
            lost += self._names.link_down(event, now)
        if self.kademlia is not None:
            lost += self.kademlia.link_gone(event, now)
        return self._heed([*lost, *self._content.links(event, now)], now)

    def fired(self, tick: Tick, now: float) -> list[NetworkEffect]:
        """A timer of one of them has run out."""
        if tick.owner == NAMES:
            return self._heed(self._names.fired(tick, now), now)
        if tick.owner in CONTENT:
            return self._heed(self._content.fired(tick, now), now)
        return [] if self.kademlia is None else self._heed(self.kademlia.fired(tick, now), now)

    def _heed(self, effects: Iterable[NetworkEffect], now: float) -> list[NetworkEffect]:
        """Fulfil wishes, and tell who wished what came of them; the rest is for the node."""
        out: list[NetworkEffect] = []
        waiting = deque(effects)
        while waiting or (waiting := deque(self._locate_next(now))):
            effect = waiting.popleft()
            if isinstance(effect, Locate):
                waiting.extendleft(reversed(self._locate(effect.key, now)))
            elif isinstance(effect, SeekRecords):
                waiting.extendleft(reversed(self._seek(effect, now)))
            elif isinstance(effect, PlaceInNetwork):
                waiting.extendleft(reversed(self._place(effect, now)))
            elif isinstance(effect, RecordsFound):
                waiting.extendleft(reversed(self._found(effect, now)))
            elif isinstance(effect, NodesFound):
                key = self._located.pop(effect.number, None)
                if key is not None:
                    waiting.extendleft(reversed(self._content.located(key, effect.contacts, now)))
            elif not isinstance(effect, Placed):
                out.append(effect)
        return out

    def _locate(self, key: NodeId, now: float) -> list[NetworkEffect]:
        """Content wants to know who is nearest to a key: at once in a simulation, by Kademlia else."""
        if self._content.search is not None:
            return [*self._content.located(key, self._content.search.search(key), now)]
        if self.kademlia is None:
            return []
        if len(self._waiting) >= WAITING:
            # What is known without asking is the best answer then; a claim mends it if it is wrong.
            record = Record(Kind.DROPPED, reason=Reason.QUEUE_FULL, note="a lookup for a rendezvous")
            return [record, *self._content.located(key, self.kademlia.table.nearest(key, 8), now)]
        self._waiting[key] = None
        return []

    def _locate_next(self, now: float) -> list[NetworkEffect]:
        """Begin a lookup that waits, if there is one and it is time for it."""
        if not self._waiting or self.kademlia is None or self.kademlia.is_joining:
            return []
        key = next(iter(self._waiting))
        try:
            number, effects = self.kademlia.find(key, now)
        except Refused:
            return []  # It waits on: when one of those under way ends, it is its turn.
        del self._waiting[key]
        self._located[number] = key
        return [*effects]

    def _seek(self, wish: SeekRecords, now: float) -> list[NetworkEffect]:
        if self.kademlia is None:
            return [*self._names.on_network(wish.number, (), 0, now)]
        try:
            number, effects = self.kademlia.gather(wish.key, now)
        except Refused as error:
            record = Record(Kind.DROPPED, reason=error.reason, note="a search for a record of a name")
            return [record, *self._names.on_network(wish.number, (), 0, now)]
        self._sought[number] = wish.number
        return [*effects]

    def _place(self, wish: PlaceInNetwork, now: float) -> list[NetworkEffect]:
        if self.kademlia is None:
            return []
        try:
            return [*self.kademlia.place(wish.record, now, again=False)[1]]
        except Refused as error:
            return [Record(Kind.DROPPED, reason=error.reason, note="a record of a name, into the network")]

    def _found(self, found: RecordsFound, now: float) -> list[NetworkEffect]:
        number = self._sought.pop(found.number)
        return [*self._names.on_network(number, found.records, found.answered, now)]
