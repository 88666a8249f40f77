"""One node's groups by hand: the machine alone, and the words of those around it."""

from __future__ import annotations

from typing import TypeVar

from tests.content.directories import Known
from tests.content.one_event import lone_context

from linnet.content.attribute_keys import Located
from linnet.content.commands import Match
from linnet.content.config import ContentConfig, FastConfig
from linnet.content.fast.commands import FastCommand, JoinGroups, OpenGroup
from linnet.content.fast.fast_delivery import FastDelivery
from linnet.content.fast.messages import Convey, Conveyed, Enrol, Entrust, Entrusted, FastMessage
from linnet.content.fast.signed_records import group_id, make_enrolment, receipt
from linnet.core.effects import AfterCommit, Reply, Send
from linnet.core.hello import WIRE_VERSION, Hello
from linnet.core.ids import Contact, PeerId
from linnet.core.inputs import LinkDown, LinkUp
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.event.signing import unit_head
from linnet.machine.outbox import Outbox
from linnet.overlay.kademlia.routing_table import NodeId
from linnet.sim.clock import START
from linnet.testing.identities import known_identity
from linnet.testing.lone_part import LonePart, Said
from linnet.trace.records import Kind, Record

HINTS = ("tls://a:1",)
M = TypeVar("M", bound=FastMessage)


def receipt_key(name: str) -> bytes:
    """The key that a member of this name shares with its publisher."""
    return name.encode().ljust(32, b".")


class FastNode:
    """A machine with links to whoever is named."""

    def __init__(self, name: str, config: FastConfig | None = None) -> None:
        self.identity = known_identity(name)
        self.peer = self.identity.peer
        context = lone_context(self.identity, name)
        self.config = config or FastConfig()
        self.out = out = Outbox()
        self.machine = FastDelivery(
            context, self.config, ContentConfig(), Known(), HINTS, out, self._hand, lambda: out
        )
        self.now = START
        self._part = LonePart(self.machine, out)
        self._requests = 0

    def _hand(self, numbers: list[int], match: Match) -> None:
        for number in numbers:
            self.out.deliver(number, (match,))

    def ask(self, command: FastCommand) -> Said:
        """A command of the application."""
        self._requests += 1
        if not isinstance(command, JoinGroups):
            return self._part.ask(self._requests, command, self.now)
        self.machine.admit_subscription(self._requests, command)
        self.machine.begin_subscription(command.subscription, self.now)
        return self.out.take_said()

    def hear(self, name: str, message: FastMessage) -> Said:
        """A message of the node of this name, to which there is a link from then on."""
        self.up(name)
        return self._part.hear(known_identity(name).peer, message, self.now)

    def up(self, name: str) -> Said:
        """A link to the node of this name is up."""
        hello = Hello(WIRE_VERSION, WIRE_VERSION, {"fast": 1}, listens=HINTS)
        self.machine.handle_link_up(LinkUp(known_identity(name).peer, hello, False, None), self.now)
        return self.out.take_said()

    def down(self, name: str, reason: Reason = Reason.CRASHED) -> Said:
        """The link to it is down."""
        self.machine.handle_link_loss(LinkDown(known_identity(name).peer, reason), self.now)
        return self.out.take_said()

    def find(self, key: NodeId, *contacts: Contact) -> Said:
        """A lookup has ended."""
        self.machine.handle_nodes_found(Located(key, contacts), self.now)
        return self.out.take_said()

    def fire(self, timer: Timer) -> Said:
        """A timer has run out."""
        return self._part.fire(timer, self.now)


class LonePublisher(FastNode):
    """A node with a group; its members are words of the test."""

    def __init__(self, group: str = "stock", config: FastConfig | None = None) -> None:
        super().__init__("publisher", config)
        self.group = group_id(self.peer, group)
        self.text = group
        self.ask(OpenGroup(group, listed=False))

    def enrol(self, name: str, capacity: int = 0, predicate: str | None = None) -> Said:
        """One joins."""
        identity = known_identity(name)
        until = int(self.now + 10_000)
        wanted = (predicate or self.text,)
        enrolment = make_enrolment(identity.device, self.group, HINTS, wanted, "here", capacity, until)
        return self.hear(name, Enrol(1, self.text, enrolment, receipt_key(name)))

    def fill(self, *names: str) -> Said:
        """Some join, the first could serve ten; it says yes to all that it is asked."""
        effects: Said = []
        for number, name in enumerate(names):
            effects = self.enrol(name, 0 if number else 10)
            for entrust in sent(effects, names[0], Entrust):
                self.hear(names[0], Entrusted(entrust.number, None))
        return effects

    def receive(
        self,
        convey: Convey,
        name: str,
        *others: str,
        fresh: bool = True,
        reason: Reason | None = None,
    ) -> Said:
        """A member answers, with receipts of others that it shows."""
        event = unit_head(convey.unit)
        shown = tuple((known_identity(each).peer, receipt(receipt_key(each), event)) for each in others)
        own = receipt(receipt_key(name), event)
        return self.hear(name, Conveyed(convey.number, event, own, fresh, False, shown, reason))


def sent(said: Said, name: str, kind: type[M]) -> list[M]:
    """The messages of one type that go to a node."""
    peer = known_identity(name).peer
    found = [each.message for each in said if isinstance(each, Send) and each.peer == peer]
    return [message for message in found if isinstance(message, kind)]


def replies(said: Said) -> list[object]:
    """What the application is answered, at once or when it is durable."""
    plain = [each for one in said for each in (one.effects if isinstance(one, AfterCommit) else (one,))]
    return [each.result for each in plain if isinstance(each, Reply)]


def complaints(said: Said) -> list[tuple[PeerId | None, Reason | None]]:
    """Who did something wrong, and what."""
    kinds = (Kind.REJECTED, Kind.DROPPED, Kind.EVICTED)
    return [(each.peer, each.reason) for each in said if isinstance(each, Record) and each.kind in kinds]
