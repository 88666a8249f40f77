"""One machine, by hand: a node with one that is closer to a rendezvous and two that are farther."""

from __future__ import annotations

from random import Random

from linnet.content.commands import PublishContent
from linnet.content.config import ContentConfig
from linnet.content.keys import attribute_key, distance
from linnet.content.messages import Publish, Subscribe, Subscribed
from linnet.content.scout import Scout
from linnet.core.effects import Send
from linnet.core.hello import WIRE_VERSION, Hello
from linnet.core.ids import Contact
from linnet.core.inputs import LinkUp
from linnet.core.reasons import Reason
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.context import Context
from linnet.event.event import Unverified
from linnet.event.signing import verify_unit
from linnet.identity.cards import Card
from linnet.overlay.kademlia.ids import NodeId
from linnet.sim.clock import START
from linnet.sim.identities import seeded_identity
from linnet.store.memory import MemoryStore
from linnet.trace.records import Kind, Record

KEY = attribute_key("stock")
IDENTITIES = sorted(
    (seeded_identity(7, f"n{number}", START) for number in range(4)),
    key=lambda each: distance(each.peer, KEY),
)
NEAR, OWN, FAR, FARTHER = (identity.peer for identity in IDENTITIES)


class Known:
    """A directory of one."""

    def closest(self, key: NodeId, count: int) -> list[Contact]:
        return [Contact(NEAR, ("tls://near:1",))]


def scout(config: ContentConfig | None = None) -> Scout:
    identity = IDENTITIES[1]
    context = Context(identity.device, identity.card, MemoryStore(), DeliveryConfig(), Random(1), verify_unit)
    machine = Scout(context, config or ContentConfig(), Known())
    for peer in (NEAR, FAR, FARTHER):
        machine.link_up(LinkUp(peer, Hello(WIRE_VERSION, WIRE_VERSION, {"content": 1}), False), START)
    return machine


def sends(effects: list[object]) -> list[object]:
    return [effect for effect in effects if isinstance(effect, Send)]


def subscribes(effects: list[object]) -> list[object]:
    """What is asked of whom: peer, number, predicate, hops."""
    found = [each for each in effects if isinstance(each, Send) and isinstance(each.message, Subscribe)]
    return [(each.peer, each.message.number, each.message.predicate, each.message.hops) for each in found]


def subscribed(effects: list[object]) -> list[object]:
    found = [each for each in effects if isinstance(each, Send) and isinstance(each.message, Subscribed)]
    return [(each.peer, each.message) for each in found]


def rejected(effects: list[object]) -> list[Reason | None]:
    return [each.reason for each in effects if isinstance(each, Record) and each.kind is Kind.REJECTED]


def published() -> tuple[Unverified, Card]:
    effects = scout().ask(1, PublishContent("stock", b"x"), START)
    (send,) = [each for each in effects if isinstance(each, Send)]
    assert isinstance(send.message, Publish)
    return send.message.unit, send.message.card
