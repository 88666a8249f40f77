"""Subscriptions on their way up: whoever is the next hop was told all that is asked for."""

from __future__ import annotations

from random import Random

from tests.content.one_scout import FAR, IDENTITIES, NEAR, OWN

from linnet.content.commands import SubscribeContent
from linnet.content.config import ContentConfig
from linnet.content.keys import distance
from linnet.content.messages import Replace, Subscribe
from linnet.content.scout import Scout
from linnet.core.effects import Send
from linnet.core.hello import WIRE_VERSION, Hello
from linnet.core.ids import Contact, PeerId
from linnet.core.inputs import LinkUp
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.context import Context
from linnet.event.signing import verify_unit
from linnet.overlay.kademlia.ids import NodeId
from linnet.sim.clock import START
from linnet.store.memory import MemoryStore


class Few:
    """A directory of a few, whom a test names."""

    def __init__(self, *peers: PeerId) -> None:
        self.peers = [*peers]

    def closest(self, key: NodeId, count: int) -> list[Contact]:
        ordered = sorted(self.peers, key=lambda peer: distance(peer, key))
        return [Contact(peer, ("tls://few:1",)) for peer in ordered[:count]]


def told(effects: list[object]) -> list[tuple[PeerId, str | tuple[str, ...], bool]]:
    """Who was told what, and whether as something that another was told before."""
    found: list[tuple[PeerId, str | tuple[str, ...], bool]] = []
    for effect in effects:
        if isinstance(effect, Send) and isinstance(effect.message, Subscribe):
            found.append((effect.peer, effect.message.predicate, effect.message.moved))
        elif isinstance(effect, Send) and isinstance(effect.message, Replace):
            found.append((effect.peer, effect.message.predicates, False))
    return found


def test_a_next_hop_that_was_another_before_is_told_all_that_is_asked_for() -> None:
    """The one before is told that nothing counts any more: not only what is news has to be told."""
    near, between = NEAR, OWN
    identity = IDENTITIES[2]
    context = Context(identity.device, identity.card, MemoryStore(), DeliveryConfig(), Random(1), verify_unit)
    directory = Few(between)
    machine = Scout(context, ContentConfig(), directory)
    assert context.peer == FAR
    for peer in (near, between):
        machine.link_up(LinkUp(peer, Hello(WIRE_VERSION, WIRE_VERSION, {"content": 1}), False), START)
    first = machine.ask(1, SubscribeContent(1, 'stock="a"'), START)
    assert told([*first]) == [(between, 'stock="a"', False)]
    directory.peers.append(near)
    second = machine.ask(2, SubscribeContent(2, 'stock="b"'), START)
    assert told([*second]) == [(between, (), False), (near, 'stock="b"', True), (near, 'stock="a"', True)]
