"""How a relay comes to serve a room, and how it ceases to."""

from __future__ import annotations

import hashlib

from msgspec.structs import replace
from tests.rooms.chronicle import person
from tests.rooms.relay.scenes import OPEN, Station, World, card_of, peer_of

from linnet.core.effects import AfterCommit, Hold, Send, SetTimer
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.messages import Data
from linnet.event.signing import recall_unit, verify_unit
from linnet.machine.outbox import Outbox, Promise
from linnet.rooms.auth.control_graph import ControlDag
from linnet.rooms.config import RelayConfig, RelayPolicy, RoomsConfig
from linnet.rooms.event_types import Member, Membership, content_of
from linnet.rooms.messages import (
    AskControl,
    ChunkPut,
    ControlPage,
    Greet,
    Refused,
    RelayAnswer,
    RelayAsk,
    RelaySend,
)
from linnet.rooms.receipts import sign_room_receipt
from linnet.rooms.relay.admission import (
    AT_ONCE,
    CONTACTS,
    PATIENCE,
    AdmissionDue,
    LingerDue,
    RelaySetting,
    RoomStores,
    why_not_taken,
)
from linnet.rooms.relay.event_cache import EventCache
from linnet.rooms.relay.event_index import Budget
from linnet.rooms.relay.forwarding import ForwardDue
from linnet.rooms.relay.ingest import Answers, Turn
from linnet.rooms.relay.relay_room import OwnMembership
from linnet.trace.records import Kind, Record

ALLOW = replace(OPEN, policy=RelayPolicy.ALLOW, allow=(person("ann").author,), max_rooms=2, total_bytes=100)


def test_whose_rooms_are_taken() -> None:
    ann, ben = person("ann").author, person("ben").author
    assert why_not_taken(ALLOW, ann, 1, 99) is None
    assert why_not_taken(ALLOW, ben, 1, 99) is Reason.NOT_ALLOWED
    assert why_not_taken(ALLOW, None, 1, 99) is Reason.NOT_ALLOWED
    assert why_not_taken(ALLOW, ann, 2, 99) is Reason.QUOTA
    assert why_not_taken(ALLOW, ann, 1, 100) is Reason.QUOTA
    assert why_not_taken(OPEN, None, 0, 0) is None


def asked(named: bool = True) -> World:
    """A relay that was asked by ann, and has asked her in turn."""
    world = World()
    if named:
        world.name_relay("r0")
    world.add(Station("r0"))
    world.station("r0").context.links[peer_of("ann")] = None
    contacts = (Contact(peer_of("ben"), ("tls://ben:1",)), Contact(peer_of("ann")))
    world.tell("r0", "ann", RelayAsk(world.room, 3, contacts, card_of("ann")))
    return world


def test_it_says_yes_holds_links_and_asks_who_is_there() -> None:
    world = World()
    world.add(Station("r0"))
    station = world.station("r0")
    station.context.links[peer_of("ann")] = None
    contacts = (Contact(peer_of("ben"), ("tls://ben:1",)),)
    station.relay.handle_ask(peer_of("ann"), RelayAsk(world.room, 3, contacts), world.now)
    purpose = f"admission {world.room.hex()[:16]}"
    answer = RelayAnswer(world.room, 3, None, person("r0").author, card_of("r0"))
    assert station.out.take() == [
        AfterCommit((Send(peer_of("ann"), answer),)),
        Hold(peer_of("ann"), (), purpose),
        Hold(peer_of("ben"), ("tls://ben:1",), purpose),
        Send(peer_of("ann"), AskControl(world.room, 1, (), None, card_of("r0"))),
        SetTimer(OPEN.fetch_timeout, AdmissionDue(world.room)),
    ]
    assert station.relay.serves(world.room)
    assert station.relay.status() == ()


