"""A node machine with every part and small limits, among strangers who send it whatever the wire allows."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from itertools import count
from random import Random

from msgspec import structs
from tests.attacks.hostile_messages import KINDS, Attacker, Pools, learn_events

from linnet.content.commands import PublishContent, SubscribeContent
from linnet.content.config import ContentConfig, FastConfig
from linnet.content.fast.commands import JoinGroups, OpenGroup, SearchGroups
from linnet.core.effects import (
    AfterCommit,
    CancelTimer,
    Deliver,
    Dial,
    HangUp,
    Meet,
    Probe,
    Reply,
    Send,
    SetTimer,
)
from linnet.core.hello import WIRE_VERSION, Hello
from linnet.core.ids import Contact, PeerId
from linnet.core.inputs import (
    Asked,
    DialFailed,
    Heard,
    LinkDown,
    LinkUp,
    LocalNetwork,
    Met,
    NetworkIs,
    NotMet,
    Probed,
    Received,
    TimerFired,
)
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.delivery.commands import Consumed
from linnet.delivery.config import DeliveryConfig
from linnet.edge.announcement import make_announcement
from linnet.edge.config import PresenceConfig, ProxyConfig
from linnet.event.event import Event
from linnet.event.signing import decode_unit, recall_unit
from linnet.machine.commands import Declined
from linnet.names.config import NamesConfig
from linnet.overlay.config import TrackerConfig
from linnet.overlay.gossip.config import TrackerlessConfig
from linnet.overlay.kademlia.config import KademliaConfig
from linnet.peer.config import LinkConfig, PeerConfig
from linnet.peer.interface import AnyCommand, Effect, Input, Start
from linnet.peer.messages import PROTOCOLS
from linnet.peer.peer import Peer
from linnet.places.commands import HostPlace, PlaceIs, WatchPlace
from linnet.places.config import PlacesConfig
from linnet.rooms.commands import CreateRoom, ReadRoom, RoomMade, SendToRoom
from linnet.rooms.config import RelayConfig, RelayPolicy, RoomsConfig
from linnet.rooms.event_types import JoinRule
from linnet.sim.clock import START
from linnet.sim.seeded_random import SeededEntropy, seeded_identity
from linnet.store.memory import MemoryStore
from linnet.streams.commands import Publish, Published, Subscribe
from linnet.streams.config import StorageRule
from linnet.testing.identities import known_identity
from linnet.trace.records import Record

US = known_identity("besieged")
HINTS = ("tls://10.0.0.1:1",)
HELLO = Hello(WIRE_VERSION, WIRE_VERSION, PROTOCOLS, listens=("tls://10.0.0.9:1",))
LAN = b"home" * 4

SMALL = PeerConfig(
    listens=HINTS,
    trackers=(Contact(US.peer, HINTS),),
    trackerless=TrackerlessConfig(epsilon=8.0),
    is_tracker=True,
    storage=(StorageRule("tea", quota=200_000),),
    tracker=TrackerConfig(max_topics=50, max_nodes=60, max_places=200),
    delivery=DeliveryConfig(
        window_ranges=50, gaps_open=40, buffer_items=300, window_items=50, max_chains=60, publish_queue=20,
        suppress=0.05, own_bytes=300_000,
    ),
    content=ContentConfig(
        filters=40, routes=40, held=300, expensive=20, waiting=30, remembered=100, subscriptions=20,
        inbox=50, window=16, tracked=50,
    ),
    fast=FastConfig(
        groups=4, members=20, memberships=8, subscriptions=8, postings=50, board=20, of_one=8,
        publications=20, calls=100, remembered=100, capacity=5,
    ),
    links=LinkConfig(max_links=40, control_rate=400.0),
    rooms=RoomsConfig(
        waiting_events=50, waiting_bytes=100_000, ledger_events=50, max_control=100, rejected=50,
        flood_soft=10, mesh=8,
    ),
    relay=RelayConfig(
        policy=RelayPolicy.OPEN, max_rooms=6, room_bytes=300_000, total_bytes=10**6, park_events=30,
        tombstones=40, receipts=30, group_pending=30,
    ),
    places=PlacesConfig(
        fanout=3, replays_at_once=8, entries_waiting=20, talks_open=10, state_bytes=50_000,
        talk_bytes=50_000, watch_bytes=65_536,
    ),
    names=NamesConfig(resolving=8, records=50, candidates=4, giver_records=10, remembered=30),
    kademlia=KademliaConfig(
        k=4, replacements=4, lookups=16, asked=32, own=40, records=50, candidates=4, giver_records=10,
    ),
    kademlia_bootstrap=(),
    proxy=ProxyConfig(open=True, clients=8, topics=6, bytes=300_000),
    lan=PresenceConfig(entries=20, source_entries=6, sources=20, networks=3, meetings=4),
)  # fmt: skip
"""All parts, with limits that a short flood can reach."""


class Besieged:
    """The machine, its application and the strangers around it, on a clock of their own."""

    def __init__(self, seed: int, config: PeerConfig = SMALL, strangers: int = 30) -> None:
        self.rng = Random(seed)
        self.config = config
        self.kinds = KINDS
        self.store = MemoryStore()
        self.machine = Peer(config, US, self.store, Random(seed), entropy=SeededEntropy(seed, "besieged"))
        self.now = START + 10.0
        self.pools = Pools(self.rng)
        self.records: list[Record] = []
        self.declined: list[Declined] = []
        self.answers: dict[int, object] = {}
        self.handed: list[bytes] = []
        """Bodies of events that the application was handed."""
        self.sent: dict[type[Message], int] = {}
        self._seed = seed
        self._most = strangers
        self._born = 0
        self._up: dict[PeerId, Attacker] = {}
        self._known: dict[PeerId, Attacker] = {}
        self._timers: dict[Timer, tuple[float, int]] = {}
        self._heap: list[tuple[float, int, Timer]] = []
        self._serial = count()
        self._requests = count(1)
        self._subscriptions = count(1)
        self._later: list[Input] = []

    # The user's side.

    def settle(self) -> None:
        """Start, and take part in everything as a user does."""
        self.ask(Start())
        self.give(NetworkIs((LocalNetwork(LAN, int(self.now // 86_400), 7, "home"),)))
        for stream, options in (("tea", {}), ("milk", {"ordered": False}), ("salt", {"name": "kept"})):
            number = next(self._subscriptions)
            self.ask(Subscribe(number, stream, since=0, **options))
            self.ask(Publish(stream, (b"one", b"two")))
        for rule in (JoinRule.PUBLIC, JoinRule.KNOCK):
            made = self.ask(CreateRoom("room", None, rule, (), None))
            assert isinstance(made, RoomMade), made
            self.ask(ReadRoom(next(self._subscriptions), made.room))
            self.ask(SendToRoom(made.room, (b"one", b"two")))
            self.pools.learn(made.room, "room")
            self.pools.learn(made.room, "topic")
        self.ask(CreateRoom("sealed"))
        place = self.ask(HostPlace())
        assert isinstance(place, PlaceIs), place
        self.ask(WatchPlace(next(self._subscriptions), place.place))
        self.pools.learn(place.place, "place")
        self.pools.learn(place.place, "topic")
        self.ask(OpenGroup("tea/price[1,9]"))
        for text in ("milk", "stock/apple"):
            self.ask(SubscribeContent(next(self._subscriptions), text))
        self.ask(JoinGroups(next(self._subscriptions), "milk"))
        self.ask(SearchGroups("tea"))
        self.pass_time(5.0)
        self.ask(PublishContent("tea/price=2", b"here"))
        self.pass_time(5.0)
        for topic in list(self.store.log._topics):
            for _, entry in self.store.log.read(topic, 0, 100):
                self._learn_entry(entry.raw)

    def serves(self) -> bool:
        """Whether the node still publishes for its user, and hands over what it publishes."""
        self.handed.clear()
        number = next(self._subscriptions)
        self.ask(Subscribe(number, "after"))
        said = self.ask(Publish("after", (b"still here",)))
        self.pass_time(5.0)
        return isinstance(said, Published) and b"still here" in self.handed

    def ask(self, command: AnyCommand) -> object:
        """Give a command; what is declined is kept for the test."""
        number = next(self._requests)
        self.give(Asked(number, command))
        answer = self.answers.get(number)
        if isinstance(answer, Declined):
            self.declined.append(answer)
        return answer

    # The strangers' side.

    def flood(self, messages: int, pause: float = 0.002, churn: float = 0.01) -> None:
        """Send so many messages, each of a random kind from a random stranger; some come and go."""
        for _ in range(messages):
            if len(self._up) < self._most // 2 or self.rng.random() < churn:
                self._come()
            if len(self._up) > self._most or self.rng.random() < churn / 2:
                self._go(self.rng.choice(list(self._up)))
            if self.rng.random() < 0.02:
                self._announce()
            if self._up:
                self.say(self.rng.choice(list(self._up.values())), self.rng.choice(KINDS))
            self.pass_time(pause)

    def say(self, who: Attacker, kind: type[Message]) -> None:
        """Let a stranger send one message of a kind."""
        message = who.make(kind, self.now)
        self.sent[kind] = self.sent.get(kind, 0) + 1
        self.give(Received(who.peer, message))

    def _come(self) -> None:
        self._born += 1
        if self._known and self.rng.random() < 0.3:
            who = self.rng.choice(list(self._known.values()))
        else:
            identity = seeded_identity(self._seed, f"stranger {self._born}", START)
            who = Attacker(identity, Random(self.rng.random()), self.pools)
            self._known[who.peer] = who
        if who.peer not in self._up:
            self._link(who.peer, dialed=False)

    def _link(self, peer: PeerId, dialed: bool) -> None:
        self._up[peer] = self._known[peer]
        self.pools.learn(peer, "peer")
        network = f"10.0.{self.rng.randrange(6)}.0/24" if self.rng.random() < 0.9 else None
        roles = self.rng.choice(((), ("relay",), ("storage", "tracker", "proxy")))
        self.give(LinkUp(peer, structs.replace(HELLO, roles=roles), dialed, network))

    def _go(self, peer: PeerId) -> None:
        if self._up.pop(peer, None) is not None:
            self.give(LinkDown(peer, self.rng.choice((Reason.REMOTE_CLOSED, Reason.PING_TIMEOUT))))

    def _announce(self) -> None:
        key = seeded_identity(self._seed, f"lan {self.rng.randrange(200)}", START).device
        datagram = make_announcement(key, 9, self.rng.randbytes(8))
        if self.rng.random() < 0.3:
            datagram = self.rng.randbytes(self.rng.randrange(200))
        self.give(Heard(LAN, f"192.168.1.{self.rng.randrange(2, 250)}", datagram))

    # The driver's side.

    def give(self, event: Input) -> None:
        """Hand the machine an input, and perform what it asks for."""
        self._later.append(event)
        if len(self._later) > 1:
            return
        while self._later:
            for effect in self.machine.handle(self._later[0], self.now):
                self._perform(effect)
            self.store.commit(lambda: None)
            del self._later[0]

    def pass_time(self, seconds: float) -> None:
        """Let the timers run out that are due by then."""
        end = self.now + seconds
        while self._heap and self._heap[0][0] <= end:
            at, serial, timer = heapq.heappop(self._heap)
            if self._timers.get(timer) == (at, serial):
                del self._timers[timer]
                self.now = max(self.now, at)
                self.give(TimerFired(timer))
        self.now = end

    @property
    def timers(self) -> int:
        """How many timers the machine has set."""
        return len(self._timers)

    def _perform(self, effect: Effect) -> None:  # noqa: C901 - one case for each effect
        match effect:
            case AfterCommit(effects):
                for each in effects:
                    self._perform(each)
            case SetTimer(delay, timer):
                entry = self.now + max(0.0, delay), next(self._serial)
                self._timers[timer] = entry
                heapq.heappush(self._heap, (*entry, timer))
            case CancelTimer(timer):
                self._timers.pop(timer, None)
            case Send(peer, message):
                if self.rng.random() < 0.5:
                    self.pools.learn(message)
            case Dial(peer):
                self._dialed(peer)
            case Probe(peer):
                self._later.append(Probed(peer, self.rng.choice((None, Reason.DIAL_TIMEOUT))))
            case HangUp(peer):
                if self._up.pop(peer, None) is not None:
                    self._later.append(LinkDown(peer, effect.reason))
            case Meet(network, _, lan):
                known = list(self._known) or [US.peer]
                met = Met(network, lan, self.rng.choice(known))
                self._later.append(
                    met if self.rng.random() < 0.5 else NotMet(network, lan, Reason.DIAL_TIMEOUT)
                )
            case Deliver(subscription, items):
                events = tuple(each for each in items if isinstance(each, Event))
                learn_events(self.pools, events)
                self.handed += [each.body for each in events][:100]
                self._later.append(Asked(next(self._requests), Consumed(subscription, len(items))))
            case Reply(request, result):
                self.answers[request] = result
                if len(self.answers) > 1000:
                    del self.answers[next(iter(self.answers))]
            case Record():
                self.records.append(effect)
            case _:
                pass

    def _dialed(self, peer: PeerId) -> None:
        if peer in self._up:
            return
        if peer in self._known and self.rng.random() < 0.5 and len(self._up) < self._most:
            self._up[peer] = self._known[peer]
            self._later.append(LinkUp(peer, HELLO, True, "10.0.0.0/24"))
        else:
            self._later.append(DialFailed(peer, Reason.CONNECTION_REFUSED))

    def _learn_entry(self, raw: bytes) -> None:
        unit = decode_unit(raw)
        self.pools.learn(unit)
        learn_events(self.pools, recall_unit(unit).events)


def run_flood(seed: int, messages: int) -> Besieged:
    """A node that is settled and flooded."""
    besieged = Besieged(seed)
    besieged.settle()
    besieged.flood(messages)
    return besieged


def reasons(records: Iterable[Record]) -> dict[str, int]:
    """How often each reason was recorded."""
    counts: dict[str, int] = {}
    for record in records:
        if record.reason is not None:
            counts[record.reason.value] = counts.get(record.reason.value, 0) + 1
    return counts
