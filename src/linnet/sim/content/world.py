"""A simulated network of content: the shipped machines, with tables of the nodes that each knows.

A table of partial knowledge answers which nodes are close to a key; a full lookup walks these tables from
node to node as Kademlia does, without taking time: a stand-in for the lookups of Kademlia.
"""

from __future__ import annotations

import re
from functools import partial

from msgspec.structs import replace

from linnet.content.attribute_keys import distance, position
from linnet.content.commands import InGroups, Match, PublishContent, SubscribeContent, UnsubscribeContent
from linnet.content.config import ContentConfig, FastConfig
from linnet.content.fast.commands import JoinGroups, OpenGroup, PublishToGroup
from linnet.content.fast.fast_delivery import FastDelivery
from linnet.content.part import NodeFinder
from linnet.content.scout import Scout
from linnet.core.effects import Deliver
from linnet.core.ids import Contact, EventId, PeerId
from linnet.machine.outbox import Outbox
from linnet.machine.part import on_notice
from linnet.overlay.kademlia.routing_table import NodeId
from linnet.overlay.kademlia.value_records import NodesFound, SeekNodes
from linnet.peer.config import Identity, PeerConfig
from linnet.peer.interface import Handed, NodeMachine, Start
from linnet.peer.peer import Peer
from linnet.sim.clock import START
from linnet.sim.links import LinkModel, named_latency
from linnet.sim.network import Network
from linnet.sim.seeded_random import named_luck, seeded_identity
from linnet.sim.signature_cache import RememberingCardCheck, RememberingVerifier
from linnet.store.memory import MemoryStore
from linnet.trace.records import TraceSink

HINTS = ("tls://sim:1",)
BUCKET = 20
"""Contacts of each distance that a node knows, as in IPFS."""
_ALPHA = 3
UNREAD = 1_000_000
"""Matches that one subscription may hold."""


class Tables:
    """The nodes that every node knows: up to so many contacts in each bucket, and up to so many in all."""

    def __init__(self, peers: list[PeerId], seed: int, bucket: int = BUCKET, most: int | None = None) -> None:
        self._numbers = {peer: int.from_bytes(position(peer)) for peer in peers}
        self._down: dict[PeerId, None] = {}
        self._sides: dict[PeerId, int] = {}
        self._known = {peer: self._draw(peer, seed, bucket, most) for peer in peers}

    def _draw(self, own: PeerId, seed: int, bucket: int, most: int | None) -> list[PeerId]:
        luck = named_luck(seed, f"table/{own.hex()}")
        others = [peer for peer in self._numbers if peer != own]
        luck.shuffle(others)
        filled: dict[int, int] = {}
        known: list[PeerId] = []
        for peer in others:
            index = (self._numbers[peer] ^ self._numbers[own]).bit_length()
            if filled.get(index, 0) < bucket and (most is None or len(known) < most):
                filled[index] = filled.get(index, 0) + 1
                known.append(peer)
        return known

    def known(self, own: PeerId) -> list[PeerId]:
        """Return the nodes that a node knows."""
        return list(self._known[own])

    def know(self, own: PeerId, others: list[PeerId]) -> None:
        """Let a node know exactly these nodes."""
        self._known[own] = others

    def fail(self, peer: PeerId) -> None:
        """Let a node answer no lookups; others know it until they notice."""
        self._down[peer] = None

    def mend(self, peer: PeerId) -> None:
        """Let a node answer lookups again."""
        del self._down[peer]

    def part(self, sides: list[list[PeerId]]) -> None:
        """Limit lookups to one side of a partition; without sides they reach all nodes."""
        self._sides = {peer: number for number, side in enumerate(sides) for peer in side}

    def _answers(self, peer: PeerId, own: PeerId) -> bool:
        return peer not in self._down and self._sides.get(peer) == self._sides.get(own)

    def near(self, own: PeerId, key: NodeId, count: int) -> list[PeerId]:
        """Return the known nodes closest to a key."""
        number = int.from_bytes(key)
        return sorted(self._known[own], key=lambda peer: self._numbers[peer] ^ number)[:count]

    def search(self, own: PeerId, key: NodeId) -> list[PeerId]:
        """Return the closest nodes to a key that an iterative lookup of a node finds."""
        number = int.from_bytes(key)
        found: dict[PeerId, bool] = dict.fromkeys(self.near(own, key, BUCKET), False)
        while True:
            alive = [peer for peer in found if self._answers(peer, own)]
            closest = sorted(alive, key=lambda peer: self._numbers[peer] ^ number)[:BUCKET]
            unasked = [peer for peer in closest if not found[peer]][:_ALPHA]
            if not unasked:
                return closest
            for peer in unasked:
                found[peer] = True
                for each in self.near(peer, key, BUCKET):
                    if each != own:
                        found.setdefault(each, False)


