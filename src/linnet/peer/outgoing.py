"""What the parts of a node ask, before a driver sees it.

What is meant for the node itself is acted on, what is meant for this same node as if for another is
looped back, and what a peer does not speak is not said to it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from linnet.core.effects import AfterCommit, Blame, Hold, Probe, Release, Reply, Send
from linnet.core.hello import Hello
from linnet.core.ids import PeerId
from linnet.core.inputs import LinkUp, Received
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.machine.outbox import Effect as AnyEffect
from linnet.machine.outbox import Outbox
from linnet.overlay.kademlia.kademlia import PROTOCOL as KADEMLIA
from linnet.peer.content import PROTOCOLS as CONTENT
from linnet.peer.content_desk import DeskEffect
from linnet.peer.edge import Edge
from linnet.peer.interface import Effect, Input, NodeStatus
from linnet.peer.links import Links
from linnet.peer.messages import PROTOCOL_OF, PROTOCOLS
from linnet.peer.whereabouts import PROTOCOL as WHEREABOUTS
from linnet.places.effects import PlaceEffect
from linnet.streams.effects import StreamEffect
from linnet.trace.records import Kind, Record

Asking: TypeAlias = StreamEffect | AnyEffect | PlaceEffect | DeskEffect | Reply[NodeStatus]
"""What the parts return, before the node machine has heeded what is meant for itself."""

_CHOSEN = (KADEMLIA, *CONTENT, WHEREABOUTS)
"""Protocols of which nothing is said to whoever does not take part, so that nothing has to be held back."""
_FOR_THE_NODE = frozenset({Hold, Release, Blame, Probe})
_LOOKED_AT = _FOR_THE_NODE | {AfterCommit}


class Outgoing:
    """The way out of a node machine."""

    def __init__(self, ours: PeerId, hello: Hello, links: Links, edge: Edge, out: Outbox) -> None:
        self._out = out
        self._ours = ours
        self._hello = hello
        self._links = links
        self._edge = edge
        self.looped: deque[Input] = deque()
        """What this node said to itself."""
        self._lacking: dict[PeerId, tuple[str, ...]] = {}
        """Peers of which we know that they do not speak all of our protocols, and which they lack."""

    def link_up(self, peer: PeerId, spoken: Iterable[str]) -> None:
        """A peer speaks these protocols."""
        # Of the hash table and of content nothing is ever said to who does not take part.
        lacking = tuple(name for name in PROTOCOLS if name not in spoken and name not in _CHOSEN)
        if lacking:
            self._lacking[peer] = lacking

    def link_down(self, peer: PeerId) -> None:
        """A peer is gone."""
        self._lacking.pop(peer, None)

    def is_plain(self, asked: Iterable[Asking]) -> bool:
        """Whether all of it is for the driver as it is."""
        return not self._lacking and _FOR_THE_NODE.isdisjoint(map(type, asked))

    def heed(self, asked: Sequence[Asking], now: float) -> list[Effect]:
        """Act on what is meant for the node machine, loop back what is meant for this node."""
        effects: list[Effect] = []
        ours = self._ours
        for effect in asked:
            # By type first: most of what is asked is for the driver.
            if isinstance(effect, Send):
                if effect.peer == ours:
                    self.looped.append(Received(ours, effect.message))
                elif self._lacking:
                    effects.append(self._spoken(effect))
                else:
                    effects.append(effect)
            elif type(effect) not in _LOOKED_AT:
                effects.append(effect)  # type: ignore[arg-type] # just seen
            elif isinstance(effect, Hold):
                self._hold(effect, now)
                effects += self._out.take()  # type: ignore[arg-type] # links ask nothing of the node itself
            elif isinstance(effect, Release):
                self._links.release(effect)
                effects += self._out.take()  # type: ignore[arg-type] # as above
            elif isinstance(effect, Blame):
                self._links.blame(effect, now)
                effects += self._out.take()  # type: ignore[arg-type] # as above
            elif isinstance(effect, Probe):
                self._links.probe(effect, now)
                effects += self._out.take()  # type: ignore[arg-type] # as above
            elif isinstance(effect, AfterCommit) and self._lacking:
                promises = (self._spoken(it) if isinstance(it, Send) else it for it in effect.effects)
                effects.append(AfterCommit(tuple(promises)))
            else:
                effects.append(effect)  # type: ignore[arg-type] # no notice comes so far
        return effects

    def _hold(self, hold: Hold, now: float) -> None:
        if hold.peer == self._ours:
            self.looped.append(LinkUp(self._ours, self._hello, True))
            return
        if self._edge.check_hold(hold):
            self._links.hold(hold, now)

    def _spoken(self, send: Send[Message]) -> Send[Message] | Record:
        """The message, or a record of it if the peer does not speak its protocol."""
        if PROTOCOL_OF[type(send.message)] not in self._lacking.get(send.peer, ()):
            return send
        note = f"{type(send.message).__name__}: the peer does not speak this protocol"
        return Record(Kind.DROPPED, peer=send.peer, reason=Reason.UNSUPPORTED, note=note)
