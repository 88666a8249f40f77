"""The hash table over the network at one node, and names in it: who asked for what, and who is told.

Names say what they wish (`SeekRecords`, `PlaceInNetwork`); this asks Kademlia and hands back what
comes of it. A node that takes no part refuses what it is asked and wishes for nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TypeAlias

from linnet.core.errors import Refused
from linnet.core.ids import Contact, PeerId
from linnet.core.inputs import DialFailed, LinkDown, LinkUp
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.names.asking import OWNER as NAMES
from linnet.names.commands import NamesCommand
from linnet.names.messages import NameMessage
from linnet.names.names import Names, NamesEffect
from linnet.names.network_records import PlaceInNetwork, SeekRecords
from linnet.overlay.kademlia.kademlia import Kademlia, KademliaEffect
from linnet.overlay.kademlia.messages import KademliaMessage
from linnet.overlay.kademlia.outcomes import NodesFound, Placed, RecordsFound
from linnet.overlay.kademlia.questions import OWNER as KADEMLIA
from linnet.trace.records import Kind, Record

OWNERS = frozenset({NAMES, KADEMLIA})
"""Whose timers are for this part."""

NetworkEffect: TypeAlias = NamesEffect | KademliaEffect
"""What is left when wishes and outcomes are dealt with; their types go no further than this."""


class Network:
    """Kademlia, if this node takes part, and its users."""

    def __init__(self, kademlia: Kademlia | None, names: Names, bootstrap: tuple[Contact, ...]) -> None:
        self._kademlia = kademlia
        self._names = names
        self._bootstrap = bootstrap
        self._sought: dict[int, int] = {}
        """Searches that are under way: by Kademlia's number, that of the question of names."""

    @property
    def is_on(self) -> bool:
        """Whether this node takes part in the hash table."""
        return self._kademlia is not None

    def start(self, now: float) -> list[NetworkEffect]:
        """The node is up."""
        begun: list[NetworkEffect] = []
        if self._kademlia is not None:
            begun += self._kademlia.start(self._bootstrap, now)
        return self._heed([*begun, *self._names.start(now)], now)

    def ask(self, request: int, command: NamesCommand, now: float) -> list[NetworkEffect]:
        """A command about names."""
        return self._heed(self._names.ask(request, command, now), now)

    def on_message(
        self, peer: PeerId, message: NameMessage | KademliaMessage, now: float
    ) -> list[NetworkEffect]:
        """A peer asks or answers."""
        if isinstance(message, NameMessage):
            return self._heed(self._names.on_message(peer, message, now), now)
        if self._kademlia is None:
            note = f"{type(message).__name__}: this node takes no part in the hash table"
            return [Record(Kind.REJECTED, peer=peer, reason=Reason.UNSUPPORTED, note=note)]
        return self._heed(self._kademlia.on_message(peer, message, now), now)

    def link_up(self, event: LinkUp, now: float) -> list[NetworkEffect]:
        """A peer is there."""
        met: list[NetworkEffect] = [*self._names.link_up(event, now)]
        if self._kademlia is not None:
            met += self._kademlia.link_up(event, now)
        return self._heed(met, now)

    def link_gone(self, event: LinkDown | DialFailed, now: float) -> list[NetworkEffect]:
        """A peer is gone, or could not be reached."""
        lost: list[NetworkEffect] = []
        if isinstance(event, LinkDown):
            lost += self._names.link_down(event, now)
        if self._kademlia is not None:
            lost += self._kademlia.link_gone(event, now)
        return self._heed(lost, now)

    def fired(self, tick: Tick, now: float) -> list[NetworkEffect]:
        """A timer of either has run out."""
        if tick.owner == NAMES:
            return self._heed(self._names.fired(tick, now), now)
        return [] if self._kademlia is None else self._heed(self._kademlia.fired(tick, now), now)

    def _heed(self, effects: Iterable[NetworkEffect], now: float) -> list[NetworkEffect]:
        """Fulfil wishes of names, and tell names what came of them; the rest is for the node."""
        out: list[NetworkEffect] = []
        waiting = deque(effects)
        while waiting:
            effect = waiting.popleft()
            if isinstance(effect, SeekRecords):
                waiting.extendleft(reversed(self._seek(effect, now)))
            elif isinstance(effect, PlaceInNetwork):
                waiting.extendleft(reversed(self._place(effect, now)))
            elif isinstance(effect, RecordsFound):
                waiting.extendleft(reversed(self._found(effect, now)))
            elif not isinstance(effect, NodesFound | Placed):
                out.append(effect)
        return out

    def _seek(self, wish: SeekRecords, now: float) -> list[NetworkEffect]:
        if self._kademlia is None:
            return [*self._names.on_network(wish.number, (), 0, now)]
        try:
            number, effects = self._kademlia.gather(wish.key, now)
        except Refused as error:
            record = Record(Kind.DROPPED, reason=error.reason, note="a search for a record of a name")
            return [record, *self._names.on_network(wish.number, (), 0, now)]
        self._sought[number] = wish.number
        return [*effects]

    def _place(self, wish: PlaceInNetwork, now: float) -> list[NetworkEffect]:
        if self._kademlia is None:
            return []
        try:
            return [*self._kademlia.place(wish.record, now, again=False)[1]]
        except Refused as error:
            return [Record(Kind.DROPPED, reason=error.reason, note="a record of a name, into the network")]

    def _found(self, found: RecordsFound, now: float) -> list[NetworkEffect]:
        number = self._sought.pop(found.number)
        return [*self._names.on_network(number, found.records, found.answered, now)]
