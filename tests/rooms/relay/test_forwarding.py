"""What goes on to the other relays, and what becomes of it there."""

from __future__ import annotations

from msgspec.structs import replace
from tests.rooms.relay.scenes import OPEN, World

from linnet.core.effects import CancelTimer, Hold, Release, Send, SetTimer
from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.context import CardBook
from linnet.machine.outbox import Effect, Outbox
from linnet.rooms.messages import RelayCursor, RelayForward, RelayOutcome, RelayTaken
from linnet.rooms.relay.event_cache import EventCache
from linnet.rooms.relay.event_index import Budget
from linnet.rooms.relay.forwarding import ForwardDue, Forwarding
from linnet.rooms.relay.mailbox import Pages
from linnet.store.memory import MemoryStore
from linnet.trace.records import Kind, Record

OTHER, THIRD = PeerId(b"2" * 32), PeerId(b"3" * 32)
HINTS = ("tls://r:1",)


class Scene:
    """Forwarding of a room to relays that the test plays."""

    def __init__(self) -> None:
        self.world = World()
        self.store = MemoryStore()
        self.cards = CardBook(self.store.cells)
        for card in self.world.cards(self.world.control_units()):
            self.cards.learn(card)
        self.out = Outbox()
        self.cache = EventCache(self.world.room, self.store, self.cards, Budget(10**9), 100, self.out)
        self.links: dict[PeerId, None] = {OTHER: None, THIRD: None}
        self.forwarding = self.again()

    def again(self) -> Forwarding:
        pages = Pages(self.cards, 3, 10**6)
        return Forwarding(self.store.cells, self.cache, pages, self.links, 11.0, 15.0, self.out)

    @property
    def room(self) -> TopicId:
        return self.world.room

    def say(self, count: int, from_peer: bool = True) -> list[EventId]:
        events = [self.world.say("ann", b"%d" % number) for number in range(count)]
        for event in events:
            self.cache.keep(self.world.chronicle.units[event.id], from_peer, 1.0)
        return [event.id for event in events]

    def timer(self, peer: PeerId = OTHER) -> ForwardDue:
        return ForwardDue(self.room, peer)

    def targets(self, relays: dict[PeerId, tuple[str, ...]]) -> list[Effect]:
        self.forwarding.set_relays(relays)
        return self.out.take()

    def pump(self) -> list[Effect]:
        self.forwarding.forward_events()
        return self.out.take()

    def up(self, peer: PeerId) -> list[Effect]:
        self.forwarding.resume(peer)
        return self.out.take()

    def down(self, peer: PeerId) -> list[Effect]:
        self.forwarding.handle_link_down(peer)
        return self.out.take()

    def fire(self, peer: PeerId) -> list[Effect]:
        self.forwarding.try_again(peer)
        return self.out.take()

    def taken(self, taken: RelayTaken) -> list[Effect]:
        self.forwarding.handle_taken(OTHER, taken)
        return self.out.take()

    def took(self, number: int, ids: list[EventId], reason: Reason | None = None) -> list[Effect]:
        cursor = RelayCursor(b"epoch..1", 1) if reason is None else None
        outcomes = tuple(RelayOutcome(each, cursor, reason, ()) for each in ids)
        return self.taken(RelayTaken(self.room, number, outcomes, None))


def sent(effects: list[Effect]) -> list[tuple[PeerId, int, int]]:
    """Peer, number and size of what is forwarded."""
    return [
        (each.peer, each.message.request, len(each.message.units))
        for each in effects
        if isinstance(each, Send) and isinstance(each.message, RelayForward)
    ]


def test_links_to_other_relays_are_held_and_let_go() -> None:
    scene = Scene()
    purpose = f"relay {scene.room.hex()[:16]}"
    assert scene.targets({OTHER: HINTS}) == [Hold(OTHER, HINTS, purpose)]
    assert scene.targets({OTHER: HINTS}) == []
    assert scene.targets({OTHER: ()}) == [Hold(OTHER, (), purpose)]
    scene.forwarding.stop()
    assert scene.out.take() == [CancelTimer(scene.timer()), Release(OTHER, purpose)]
    assert scene.forwarding.relays == ()


def test_a_page_at_a_time_and_the_next_when_it_is_answered() -> None:
    scene = Scene()
    scene.targets({OTHER: HINTS})
    ids = scene.say(5)
    first = scene.pump()
    assert sent(first) == [(OTHER, 1, 3)]
    assert first[-1] == SetTimer(11.0, scene.timer())
    assert [each.event for each in first if isinstance(each, Record)] == ids[:3]
    assert scene.pump() == []
    assert scene.took(1, ids[:2]) == []
    assert sent(scene.took(1, ids[2:3])) == [(OTHER, 2, 2)]
    assert sent(scene.took(2, ids[3:])) == []


def test_what_came_from_relays_is_not_forwarded() -> None:
    scene = Scene()
    scene.targets({OTHER: HINTS})
    scene.say(2, from_peer=False)
    assert scene.pump() == []


def test_a_new_relay_gets_what_comes_from_then_on() -> None:
    scene = Scene()
    scene.say(1)
    scene.targets({OTHER: HINTS})
    assert scene.pump() == []
    scene.say(1)
    assert sent(scene.pump()) == [(OTHER, 1, 1)]


