"""Nodes that do as they like with what they send, in the simulated world, over the shipped machines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

from linnet.core.effects import AfterCommit, Deliver, Send
from linnet.core.hello import Hello
from linnet.core.ids import PeerId
from linnet.core.limits import LARGEST_COUNT
from linnet.core.reasons import Reason
from linnet.peer.interface import Effect, Handed, Input, NodeMachine
from linnet.places.channel.membership import Membership
from linnet.places.config import PlacesConfig
from linnet.places.deed import Deed
from linnet.places.items import Said
from linnet.places.place_setup import DEEDS, decode_deed
from linnet.sim.links import LinkModel
from linnet.sim.places.world import HOST, PlacesWorld
from linnet.trace.columns import ColumnTrace
from linnet.trace.records import Row

M = TypeVar("M")
AnySend = Send[Any]


class Twist:
    """What a node does beside or instead of what its machine would. This one is honest."""

    def sends(self, send: AnySend) -> Iterable[AnySend]:
        """What leaves instead of this."""
        return [send]

    def hears(self, event: Input) -> Iterable[AnySend]:
        """What it says besides, when this comes."""
        return []


class Altering(Twist, Generic[M]):
    """A node that sends something else instead of messages of one kind; None: nothing."""

    def __init__(self, kind: type[M], alter: Callable[[M], M | None]) -> None:
        self._kind = kind
        self._alter = alter

    def sends(self, send: AnySend) -> Iterable[AnySend]:
        if not isinstance(send.message, self._kind):
            return [send]
        message = self._alter(send.message)
        return [] if message is None else [Send(send.peer, message)]


class Twisted:
    """A node machine whose messages are not what they should be."""

    def __init__(self, inner: NodeMachine, twist: Twist) -> None:
        self._inner = inner
        self._twist = twist

    @property
    def hello(self) -> Hello:
        return self._inner.hello

    def handle(self, event: Input, now: float) -> list[Effect]:
        effects = [each for effect in self._inner.handle(event, now) for each in self._twisted(effect)]
        return [*effects, *self._twist.hears(event)]

    def _twisted(self, effect: Effect) -> list[Effect]:
        if isinstance(effect, Send):
            return [*self._twist.sends(effect)]
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
        self.told: dict[tuple[str, int], int] = {}
        """How often each application was handed the beginning of each message."""
        self.judged = LARGEST_COUNT
        """The last message that everybody must have. A relay that sends late keeps the latest sign of life
        back for a while, and nobody can know of it before the next one."""
        super().__init__(guests, seed, links, config, self.trace)

    def machine(self, name: str) -> NodeMachine:
        honest = super().machine(name)
        twist = self.twists.get(name)
        return honest if twist is None else Twisted(honest, twist)

    @property
    def deed(self) -> Deed:
        """The one that the host's store has."""
        ((_, raw),) = self.stores[HOST].cells.scan(DEEDS)
        return decode_deed(raw)

    def deliver(self, peer: PeerId, effect: Deliver[Handed], now: float) -> None:
        for item in effect.items:
            if isinstance(item, Said) and item.nym is None:
                key = self.names[peer], item.message
                self.told[key] = self.told.get(key, 0) + 1
        super().deliver(peer, effect, now)

    @property
    def honest(self) -> list[str]:
        """Guests who are what they seem to be."""
        return [name for name in self.guests if name not in self.twists]

    def complete(self) -> list[str]:
        """What honest guests lack of what the host said since they came in, or have in other words, and whose
        state is another."""
        host = self.status(HOST)
        membership = Membership(self.place, self.stores[HOST].cells, host.deed.policy)
        lacking = []
        for name in self.honest:
            status = self.status(name)
            said = self.said.get(name, {})
            first = membership.changes(self.identities[name].author)[-1].effective_since
            due = [message for message in self.said[HOST] if first <= message <= self.judged]
            missed = [message for message in due if message not in said]
            lacking += [f"{name} lacks {missed[:9]}"] if missed else []
            other = [each for each in due if each in said and said[each] != self.said[HOST][each]]
            lacking += [f"{name} has other words in {other[:9]}"] if other else []
            lacking += [f"{name} has another state"] if status.state_hash != host.state_hash else []
        return lacking

    def liars_named(self, reason: Reason) -> set[str]:
        """The dishonest ones whom somebody honest named for this reason."""
        liars = {self.identities[name].peer: name for name in self.twists}
        honest = {self.identities[name].peer for name in (HOST, *self.honest)}
        rows = self.trace.rows()
        found = (row for row in rows if row.reason == str(reason) and row.node in honest)
        return {liars[PeerId(row.peer)] for row in found if row.peer in liars}

    def named(self, by: str, whom: str, reason: Reason) -> list[Row]:
        """What one node wrote down about another, for this reason."""
        node, peer = self.identities[by].peer, self.identities[whom].peer
        rows = self.trace.rows()
        return [row for row in rows if (row.node, row.peer, row.reason) == (node, peer, str(reason))]
