"""The nodes of a stream in which somebody attacks, and what the honest ones got, were told, and blamed.

Every node runs the shipped machine, one behind each key; `linnet.sim.attacks.conduct` says how those behave
that do not do what is expected of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from linnet.core.effects import Deliver
from linnet.core.ids import Contact, EventId, PeerId
from linnet.core.reasons import Reason
from linnet.delivery.items import Forked
from linnet.event.event import Event
from linnet.peer.config import Identity, PeerConfig
from linnet.peer.interface import Handed, NodeMachine, Start
from linnet.peer.peer import Peer
from linnet.sim.attacks.conduct import SendingNode
from linnet.sim.attacks.figures import AttackFigures
from linnet.sim.clock import START
from linnet.sim.links import LinkModel, named_latency
from linnet.sim.network import Network
from linnet.sim.seeded_random import named_luck, seeded_identity
from linnet.sim.signature_cache import RememberingCardCheck, RememberingVerifier
from linnet.store.memory import MemoryStore
from linnet.streams.commands import Publish, Subscribe
from linnet.trace.records import Kind, NullTrace, Record, TraceSink

STREAM = "simulation"
"""The stream that honest nodes read."""
HINTS = ("sim://node",)
PATIENCE = 30.0
"""Seconds in which an event is due at a reader."""
_SUBSCRIPTION = 1

Notices = Callable[[Record], bool]
"""Tells whether a record is of a certain kind."""

BLAMES = (Reason.FORGING, Reason.FLOODING, Reason.REPLAYING, Reason.SILENT)
"""The reasons of records that blame the peer that they name."""


def tells_of_a_loss(record: Record) -> bool:
    """Return whether the reader of whom this record is was told that it may lack events."""
    is_cut_off = record.reason is Reason.SILENT and record.peer is None
    return is_cut_off or record.reason is Reason.GAP_UNFILLED


def blames_a_peer(record: Record) -> bool:
    """Return whether a record blames the peer that it names."""
    return record.reason in BLAMES and record.peer is not None


class Witness:
    """Passes records on to a trace, and notes what honest nodes published, were told and blamed."""

    def __init__(self, trace: TraceSink, told: Notices, blames: Notices) -> None:
        self._pass_on = trace.write
        self.close = trace.close
        self._tells = told
        self._blames = blames
        self.honest: dict[PeerId, None] = {}
        self.records = 0
        """The records of honest nodes."""
        self.published: dict[EventId, tuple[PeerId, float]] = {}
        self.delivered: dict[tuple[EventId, PeerId], float] = {}
        """When the application of a node was first handed an event."""
        self.forks: dict[PeerId, float] = {}
        """When the application of a node was first handed the proof of a fork."""
        self.told: dict[PeerId, list[float]] = {}
        """When nodes were told that they may lack events."""
        self.blamed: dict[PeerId, int] = {}
        """How often honest nodes blamed whom."""

    def write(self, node: PeerId, record: Record, now: float) -> None:
        """Handle a record, see `TraceSink.write`."""
        self._pass_on(node, record, now)
        if node not in self.honest:
            return
        self.records += 1
        if record.kind is Kind.PUBLISHED and record.event is not None:
            self.published[record.event] = (node, now)
        elif self._tells(record):
            self.told.setdefault(node, []).append(now)
        if record.peer is not None and self._blames(record):
            self.blamed[record.peer] = self.blamed.get(record.peer, 0) + 1

    def deliver(self, node: PeerId, effect: Deliver[Handed], now: float) -> None:
        """Note the events that the application of an honest node is handed."""
        if node not in self.honest:
            return
        for item in effect.items:
            if isinstance(item, Event):
                self.delivered.setdefault((item.id, node), now)
            elif isinstance(item, Forked):
                self.forks.setdefault(node, now)


class Due(NamedTuple):
    """One delivery that is due between honest nodes."""

    event: EventId
    reader: PeerId
    since: float
    """When the event was published, or the reader asked for it, whichever came later."""
    at: float | None
    """When the reader's application was handed it."""

    def is_kept(self, patience: float) -> bool:
        """Return whether it came within so many seconds."""
        return self.at is not None and self.at - self.since <= patience


