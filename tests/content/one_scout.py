"""One machine, by hand: a node with one that is closer to a rendezvous and two that are farther."""

from __future__ import annotations

from tests.content.directories import Known
from tests.content.one_event import lone_context

from linnet.content.attribute_keys import Directory, Located, attribute_key, distance
from linnet.content.commands import Match, PublishContent
from linnet.content.config import ContentConfig
from linnet.content.messages import Publish, Subscribe, Subscribed
from linnet.content.scout import Scout
from linnet.core.effects import Send
from linnet.core.hello import WIRE_VERSION, Hello
from linnet.core.ids import Contact, PeerId
from linnet.core.inputs import LinkDown, LinkUp
from linnet.core.reasons import Reason
from linnet.event.event import Unverified
from linnet.identity.cards import Card
from linnet.machine.outbox import Outbox
from linnet.overlay.kademlia.routing_table import NodeId
from linnet.sim.clock import START
from linnet.sim.seeded_random import seeded_identity
from linnet.testing.lone_part import LonePart, Said
from linnet.trace.records import Kind, Record

KEY = attribute_key("stock")
IDENTITIES = sorted(
    (seeded_identity(7, f"n{number}", START) for number in range(4)),
    key=lambda each: distance(each.peer, KEY),
)
NEAR, OWN, FAR, FARTHER = (identity.peer for identity in IDENTITIES)


class LoneScout(LonePart):
    """ScoutSubs of a node; what its subscriptions are handed is delivered under their own numbers."""

    def __init__(self, place: int, directory: Directory, config: ContentConfig | None = None) -> None:
        identity, out = IDENTITIES[place], Outbox()
        context, chosen = lone_context(identity), config or ContentConfig()
        self.scout = Scout(context, chosen, directory, out, self._hand, lambda: out)
        super().__init__(self.scout, out)

    def _hand(self, numbers: list[int], match: Match) -> None:
        for number in numbers:
            self.out.deliver(number, (match,))

    def up(self, peer: PeerId) -> Said:
        """A link to a peer that takes part is up."""
        hello = Hello(WIRE_VERSION, WIRE_VERSION, {"content": 1})
        self.scout.handle_link_up(LinkUp(peer, hello, False, None), START)
        return self.out.take_said()

    def down(self, peer: PeerId, reason: Reason = Reason.LOST) -> Said:
        """The link to a peer is down."""
        self.scout.handle_link_loss(LinkDown(peer, reason), START)
        return self.out.take_said()

    def find(self, key: NodeId, *contacts: Contact) -> Said:
        """A lookup has ended."""
        self.scout.handle_nodes_found(Located(key, contacts), START)
        return self.out.take_said()

    def subscribe(self, number: int, text: str) -> Said:
        """The application wants what a predicate accepts."""
        self.scout.admit_subscription(number, text)
        self.scout.begin_subscription(number, START)
        return self.out.take_said()


def scout(config: ContentConfig | None = None) -> LoneScout:
    machine = LoneScout(1, Known(NEAR, hints=("tls://near:1",)), config)
    for peer in (NEAR, FAR, FARTHER):
        machine.up(peer)
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
