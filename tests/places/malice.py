"""Nodes that do as they like with what they send, in the simulated world, over the shipped machines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from linnet.core.effects import AfterCommit, Send
from linnet.core.hello import Hello
from linnet.core.reasons import Reason
from linnet.peer.interface import Effect, Input, NodeMachine
from linnet.places.config import PlacesConfig
from linnet.sim.links import LinkModel
from linnet.sim.places_world import PlacesWorld
from linnet.trace.columns import ColumnTrace
from linnet.trace.records import Row

Twist = Callable[[Send], Iterable[Send]]  # type: ignore[type-arg] # any message
"""What a node sends instead of what its machine would."""


class Twisted:
    """A node machine whose messages are not what they should be."""

    def __init__(self, inner: NodeMachine, twist: Twist) -> None:
        self._inner = inner
        self._twist = twist

    @property
    def hello(self) -> Hello:
        return self._inner.hello

    def handle(self, event: Input, now: float) -> list[Effect]:
        return [each for effect in self._inner.handle(event, now) for each in self._twisted(effect)]

    def _twisted(self, effect: Effect) -> list[Effect]:
        if isinstance(effect, Send):
            return [*self._twist(effect)]
        if isinstance(effect, AfterCommit):
            return [AfterCommit(tuple(each for inner in effect.effects for each in self._twisted(inner)))]  # type: ignore[misc]
        return [effect]


class MaliciousWorld(PlacesWorld):
    """A place in which some guests are not honest; all that happens is written down."""

    def __init__(
        self,
        guests: int,
        seed: int,
        twists: Mapping[str, Twist],
        links: LinkModel | None = None,
        config: PlacesConfig | None = None,
    ) -> None:
        self.twists = twists
        self.trace = ColumnTrace()
        super().__init__(guests, seed, links, config, self.trace)

    def machine(self, name: str) -> NodeMachine:
        honest = super().machine(name)
        twist = self.twists.get(name)
        return honest if twist is None else Twisted(honest, twist)

    @property
    def honest(self) -> list[str]:
        """Guests who are what they seem to be."""
        return [name for name in self.guests if name not in self.twists]

    def named(self, by: str, whom: str, reason: Reason) -> list[Row]:
        """What one node wrote down about another, for this reason."""
        node, peer = self.identities[by].peer, self.identities[whom].peer
        rows = self.trace.rows()
        return [row for row in rows if (row.node, row.peer, row.reason) == (node, peer, str(reason))]