class StreamNodes:
    """A network with the nodes of one stream, honest and not. Subclasses say who they are."""

    def __init__(
        self,
        seed: int,
        trace: TraceSink | None = None,
        *,
        latency: str = "aws",
        told: Notices = tells_of_a_loss,
        blames: Notices = blames_a_peer,
    ) -> None:
        self.seed = seed
        self.witness = Witness(NullTrace() if trace is None else trace, told, blames)
        self.network = Network(seed, LinkModel(named_latency(latency)), self.witness)
        self._verifier = RememberingVerifier()
        self._card_check = RememberingCardCheck()
        self._stores: dict[PeerId, MemoryStore] = {}
        self._regions = named_luck(seed, "places")
        self._asked: dict[PeerId, float] = {}
        """When each node asked for the events of the stream."""
        self.nodes: dict[PeerId, SendingNode] = {}
        """Every node, with the count of its bytes."""
        self.honest: list[Identity] = []
        """The honest nodes of the stream, without its trackers."""
        self.hostile: list[Identity] = []
        self.trackers: tuple[Contact, ...] = ()

    def identity(self, name: str) -> Identity:
        """Return the person and device of this name."""
        return seeded_identity(self.seed, name, START)

    def contact(self, identity: Identity) -> Contact:
        """Return the key and address of a node."""
        return Contact(identity.peer, HINTS)

    def machine(self, identity: Identity, config: PeerConfig) -> Peer:
        """Make the shipped machine of a node, over a new store."""
        store = self._stores[identity.peer] = MemoryStore()
        luck = named_luck(self.seed, identity.card.label)
        return Peer(config, identity, store, luck, self._verifier, self._card_check)

    def add(self, identity: Identity, node: SendingNode, prefix: str) -> None:
        """Add a node with the address prefix from which others see it come."""
        self.nodes[identity.peer] = node
        self.network.add(
            identity.peer,
            node,
            region=self._regions.choice(self.network.table.regions),
            deliver=self.witness.deliver,
            store=self._stores[identity.peer],
            prefix=prefix,
        )

    def begin_tracker(
        self,
        make: Callable[[Identity], Peer],
        send: Callable[[NodeMachine], SendingNode] = SendingNode,
    ) -> Identity:
        """Add and start the only tracker; `make` makes its machine, and `send` decides what that sends."""
        tracker = self.identity("tracker")
        self.trackers = (self.contact(tracker),)
        self.add(tracker, send(make(tracker)), "tracker")
        self.start(tracker, 0.0)
        return tracker

    def add_honest(self, identity: Identity, node: SendingNode) -> None:
        """Add an honest node of the stream."""
        self.witness.honest[identity.peer] = None
        self.add(identity, node, f"honest {len(self.honest)}")
        self.honest.append(identity)

    def add_hostile(self, identity: Identity, node: SendingNode, networks: int = 0) -> None:
        """Add an attacker, which comes from one of so many networks; 0: from one of its own."""
        number = len(self.hostile)
        self.add(identity, node, f"hostile {number % networks if networks else number}")
        self.hostile.append(identity)

    def start(self, identity: Identity, at: float) -> None:
        """Start a node at a virtual second."""
        self.network.ask(identity.peer, Start(), at=at)

    def join(self, identity: Identity, at: float, since: float | None = None) -> None:
        """Let a node start at a virtual second and read the stream, from a Unix time on if one is given."""
        self.start(identity, at)
        self._asked[identity.peer] = START + at
        self.network.ask(identity.peer, Subscribe(_SUBSCRIPTION, STREAM, since), at=at)

    def publish(self, identity: Identity, number: int, at: float) -> None:
        """Let a node publish an event at a virtual second."""
        self.network.ask(identity.peer, Publish(STREAM, (b"event %d" % number,)), at=at)

    # What came of it.

    def due(self) -> Iterator[Due]:
        """Yield each delivery that is due: of every event at every honest reader but its publisher."""
        witness = self.witness
        for event, (publisher, published) in witness.published.items():
            for each in self.honest:
                if each.peer != publisher and each.peer in self._asked:
                    since = max(published, self._asked[each.peer])
                    yield Due(event, each.peer, since, witness.delivered.get((event, each.peer)))

    def lacking(self, patience: float) -> dict[PeerId, float]:
        """Return the readers that did not get some event in time, with the time of the first of those."""
        lacking: dict[PeerId, float] = {}
        for due in self.due():
            if not due.is_kept(patience):
                lacking.setdefault(due.reader, due.since)
        return lacking

    def sent_by(self, identities: Iterable[Identity]) -> int:
        """Return the bytes that these nodes sent."""
        return sum(self.nodes[each.peer].bytes for each in identities)


def measure_attack(
    name: str,
    share: float,
    world: StreamNodes,
    calm: StreamNodes,
    first_lie: float,
    patience: float = PATIENCE,
) -> AttackFigures:
    """Return the figures of an attack that was run in `world`, beside `calm`, the same world without it.

    `first_lie` is the virtual second at which the attack began.
    """
    due = list(world.due())
    began = START + first_lie
    told = [at for times in world.witness.told.values() for at in times if at >= began]
    return AttackFigures(
        attack=name,
        share=share,
        honest_due=len(due),
        delivered=sum(each.is_kept(patience) for each in due),
        delivered_without=sum(each.is_kept(patience) for each in calm.due()),
        worst_seconds=max((each.at - each.since for each in due if each.at is not None), default=0.0),
        told_after_seconds=min(told) - began if told else None,
        attacker_bytes=world.sent_by(world.hostile),
        honest_bytes=world.sent_by(world.honest),
    )
