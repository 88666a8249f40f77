"""Authors whose signed chains the tests of delivery and streams are made of, and what machines ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ParamSpec

from linnet.core.effects import AfterCommit, Deliver
from linnet.core.ids import EventId, TopicId
from linnet.delivery.chain import Chain
from linnet.delivery.items import Item
from linnet.event.event import Spot, Tail, Verified
from linnet.event.signing import message_tail, sign_unit
from linnet.machine.outbox import Outbox
from linnet.peer.config import Identity
from linnet.testing.identities import known_identity

TOPIC = TopicId(b"t" * 32)
P = ParamSpec("P")


class Voice:
    """One author and device that speaks in a topic, number after number."""

    def __init__(self, name: str = "ann", topic: TopicId = TOPIC) -> None:
        self.identity: Identity = known_identity(name)
        self.topic = topic
        self.next = 0
        self.prev: EventId | None = None

    def say(self, *bodies: bytes) -> Verified:
        """The next unit of the chain; one event without a body if none is given."""
        return self.sign([message_tail(body, 0) for body in bodies or (b"%d" % self.next,)])

    def sign(self, tails: list[Tail]) -> Verified:
        identity = self.identity
        unit = sign_unit(
            identity.device,
            Spot(self.topic, identity.author, identity.card.device, self.next, self.prev),
            tails,
        )
        self.next += len(tails)
        self.prev = unit.head
        return unit

    def units(self, count: int) -> list[Verified]:
        return [self.say() for _ in range(count)]

    @property
    def key(self) -> bytes:
        return self.identity.author + self.identity.card.device

    def chain(self, base: int = 0, capacity: int = 100) -> Chain:
        """A chain of this author that has seen nothing."""
        return Chain(self.identity.author, self.identity.card.device, base, capacity)


def take(chain: Chain, verified: Verified) -> list[Verified]:
    """Accept a unit and return those whose turn has come."""
    first = verified.unit.seq
    assert first is not None
    last = first + len(verified.events) - 1
    chain.accept(verified, first, last)
    return chain.in_order(verified, first, last)


def asked(out: Outbox, act: Callable[P, object], /, *args: P.args, **kwargs: P.kwargs) -> list[Any]:
    """All that is asked for while something is done; what was asked for before is left out."""
    out.clear()
    act(*args, **kwargs)
    return out.take()


def items_of(effects: Iterable[object]) -> list[Item]:
    """What subscriptions are handed, at once or after the commit."""
    found: list[Item] = []
    for effect in effects:
        if isinstance(effect, AfterCommit):
            found += items_of(effect.effects)
        elif isinstance(effect, Deliver):
            found += effect.items
    return found