def test_it_joins_once_the_state_names_it() -> None:
    world = asked()
    station = world.station("r0")
    before = len(world.inbox[peer_of("ann")])
    world.show_control("r0", "ann")
    got = world.inbox[peer_of("ann")][before:]
    (greet,) = [each for each in got if isinstance(each, Greet)]
    (data,) = [each for each in got if isinstance(each, Data)]
    join = recall_unit(data.unit).events[0]
    assert (greet.relay, greet.control) == (True, (join.id,))
    assert (join.kind, join.author, join.tail.control) == ("member", person("r0").author, world.control)
    assert data.card == card_of("r0")
    assert station.held != {}, "its join waits to be written, and is yet to be sent along them"
    world.run_out(station, LingerDue(world.room))
    assert station.held == {}
    assert station.relay.status()[0].membership is Membership.JOIN
    assert AdmissionDue(world.room) not in station.timers


def test_the_asker_may_name_it_after_the_answer() -> None:
    world = asked(named=False)
    world.show_control("r0", "ann")
    assert world.station("r0").relay.status() == ()
    world.name_relay("r0")
    world.tell("r0", "ann", world.greet("ann"))  # it knows more now, and is asked at once
    world.show_control("r0", "ann")
    assert len(world.station("r0").relay.status()) == 1


def test_whoever_connects_later_is_asked_then() -> None:
    world = asked()
    station = world.station("r0")
    station.context.links[peer_of("ben")] = None
    station.link_up(peer_of("ben"), world.now)
    world.carry(station)
    assert isinstance(world.inbox[peer_of("ben")][-1], AskControl)
    world.show_control("r0", "ben")
    assert len(station.relay.status()) == 1


def test_nobody_answers() -> None:
    world = asked()
    station = world.station("r0")
    start = world.now
    while station.timers:
        world.fire("r0", AdmissionDue)
    assert PATIENCE <= world.now - start <= PATIENCE + 2 * OPEN.fetch_timeout
    refused = Refused(world.room, None, Reason.TIMEOUT, "the relay could not begin to serve the room")
    assert world.inbox[peer_of("ann")][-1] == refused
    assert not station.relay.serves(world.room)
    assert station.held == {}
    assert (station.records[-1].reason, station.records[-1].note) == (Reason.TIMEOUT, "admission")
    assert station.store.log.end() == 0
    assert list(station.store.cells.scan("relay.room")) == []


def test_the_reason_is_the_rooms_if_it_never_names_us() -> None:
    for named, reason in ((False, Reason.NOT_A_RELAY), (True, Reason.NOT_INVITED)):
        world = asked(named)
        if named:
            world.membership("ann", "r0", Membership.LEAVE)
        world.show_control("r0", "ann")
        while world.station("r0").timers:
            world.fire("r0", AdmissionDue)
        last = world.inbox[peer_of("ann")][-1]
        assert isinstance(last, Refused)
        assert last.reason is reason


def test_those_who_refuse_give_the_reason() -> None:
    world = asked()
    world.tell("r0", "ann", Refused(world.room, None, Reason.NOT_JOINED, "left"))
    page = ControlPage(world.room, 1, (), (), False, (), (), Reason.NOT_INVITED)
    world.tell("r0", "ann", page)
    world.tell("r0", "eve", replace(page, reason=Reason.BANNED))  # nobody asked eve
    while world.station("r0").timers:
        world.fire("r0", AdmissionDue)
    last = world.inbox[peer_of("ann")][-1]
    assert isinstance(last, Refused)
    assert last.reason is Reason.NOT_INVITED


def test_a_page_of_another_room_begins_nothing() -> None:
    world, other = asked(), World()
    other.keep_for(1)
    units = other.control_units()[1:]
    page = ControlPage(world.room, 1, units, other.cards(units), False, (), (), None)
    world.tell("r0", "ann", page)
    reasons = {each.reason for each in world.station("r0").noted(Kind.REJECTED, "admission")}
    assert reasons == {Reason.MISSING_DEPENDENCY}
    forged = tuple(replace(unit, sig=bytes(64)) for unit in world.control_units()[:1])
    world.tell("r0", "ann", replace(page, units=forged, cards=world.cards(forged)))
    assert world.station("r0").records[-1].reason is Reason.BAD_SIGNATURE