class TableLookups(NodeFinder):
    """The contacts of one node; its lookups walk the tables of all, and take no time."""

    def __init__(self, own: PeerId, tables: Tables, out: Outbox) -> None:
        self._own = own
        self._tables = tables
        self._out = out

    def closest(self, key: NodeId, count: int) -> list[Contact]:
        """See `Directory.closest`."""
        return [Contact(peer, HINTS) for peer in self._tables.near(self._own, key, count)]

    @on_notice(SeekNodes)
    def handle_seek_nodes(self, notice: SeekNodes, now: float) -> None:
        """Find the nodes nearest to a key at once."""
        found = tuple(Contact(peer, HINTS) for peer in self._tables.search(self._own, notice.key))
        self._out.notify(NodesFound(0, notice.key, found, 0, 0))


class ContentWorld:
    """A network of nodes that subscribe and publish."""

    def __init__(
        self,
        nodes: int,
        seed: int,
        config: ContentConfig | None = None,
        links: LinkModel | None = None,
        trace: TraceSink | None = None,
        contacts: int | None = None,
    ) -> None:
        self.seed = seed
        self.network = Network(seed, links or LinkModel(named_latency("constant:10")), trace)
        self.config = config or ContentConfig()
        self.names = [f"node{number}" for number in range(nodes)]
        self.identities: dict[str, Identity] = {
            name: seeded_identity(seed, name, START) for name in self.names
        }
        self.tables = Tables([each.peer for each in self.identities.values()], seed, most=contacts)
        self.node_of: dict[PeerId, str] = {each.peer: name for name, each in self.identities.items()}
        self.scouts: dict[str, Scout] = {}
        self.groups: dict[str, FastDelivery] = {}
        self.matches: dict[str, list[tuple[Match, float]]] = {}
        """By node, the matches of its subscriptions, and when each arrived."""
        self.in_groups: dict[str, list[InGroups]] = {}
        """By node, the notices about groups that its subscriptions are in."""
        self._subscriptions = 0
        self._verifier, self._card_check = RememberingVerifier(), RememberingCardCheck()
        self._stores = {name: MemoryStore() for name in self.names}
        for name, identity in self.identities.items():
            machine, store = self._machine(name), self._stores[name]
            self.network.add(identity.peer, machine, deliver=self._deliver, store=store)
            self.network.ask(identity.peer, Start())

    def _machine(self, name: str) -> NodeMachine:
        identity = self.identities[name]
        machine = Peer(
            self._config_of(name),
            identity,
            self._stores[name],
            named_luck(self.seed, name),
            self._verifier,
            self._card_check,
            make_finder=partial(TableLookups, identity.peer, self.tables),
        )
        if machine.parts.content is None:
            raise RuntimeError("a node without content")
        self.scouts[name] = machine.parts.content.scout
        self.groups[name] = machine.parts.content.fast
        return machine

    def _config_of(self, name: str) -> PeerConfig:
        # No application acknowledges its matches here.
        unread = replace(self.config, window=UNREAD, inbox=UNREAD)
        return PeerConfig(listens=HINTS, content=unread)

    def is_settled(self, name: str) -> bool:
        """Return whether a node waits for no answer."""
        return self.scouts[name].is_settled and self.groups[name].is_settled

    def subscribe(self, name: str, predicate: str) -> int:
        """Let a node subscribe; return the number of the subscription."""
        return self._subscribe(name, predicate, None)

    def keep(self, name: str, predicate: str, called: str) -> int:
        """Let a node subscribe under a name, so that the subscription outlives a crash; or resume it after
        one."""
        return self._subscribe(name, predicate, called)

    def _subscribe(self, name: str, predicate: str, called: str | None) -> int:
        self._subscriptions += 1
        asked = SubscribeContent(self._subscriptions, predicate, called)
        self.network.ask(self.identities[name].peer, asked)
        return self._subscriptions

    def unsubscribe(self, name: str, subscription: int) -> int:
        """Let a node end a subscription; return the number of the request."""
        return self.network.ask(self.identities[name].peer, UnsubscribeContent(subscription))

    def publish(self, name: str, attributes: str, body: bytes, confirm: float = 0.0) -> int:
        """Let a node publish; return the number of the request."""
        return self.network.ask(self.identities[name].peer, PublishContent(attributes, body, confirm))

    def crash(self, name: str, *, silent: bool = False) -> None:
        """Stop a node; silently, as in a power failure: its links seem to be up until pings fail."""
        peer = self.identities[name].peer
        self.network.crash(peer, silent=silent)
        self.tables.fail(peer)

    def come_back(self, name: str) -> None:
        """Restart a crashed node with its stored state."""
        peer = self.identities[name].peer
        self.network.restart(peer, self._machine(name))
        self.tables.mend(peer)
        self.network.ask(peer, Start())

    def run(self, seconds: float) -> None:
        """Let virtual time pass."""
        self.network.run(self.network.elapsed + seconds)

    def rendezvous(self, attribute_key: NodeId) -> str:
        """Return the running node that is really closest to a key."""
        up = [each.peer for each in self.identities.values() if self.network.is_up(each.peer)]
        return self.node_of[min(up, key=lambda peer: distance(peer, attribute_key))]

    def in_order(self) -> list[str]:
        """Return all nodes by their ids, so that neighbours in this list have consecutive ones."""
        return sorted(self.names, key=lambda name: position(self.identities[name].peer))

    def bodies(self, name: str) -> list[bytes]:
        """Return the bodies that a node was handed, in order."""
        return [match.body for match, _ in self.matches.get(name, ())]

    def handed(self, name: str) -> dict[EventId, float]:
        """Return when a node was first handed each event."""
        first: dict[EventId, float] = {}
        for match, at in self.matches.get(name, ()):
            first.setdefault(match.event, at)
        return first

    def _deliver(self, peer: PeerId, effect: Deliver[Handed], now: float) -> None:
        name = self.node_of[peer]
        for item in effect.items:
            if isinstance(item, Match):
                self.matches.setdefault(name, []).append((item, now))
            elif isinstance(item, InGroups):
                self.in_groups.setdefault(name, []).append(item)


