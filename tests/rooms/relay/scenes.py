"""A small world around relays: people with real keys, relays with real stores, links that carry at once.

Members are played by the tests, which say and read what they like. Relays are the real thing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from random import Random

from msgspec import Struct
from tests.rooms.chronicle import Chronicle, person, relay_key

from linnet.core.effects import AfterCommit, CancelTimer, Hold, Release, Send, SetTimer
from linnet.core.hello import Hello
from linnet.core.ids import Contact, EventId, PeerId, TopicId
from linnet.core.inputs import LinkDown, LinkUp
from linnet.core.reasons import Reason
from linnet.core.stores import Store
from linnet.core.timers import Timer
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.context import Context
from linnet.delivery.messages import Data, Given, Want
from linnet.event.event import MESSAGE, Event, Unverified, Verified
from linnet.event.signing import decode_unit, recall_unit, verify_unit
from linnet.identity.cards import Card
from linnet.machine.outbox import Effect, Outbox
from linnet.machine.router import Router
from linnet.rooms.config import RelayConfig, RelayPolicy, RoomsConfig
from linnet.rooms.event_types import (
    CONTROL_KINDS,
    MEMBER,
    POWER,
    RELAY,
    RETENTION,
    Member,
    Membership,
    Power,
    Retention,
    member_key,
)
from linnet.rooms.event_types import Relay as RelayContent
from linnet.rooms.messages import (
    AskControl,
    ControlPage,
    Greet,
    RelayAsk,
    RelayCursor,
    RelayInfo,
    RelayOutcome,
    RelaySend,
    RelayTaken,
    Resync,
    ResyncPage,
    RoomMessage,
)
from linnet.rooms.relay.relay import Relay
from linnet.rooms.relay_statements import RelayStatement
from linnet.sim.clock import START
from linnet.sim.seeded_random import SeededEntropy
from linnet.store.memory import MemoryStore
from linnet.trace.records import Kind, Record

Said = RoomMessage | Data
NOW = START + 1000.0
HELLO = Hello(1, 1, {"link": 1})
OPEN = RelayConfig(policy=RelayPolicy.OPEN)


def peer_of(name: str) -> PeerId:
    return person(name).peer


def card_of(name: str) -> Card:
    return person(name).card


class Station:
    """One relay with its store and timers."""

    def __init__(
        self,
        name: str,
        config: RelayConfig = OPEN,
        rooms: RoomsConfig | None = None,
        store: Store | None = None,
    ) -> None:
        self.name = name
        self.store = MemoryStore() if store is None else store
        self.config = config
        self.rooms = RoomsConfig() if rooms is None else rooms
        self.timers: dict[Timer, float] = {}
        self.held: dict[tuple[PeerId, str], None] = {}
        self.records: list[Record] = []
        self._luck = 0
        self._begin()

    def boot(self) -> None:
        """Begin again from what the store holds."""
        links = self.context.links
        self._begin()
        self.context.links.update(links)

    def _begin(self) -> None:
        identity = person(self.name)
        self._luck += 1
        entropy = SeededEntropy(self._luck, self.name)
        key, card, luck = identity.device, identity.card, Random(1)
        self.context = Context(key, card, self.store, DeliveryConfig(), luck, verify_unit, entropy=entropy)
        self.out = Outbox()
        self.relay = Relay(self.context, self.config, self.rooms, self.out)
        self.router = Router(self.out, (self.relay,))
        self.timers = {}
        self.held = {}

    @property
    def peer(self) -> PeerId:
        return self.context.peer

    def hear(self, peer: PeerId, message: RoomMessage, now: float) -> None:
        if isinstance(message, RelayInfo):
            self.relay.handle_info(peer, message, now)  # As `Rooms` does, which every node has.
        else:
            self.router.message(peer, message, now)

    def link_up(self, peer: PeerId, now: float) -> None:
        self.router.input(LinkUp(peer, HELLO, dialed=False, network=None), now)

    def link_down(self, peer: PeerId, now: float) -> None:
        self.router.input(LinkDown(peer, Reason.TIMEOUT), now)

    def noted(self, kind: Kind, note: str | None = None) -> list[Record]:
        """Records of a kind, and of a note if one is given."""
        return [each for each in self.records if each.kind is kind and note in (None, each.note)]

    def perform(self) -> Iterator[Send[Said]]:
        """Do what the relay asks for, as far as it can be done here; the messages are the world's."""
        return self._perform(self.out.take())

    def _perform(self, effects: Iterable[Effect]) -> Iterator[Send[Said]]:
        for effect in effects:
            match effect:
                case Send():
                    yield effect  # type: ignore[misc]
                case AfterCommit(inner):
                    if isinstance(self.store, MemoryStore):
                        self.store.commit(lambda: None)
                    yield from self._perform(inner)
                case SetTimer(delay, timer):
                    self.timers[timer] = delay
                case CancelTimer(timer):
                    self.timers.pop(timer, None)
                case Hold(peer, _, purpose):
                    self.held[peer, purpose] = None
                case Release(peer, purpose):
                    self.held.pop((peer, purpose), None)
                case Record():
                    self.records.append(effect)
                case _:
                    pass