def test_pages_are_asked_for_until_there_are_no_more() -> None:
    world = asked()
    units = world.control_units()
    page = ControlPage(world.room, 1, units[:3], world.cards(units), True, (), (), None)
    (again,) = world.tell("r0", "ann", page)
    assert again == AskControl(world.room, 2, (recall_unit(units[2]).head,), None, card_of("r0"))
    world.tell("r0", "ann", replace(page, units=units[2:], more=False))
    assert len(world.station("r0").relay.status()) == 1


def test_being_asked_survives_a_restart() -> None:
    world = asked()
    station = world.station("r0")
    station.boot()
    station.context.links[peer_of("ann")] = None
    station.relay.start(world.now)
    world.carry(station)
    world.show_control("r0", "ann")
    assert len(station.relay.status()) == 1


def test_a_member_of_the_room_cannot_be_its_relay() -> None:
    world = World("r0")
    other = Station("r1", store=world.station("r0").store)
    world.add(other)
    answers = world.tell("r1", "ann", RelayAsk(world.room, 9, (), card_of("ann")))
    assert answers == [RelayAnswer(world.room, 9, Reason.IN_USE, person("r1").author)]


def test_its_join_is_forwarded_once_the_other_knows_it() -> None:
    world = World("r0", met=("ann",))
    world.name_relay("r1")
    world.add(Station("r1"))
    world.cut[frozenset((peer_of("r0"), peer_of("r1")))] = None  # their greetings are lost
    world.admit("r1")
    (join,) = world.station("r1").noted(Kind.PUBLISHED)
    assert join.event is not None
    world.cut.clear()
    world.fire("r1", ForwardDue)
    assert world.station("r1").noted(Kind.REJECTED, "forward")[-1].reason is Reason.NOT_A_RELAY
    for event in list(world.chronicle.events)[-3:-1]:
        world.send("r0", "ann", event)
    assert world.station("r0").store.log.get(join.event) is not None


def test_only_so_many_rooms_are_on_their_way_in_and_few_contacts_are_dialled() -> None:
    station = Station("r0")
    contacts = tuple(Contact(PeerId(bytes([number]) * 32), ("tls://x:1",)) for number in range(20))
    for number in range(AT_ONCE):
        room = TopicId(number.to_bytes(32, "big"))
        station.relay.handle_ask(peer_of("eve"), RelayAsk(room, 1, contacts), 0.0)
        assert len([each for each in station.out.take() if isinstance(each, Hold)]) == CONTACTS + 1
    last = TopicId(b"l" * 32)
    station.relay.handle_ask(peer_of("eve"), RelayAsk(last, 1, contacts), 0.0)
    answer = RelayAnswer(last, 1, Reason.TOO_MANY, person("r0").author)
    assert station.out.take() == [
        Record(Kind.REJECTED, last, peer=peer_of("eve"), reason=Reason.TOO_MANY, note="admission"),
        AfterCommit((Send(peer_of("eve"), answer),)),
    ]


class Scene:
    """A room as the relay has it, and what it says there."""

    def __init__(self, world: World) -> None:
        self.station = Station("r0")
        context = self.station.context
        for name in ("ann", "ben"):
            context.cards.learn(card_of(name))
            context.links[peer_of(name)] = None
        self.out = Outbox()
        self.cache = EventCache(world.room, self.station.store, context.cards, Budget(1), 1, self.out)
        self.dag = ControlDag(world.chronicle.create)
        for unit in world.chronicle.units.values():
            self.cache.keep_control(unit, False, 0.0)
            self.dag.add(unit.events[0])
        self.own = OwnMembership(context, self.dag, self.cache, self.out)
        self.turn = Turn(world.room, Answers(world.room), self.out)
        self.now = world.now

    def say(self, membership: Membership) -> None:
        self.own.say_membership(membership, self.turn, (peer_of("ann"),), (peer_of("ben"),), self.now)

    def promises(self) -> tuple[Promise, ...]:
        """What was promised since the last call, and nothing else was asked for."""
        self.turn.finish()
        (promise,) = self.out.take()
        assert isinstance(promise, AfterCommit)
        return promise.effects


