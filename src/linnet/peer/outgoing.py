"""What the parts of a node ask, before a driver sees it.

What is meant for the node itself is acted on, what is meant for this same node as if for another is
looped back, and what a peer does not speak is not said to it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TypeGuard, assert_never

from linnet.content.part import PROTOCOLS as CONTENT
from linnet.core.effects import AfterCommit, Blame, Hold, Probe, Release, Send
from linnet.core.hello import Hello
from linnet.core.ids import PeerId
from linnet.core.inputs import LinkUp, Received
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.machine.outbox import Effect as Asking
from linnet.machine.outbox import Outbox
from linnet.overlay.kademlia.kademlia import PROTOCOL as KADEMLIA
from linnet.peer.edge import Edge
from linnet.peer.interface import Effect, Input
from linnet.peer.links import Links
from linnet.peer.messages import PROTOCOL_OF, PROTOCOLS
from linnet.peer.whereabouts import PROTOCOL as WHEREABOUTS
from linnet.trace.records import Kind, Record

_CHOSEN = (KADEMLIA, *CONTENT, WHEREABOUTS)
"""Protocols of which nothing is said to whoever does not take part, so that nothing has to be held back."""
_FOR_THE_NODE = frozenset({Hold, Release, Blame, Probe})


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

    def is_plain(self, asked: list[Asking]) -> TypeGuard[list[Effect]]:
        """Whether all of it is for the driver as it is."""
        return not self._lacking and _FOR_THE_NODE.isdisjoint(map(type, asked))

    def resolve(self, asked: Iterable[Asking], now: float) -> list[Effect]:
        """Act on what is meant for the node machine, and loop back what this node says to itself. The rest is
        for the driver."""
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
            elif isinstance(effect, Hold | Release | Blame | Probe):
                self._act(effect, now)
                effects += self._asked_by_links()
            elif isinstance(effect, AfterCommit) and self._lacking:
                promises = (self._spoken(it) if isinstance(it, Send) else it for it in effect.effects)
                effects.append(AfterCommit(tuple(promises)))
            else:
                effects.append(effect)
        return effects

    def _asked_by_links(self) -> list[Effect]:
        """What came of it; links ask nothing of the node itself."""
        return [each for each in self._out.take() if not isinstance(each, Hold | Release | Blame)]

    def _act(self, effect: Hold | Release | Blame | Probe, now: float) -> None:
        match effect:
            case Hold():
                self._hold(effect, now)
            case Release():
                self._links.release(effect)
            case Blame():
                self._links.blame(effect, now)
            case Probe():
                self._links.probe(effect, now)
            case _:
                assert_never(effect)

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