REGIONS = ("africa", "america", "asia", "europe")
CAPACITY = 100
"""Members that each node would serve in all, as published."""
_PRICE = re.compile(r"price=[\d.]+")


def group_of(attributes: str) -> str:
    """Return the group for an event: its topics, and all prices."""
    return _PRICE.sub("price[0,100000]", attributes)


class GroupsWorld(ContentWorld):
    """A network of nodes in four regions, in turn."""

    def _config_of(self, name: str) -> PeerConfig:
        region = REGIONS[int(name.removeprefix("node")) % len(REGIONS)]
        fast = FastConfig(region=region, capacity=CAPACITY)
        return replace(super()._config_of(name), fast=fast)

    def open(self, name: str, attributes: str) -> int:
        """Let a node open a group for these attributes; return the number of the request."""
        return self.network.ask(self.identities[name].peer, OpenGroup(group_of(attributes)))

    def subscribe(self, name: str, predicate: str) -> int:
        """Let a node join all groups that carry this; return the number of the subscription."""
        self._subscriptions += 1
        self.network.ask(self.identities[name].peer, JoinGroups(self._subscriptions, predicate))
        return self._subscriptions

    def publish(self, name: str, attributes: str, body: bytes, confirm: float = 0.0) -> int:
        """Let a node publish in its group; return the number of the request."""
        command = PublishToGroup(group_of(attributes), attributes, body, confirm)
        return self.network.ask(self.identities[name].peer, command)