class World:
    """A room of ann and ben, and relays of it; some people have met the first relay already."""

    def __init__(
        self,
        *relays: str,
        config: RelayConfig = OPEN,
        rooms: RoomsConfig | None = None,
        met: tuple[str, ...] = (),
    ) -> None:
        self.now = NOW
        self.chronicle = Chronicle("ann")
        self.control: tuple[EventId, ...] = (self.chronicle.create.id,)
        self.stations: dict[PeerId, Station] = {}
        self.inbox: dict[PeerId, list[Said]] = {}
        self.cut: dict[frozenset[PeerId], None] = {}
        """Pairs of relays between which no link is."""
        self._request = 0
        self.signed = False
        """Whether people want signed statements with their answers."""
        self.act("ann", MEMBER, member_key(person("ann").author), Member(Membership.JOIN))
        self.act("ann", POWER, "", Power(events={RELAY: 50}, events_default=0, invite=0))
        self.join("ben")
        for name in relays:
            self.name_relay(name)
        for name in relays:
            self.add(Station(name, config, rooms))
        for name in relays:
            self.admit(name)
        for name in relays[:1]:
            self.link(name, *met)

    # What people write.

    @property
    def room(self) -> TopicId:
        return self.chronicle.room

    def act(
        self, who: str, kind: str, key: str, content: Struct | bytes, *, time: int | None = None
    ) -> Event:
        """A control event after all others."""
        event = self.chronicle.sign(who, kind, key, content, self.control, time=time)
        self.control = (event.id,)
        return event

    def say(self, who: str, body: bytes = b"hello", control: Iterable[EventId] | None = None) -> Event:
        heads = self.control if control is None else tuple(control)
        return self.chronicle.sign(who, MESSAGE, None, body, heads)

    def join(self, name: str) -> tuple[Event, Event]:
        return self.membership("ann", name, Membership.INVITE), self.membership(name, name, Membership.JOIN)

    def membership(self, who: str, of: str, membership: Membership) -> Event:
        return self.act(who, MEMBER, member_key(person(of).author), Member(membership))

    def name_relay(self, name: str, active: bool = True) -> None:
        if active:
            self.membership("ann", name, Membership.INVITE)
        content = RelayContent(active, person(name).author, (f"tls://{name}:1",))
        self.act("ann", RELAY, relay_key(name), content)

    def keep_for(self, milliseconds: int | None) -> Event:
        return self.act("ann", RETENTION, "", Retention(milliseconds))

    def unit(self, event: EventId | Event) -> Unverified:
        return self.chronicle.units[event.id if isinstance(event, Event) else event].unit

    def control_units(self) -> tuple[Unverified, ...]:
        return tuple(
            unit.unit for unit in self.chronicle.units.values() if unit.events[0].kind in CONTROL_KINDS
        )

    # Relays and links.

    def station(self, name: str) -> Station:
        return self.stations[peer_of(name)]

    def add(self, station: Station) -> None:
        for other in self.stations.values():
            other.context.links[station.peer] = None
            station.context.links[other.peer] = None
        self.stations[station.peer] = station

    def admit(self, name: str) -> None:
        """Ask a relay as ann, and show it the control DAG."""
        station, ann = self.station(name), peer_of("ann")
        station.context.links[ann] = None
        self.tell(name, "ann", RelayAsk(self.room, 1, (Contact(ann),), card_of("ann")))
        self.show_control(name, "ann")
        assert station.relay.serves(self.room)
        for unit in self._joins(station):
            if unit.head not in self.chronicle.units:
                self.chronicle.keep(unit)
                self.control = (unit.head,)

    def show_control(self, name: str, who: str) -> None:
        """Answer the relay's last question for control events."""
        asked = [each for each in self.inbox.get(peer_of(who), []) if isinstance(each, AskControl)][-1]
        self.tell(name, who, self.control_page(asked.request))

    def control_page(self, request: int) -> ControlPage:
        units = self.control_units()
        return ControlPage(self.room, request, units, self.cards(units), False, self.control, (), None)

    def given(self, request: int, *events: Event) -> Given:
        """These events, as the answer to a question for them."""
        units = tuple(map(self.unit, events))
        return Given(self.room, request, units, self.cards(units), (), None)

    def _joins(self, station: Station) -> list[Verified]:
        found = (recall_unit(unit) for unit in _units_of(station) if unit.author == station.context.author)
        return list(found)

    def cards(self, units: Iterable[Unverified]) -> tuple[Card, ...]:
        names = ("ann", "ben", "cyd", "dan", "eve", "r0", "r1", "r2")
        cards = {card_of(name).person: card_of(name) for name in names}
        return tuple({unit.author: cards[unit.author] for unit in units}.values())

    def link(self, name: str, *people: str) -> None:
        """The devices of people connect and greet, one after the other."""
        station = self.station(name)
        for who in people:
            station.context.links[peer_of(who)] = None
            station.link_up(peer_of(who), self.now)
            self.carry(station)
            self.tell(name, who, self.greet(who))

    def greet(self, who: str, control: tuple[EventId, ...] | None = None) -> Greet:
        heads = self.control if control is None else control
        return Greet(self.room, card_of(who), (), (), heads, 0, False, (), None, False)

    def unlink(self, name: str, who: str) -> None:
        station = self.station(name)
        station.context.links.pop(peer_of(who), None)
        station.link_down(peer_of(who), self.now)
        self.carry(station)

    def part(self, one: str, other: str) -> None:
        """The link between two relays is cut."""
        for here, there in ((one, other), (other, one)):
            self.unlink(here, there)
        self.cut[frozenset((peer_of(one), peer_of(other)))] = None

    def meet(self, one: str, other: str) -> None:
        """The link between two relays is open again."""
        self.cut.pop(frozenset((peer_of(one), peer_of(other))), None)
        for here, there in ((one, other), (other, one)):
            self.station(here).context.links[peer_of(there)] = None
        for here, there in ((one, other), (other, one)):
            station = self.station(here)
            station.link_up(peer_of(there), self.now)
            self.carry(station)

    def restart(self, name: str) -> None:
        """A relay stops and begins again, with the links that it had among relays."""
        station = self.station(name)
        people = [peer for peer in station.context.links if peer not in self.stations]
        for peer in people:
            del station.context.links[peer]
        station.boot()
        station.relay.start(self.now)
        self.carry(station)
        for other in self.stations.values():
            if other is not station and frozenset((other.peer, station.peer)) not in self.cut:
                other.link_down(station.peer, self.now)
                self.carry(other)
                other.link_up(station.peer, self.now)
                self.carry(other)
                station.link_up(other.peer, self.now)
                self.carry(station)

    # Messages.

    def tell(self, name: str, who: str, message: RoomMessage) -> list[Said]:
        """Say something to a relay; gives what came back to whoever said it."""
        station, peer = self.station(name), peer_of(who)
        before = len(self.inbox.setdefault(peer, []))
        station.hear(peer, message, self.now)
        self.carry(station)
        return self.inbox[peer][before:]

    def carry(self, station: Station) -> None:
        """Perform what a relay asks for, and all that follows from it at other relays."""
        queue: deque[tuple[PeerId, Send[Said]]] = deque((station.peer, send) for send in station.perform())
        while queue:
            source, send = queue.popleft()
            target = self.stations.get(send.peer)
            if target is None:
                self.inbox.setdefault(send.peer, []).append(send.message)
            elif frozenset((source, send.peer)) not in self.cut:
                assert not isinstance(send.message, Data)
                target.hear(source, send.message, self.now)
                queue.extend((target.peer, each) for each in target.perform())

    def fire(self, name: str, kind: type[Timer]) -> None:
        """Let every timer of one type run out."""
        station = self.station(name)
        for timer in [timer for timer in station.timers if type(timer) is kind]:
            self.now += station.timers[timer]
            self.run_out(station, timer)

    def run_out(self, station: Station, timer: Timer) -> None:
        """Let a timer run out, whether it is set or not, at this time."""
        station.timers.pop(timer, None)
        station.router.timer(timer, self.now)
        self.carry(station)

    def send(self, name: str, who: str, *events: Event) -> tuple[RelayOutcome, ...]:
        """Give events to a relay; what became of them."""
        self._request += 1
        units = tuple(self.unit(event) for event in events)
        answers = self.tell(
            name, who, RelaySend(self.room, self._request, units, self.cards(units), self.signed)
        )
        taken = [each for each in answers if isinstance(each, RelayTaken)]
        return taken[-1].outcomes if taken else ()

    def resync(
        self,
        name: str,
        who: str,
        cursor: RelayCursor | None = None,
        *,
        limit: int = 1024,
        follow: bool = False,
    ) -> ResyncPage:
        self._request += 1
        answers = self.tell(name, who, Resync(self.room, self._request, cursor, limit, follow, self.signed))
        pages = [each for each in answers if isinstance(each, ResyncPage)]
        return pages[-1]

    def statements(self, *people: str) -> list[RelayStatement]:
        """The signed statements that people got, in the order in which each of them got them."""
        said = [each for who in people for each in self.inbox.get(peer_of(who), [])]
        signed = (each.said for each in said if isinstance(each, RelayTaken | ResyncPage))
        return [each for each in signed if each is not None]

    def want(self, name: str, who: str, *events: Event) -> Given:
        self._request += 1
        answers = self.tell(name, who, Want(self.room, self._request, tuple(each.id for each in events)))
        return next(each for each in answers if isinstance(each, Given))

    def said(self, page: ResyncPage) -> list[bytes]:
        """The messages of a page, in its order."""
        events = (recall_unit(unit).events[0] for unit in page.units)
        return [event.body for event in events if event.kind == MESSAGE]


def _units_of(station: Station) -> list[Unverified]:
    kept = (station.store.log.read(status.room, 0, 9999) for status in station.relay.status())
    return [decode_unit(entry.raw) for page in kept for _, entry in page]