def named() -> World:
    world = World()
    world.name_relay("r0")
    return world


def test_a_join_is_told_to_members_and_left_to_forwarding_for_relays() -> None:
    world = named()
    scene = Scene(world)
    scene.say(Membership.JOIN)
    record, send = scene.promises()
    assert isinstance(send, Send)
    assert send.peer == peer_of("ann")
    assert isinstance(send.message, Data)
    unit = send.message.unit
    event = verify_unit(unit, card_of("r0")).events[0]
    assert record == Record(Kind.PUBLISHED, world.room, event.id, event.device, 0, note="member")
    highest = world.chronicle.events[-1].tail.height or 0
    assert (event.seq, event.prev, event.tail.control, event.tail.deps, event.tail.height) == (
        0,
        None,
        world.control,
        world.control,
        highest + 1,
    )
    content = content_of(event.kind, event.body)
    assert isinstance(content, Member)
    assert content.membership is Membership.JOIN
    assert scene.own.standing is Membership.JOIN
    assert [entry.head for _, entry in scene.cache.from_peers(0, 0.0, 9)] == [event.id]


def test_a_leave_follows_in_the_same_chain_and_goes_to_relays_as_from_any_peer() -> None:
    scene = Scene(named())
    scene.say(Membership.JOIN)
    join = scene.turn.fresh[0].event
    scene.promises()
    scene.say(Membership.LEAVE)
    messages = {each.peer: each.message for each in scene.promises() if isinstance(each, Send)}
    relayed = messages[peer_of("ben")]
    assert isinstance(relayed, RelaySend)
    event = verify_unit(relayed.units[0], card_of("r0")).events[0]
    assert (event.seq, event.prev, event.tail.control) == (1, join, (join,))
    assert isinstance(messages[peer_of("ann")], Data)
    assert scene.own.standing is Membership.LEAVE


def test_what_the_room_does_not_allow_is_not_said() -> None:
    scene = Scene(World())
    scene.say(Membership.JOIN)
    scene.turn.finish()
    (record,) = scene.out.take()
    assert isinstance(record, Record)
    assert (record.kind, record.reason) == (Kind.REJECTED, Reason.NOT_INVITED)


def test_everything_goes_with_a_record_and_then_there_are_none() -> None:
    world, station = World(), Station("r0")
    context, cells, budget = station.context, station.store.cells, Budget(10**6)
    for name in ("ann", "ben"):
        context.cards.learn(card_of(name))
    out = Outbox()
    config = RelayConfig(tombstones=10)
    stores = RoomStores(world.room, RelaySetting(b"", context, config, RoomsConfig(), budget, out))
    cache, receipts, chunks = stores.cache, stores.receipts, stores.chunks
    for unit in world.chronicle.units.values():
        cache.keep_control(unit, True, 1.0)
    cache.keep(world.chronicle.units[world.say("ann").id], True, 1.0)
    receipts.learn(sign_room_receipt(person("ann").device, card_of("ann"), world.room, 1, ()))
    chunks.put(ChunkPut(world.room, hashlib.sha256(b"piece").digest(), b"piece"), 1.0)
    assert [stores.forget_some() for _ in range(3)] == [True, True, False]
    effects = out.take()
    records = [each for each in effects if isinstance(each, Record)]
    assert records == effects
    assert len(records) == len(world.chronicle.units) + 1
    assert {record.reason for record in records} == {Reason.NOT_A_RELAY}
    assert not stores.forget_some()
    assert out.take() == []
    assert (budget.bytes, budget.events, chunks.bytes) == (0, 0, 0)
    assert [topic for topic in (world.room, *cache.topics) if station.store.log.kept(topic).units] == []
    assert list(cells.scan("chunk")) == []
    assert list(cells.scan(f"receipts/{world.room.hex()}")) == []