def test_the_place_of_each_outlives_a_restart() -> None:
    scene = Scene()
    scene.targets({OTHER: HINTS, THIRD: HINTS})
    ids = scene.say(2)
    assert sent(scene.pump()) == [(OTHER, 1, 2), (THIRD, 1, 2)]
    scene.took(1, ids)
    scene.forwarding = scene.again()
    scene.targets({OTHER: HINTS, THIRD: HINTS})
    assert sent(scene.pump()) == [(THIRD, 1, 2)]


def test_what_was_under_way_is_sent_over_the_next_link() -> None:
    scene = Scene()
    scene.targets({OTHER: HINTS})
    scene.say(1)
    scene.pump()
    del scene.links[OTHER]
    assert scene.down(OTHER) == [CancelTimer(scene.timer())]
    assert scene.pump() == []
    scene.links[OTHER] = None
    assert sent(scene.up(OTHER)) == [(OTHER, 2, 1)]
    assert scene.up(THIRD) == []


def test_who_does_not_serve_the_room_yet_is_asked_again_later() -> None:
    scene = Scene()
    scene.targets({OTHER: HINTS})
    scene.say(1)
    scene.pump()
    unknown = RelayTaken(scene.room, 1, (), Reason.UNKNOWN_ROOM)
    assert scene.taken(unknown) == [
        Record(Kind.REJECTED, scene.room, peer=OTHER, reason=Reason.UNKNOWN_ROOM, note="forward"),
        SetTimer(15.0, scene.timer()),
    ]
    scene.say(1)
    assert scene.pump() == []  # not at every event
    assert sent(scene.fire(OTHER)) == [(OTHER, 2, 2)]
    assert scene.fire(THIRD) == []
    scene.taken(replace(unknown, request=2))
    assert sent(scene.up(OTHER)) == [(OTHER, 3, 2)]  # it has greeted


def test_a_relay_that_goes_on_refusing_is_sent_events_ever_less() -> None:
    scene = Scene()
    scene.targets({OTHER: HINTS})
    scene.say(1)
    scene.pump()
    refused = RelayTaken(scene.room, 1, (), Reason.UNKNOWN_ROOM)
    pauses = []
    for number in range(1, 8):
        effects = scene.taken(replace(refused, request=number))
        pauses += [each.delay for each in effects if isinstance(each, SetTimer)]
        scene.fire(OTHER)
    assert pauses == [15.0, 30.0, 60.0, 120.0, 240.0, 240.0, 240.0]


def test_what_it_refuses_is_recorded_and_left() -> None:
    scene = Scene()
    scene.targets({OTHER: HINTS})
    ids = scene.say(1)
    scene.pump()
    dropped = Record(Kind.DROPPED, scene.room, ids[0], peer=OTHER, reason=Reason.BANNED, note="forward")
    assert scene.took(1, ids, Reason.BANNED)[0] == dropped
    scene.forwarding = scene.again()
    scene.targets({OTHER: HINTS})
    assert scene.pump() == []


def test_what_it_lacks_is_sent_first_a_few_times() -> None:
    scene = Scene()
    scene.targets({OTHER: HINTS})
    create = scene.world.chronicle.units[EventId(scene.room)]
    scene.cache.keep_control(create, False, 1.0)
    (lacking,) = scene.say(1)
    scene.pump()
    units = (create.unit, scene.world.unit(lacking))
    for number in (1, 2, 3):
        outcome = RelayOutcome(lacking, None, Reason.MISSING_DEPENDENCY, (create.head,))
        others = () if number == 1 else (RelayOutcome(create.head, RelayCursor(b"e" * 8, 1), None, ()),)
        effects = scene.taken(RelayTaken(scene.room, number, (*others, outcome), None))
        (forward,) = [each.message for each in effects if isinstance(each, Send)]
        assert forward == RelayForward(scene.room, number + 1, units, scene.world.cards(units))
    (record, *_) = scene.took(4, [lacking, create.head], Reason.MISSING_DEPENDENCY)
    assert isinstance(record, Record)
    assert (record.kind, record.reason) == (Kind.DROPPED, Reason.MISSING_DEPENDENCY)


def test_an_answer_that_nobody_waits_for_is_nothing() -> None:
    scene = Scene()
    assert scene.taken(RelayTaken(scene.room, 1, (), None)) == []
    scene.targets({OTHER: HINTS})
    assert scene.taken(RelayTaken(scene.room, 0, (), None)) == []


def test_what_expires_before_it_is_sent_is_not_sent() -> None:
    world = World("r0", "r1", config=replace(OPEN, max_lifetime=60.0), met=("ann",))
    world.part("r0", "r1")
    old = world.say("ann", b"old")
    world.send("r0", "ann", old)
    world.now += 120
    world.send("r0", "ann", world.say("ann", b"new"))
    world.meet("r0", "r1")
    assert old.id not in [each.event for each in world.station("r0").noted(Kind.SENT)]
    world.link("r1", "ben")
    assert world.said(world.resync("r1", "ben")) == [b"new"]
