"""A tracker that builds a star: the first that joins is its centre, all others are linked to it alone."""

from __future__ import annotations

from linnet.core.effects import Send
from linnet.core.hello import Hello
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.inputs import Received
from linnet.overlay.messages import Instruction, Join, Leave, Status
from linnet.peer.interface import Effect, Input, NodeMachine


class StarTracker:
    """A node machine that answers joins by itself and leaves everything else to an ordinary one."""

    def __init__(self, machine: NodeMachine) -> None:
        self._machine = machine
        self._nodes: dict[PeerId, Contact] = {}
        self._counter = 0

    @property
    def hello(self) -> Hello:
        """See `NodeMachine.hello`."""
        return self._machine.hello

    def handle(self, event: Input, now: float) -> list[Effect]:
        """See `NodeMachine.handle`."""
        if isinstance(event, Received):
            if isinstance(event.message, Join):
                return self._join(event.peer, event.message)
            if isinstance(event.message, Status | Leave):
                return []
        return self._machine.handle(event, now)

    def _join(self, peer: PeerId, join: Join) -> list[Effect]:
        self._nodes[peer] = Contact(peer, join.listens)
        centre, *others = self._nodes.values()
        effects = [self._instruct(join.topic, centre.peer, tuple(others))]
        if peer != centre.peer:
            effects.append(self._instruct(join.topic, peer, (centre,)))
        return effects

    def _instruct(self, topic: TopicId, peer: PeerId, neighbors: tuple[Contact, ...]) -> Effect:
        self._counter += 1
        return Send(peer, Instruction(topic, self._counter, neighbors, ()))
