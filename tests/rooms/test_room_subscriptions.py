"""Subscriptions of a room, and the order in which they are handed its history."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from tests.driven import Driven
from tests.rooms.bench import Bench
from tests.rooms.chronicle import Chronicle, person
from tests.rooms.circle import Circle

from linnet.core.effects import AfterCommit, Deliver
from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Entry
from linnet.delivery.commands import Consumed, Unsubscribe
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.context import Context
from linnet.delivery.items import CaughtUp, Ended, Inserted, Item, Overdue, Unreadable
from linnet.delivery.subscriptions import Cursor, Window
from linnet.event.event import MESSAGE, Event, Spot, Verified
from linnet.event.signing import encode_unit, message_tail, sign_unit, verify_unit
from linnet.machine.commands import Declined, Done
from linnet.machine.outbox import Outbox
from linnet.peer.interface import Effect, Handed, Promise
from linnet.rooms.commands import Reading, ReadRoom, Redact, SendToRoom, SetMembership, SetState
from linnet.rooms.event_positions import causes_of
from linnet.rooms.event_types import MEMBER, NAME, Member, Membership, member_key
from linnet.rooms.room_store import RoomMemory
from linnet.rooms.room_subscriptions import RoomReader, RoomSubscriptions, Timeline
from linnet.sim.seeded_random import seeded_identity
from linnet.store.memory import MemoryStore
from linnet.testing.identities import known_identity
from linnet.trace.records import Kind, Record


def items(effects: list[Effect | Promise], subscription: int) -> list[Handed]:
    return [
        item
        for each in effects
        if isinstance(each, Deliver) and each.subscription == subscription
        for item in each.items
    ]


def bodies(effects: list[Effect | Promise], subscription: int) -> list[bytes]:
    return [item.body for item in items(effects, subscription) if isinstance(item, Event)]


def test_a_reader_of_messages_is_handed_no_state() -> None:
    bench = Bench()
    bench.ask(ReadRoom(2, bench.id, None, None, state=False))
    bench.effects.clear()
    bench.say(SetState(bench.id, NAME, "", b"coffee"))
    (first,) = bench.say(SendToRoom(bench.id, (b"hello",)))
    bench.say(Redact(bench.id, first))
    assert bodies(bench.effects, 2) == [b"hello"]
    assert len(bodies(bench.effects, 1)) == 3


def test_a_new_one_is_handed_what_it_asks_for() -> None:
    bench = Bench()
    bench.say(SendToRoom(bench.id, (b"old",)))
    bench.now += 10.0
    middle = bench.now
    bench.say(SendToRoom(bench.id, (b"middle",)))
    bench.now += 10.0
    bench.say(SendToRoom(bench.id, (b"new",)))
    assert bodies(bench.asked(ReadRoom(2, bench.id, 0.0, None, state=False)), 2) == [
        b"old",
        b"middle",
        b"new",
    ]
    assert bodies(bench.asked(ReadRoom(3, bench.id, middle, None, state=False)), 3) == [b"middle", b"new"]
    effects = bench.asked(ReadRoom(4, bench.id, None, None, state=False))
    assert [type(item) for item in items(effects, 4)] == [CaughtUp]


def test_a_durable_one_is_resumed_and_is_read_once_at_a_time() -> None:
    bench = Bench()
    first = bench.ask(ReadRoom(2, bench.id, 0.0, "app", state=False))
    assert first == Reading(bench.id, False)
    declined = bench.ask(ReadRoom(3, bench.id, 0.0, "app", state=False))
    assert isinstance(declined, Declined)
    assert declined.reason is Reason.IN_USE
    bench.say(SendToRoom(bench.id, (b"one", b"two")))
    assert bench.ask(Consumed(2, 2)) == Done()  # the word that all was read, and the first
    assert bench.ask(Unsubscribe(2)) == Done()
    effects = bench.asked(ReadRoom(3, bench.id, 0.0, "app", state=False))
    assert Reading(bench.id, True) in [getattr(each, "result", None) for each in effects]
    assert bodies(effects, 3) == [b"two"]


def test_history_ends_and_no_event_is_recorded_as_lost_to_it() -> None:
    bench = Bench()
    bench.say(SendToRoom(bench.id, (b"old",)))
    effects = bench.asked(ReadRoom(2, bench.id, 0.0, None, state=False, live=False))
    assert [type(item) for item in items(effects, 2)] == [Event, CaughtUp, Ended]
    effects = bench.asked(SendToRoom(bench.id, (b"new",)))
    assert items(effects, 2) == []
    assert bench.records(Kind.DROPPED, effects) == []


def test_what_came_too_late_is_history_and_what_failed_softly_is_nothing() -> None:
    bench = Bench("bob", "cid")
    deps, control = bench.room.dag.heads, bench.room.control.heads
    gone = bench.forge("cid", body=b"late")
    after = bench.forge("cid", body=b"after", deps=(gone.head,))
    bench.bring("cid", after)
    bench.brought_about(
        lambda: bench.room.passing.pass_on(bench.room.intake.expire(gone.head, bench.now), bench.now)
    )
    bench.say(SetMembership(bench.id, bench.who("bob").author, Membership.BAN))
    bench.bring("cid", gone, bench.forge("bob", body=b"soft", deps=deps, control=control))
    assert len(bench.room.memory.hidden) == 2
    live = bench.asked(ReadRoom(2, bench.id, 0.0, None, state=False))
    assert bodies(live, 2) == [b"after"]
    history = bench.asked(ReadRoom(3, bench.id, 0.0, None, state=False, live=False))
    assert bodies(history, 3) == [b"late", b"after"]


def test_what_was_taken_back_is_handed_without_its_words() -> None:
    bench = Bench()
    (oops,) = bench.say(SendToRoom(bench.id, (b"oops",)))
    bench.say(Redact(bench.id, oops))
    effects = bench.asked(ReadRoom(2, bench.id, 0.0, None, state=False))
    (seen,) = [item for item in items(effects, 2) if isinstance(item, Unreadable)]
    assert (seen.event.id, seen.event.body, seen.reason) == (oops, b"", Reason.REDACTED)
    assert seen.by == seen.event.author


def test_a_deadline_is_told_to_all_who_read() -> None:
    bench = Bench("bob")
    bench.ask(ReadRoom(2, bench.id, None, None))
    bench.effects.clear()
    (event,) = bench.say(SendToRoom(bench.id, (b"quick",), deadline=5.0))
    bench.now += 5.0
    overdue = bench.room.ledger.handle_deadline(bench.room.author.seq)
    assert overdue == Overdue(bench.id, event, (bench.who("bob").author,))
    bench.room.out.clear()
    effects = bench.brought_about(lambda: bench.room.subscriptions.tell_notice(overdue))
    told = [each.effects[0] for each in effects]
    assert [each.subscription for each in told if isinstance(each, Deliver)] == [1, 2]
    assert len(told) == 2


def test_one_that_is_not_there_is_not_handed_anything() -> None:
    bench = Bench()
    readers = bench.room.subscriptions
    assert list(readers._readers) == [1]
    assert bench.brought_about(lambda: readers.handle_consumed(2, 1)) == []
    assert bench.brought_about(lambda: readers.remove(2)) == []
    assert bench.ask(Unsubscribe(1)) == Done()
    assert not readers._readers


def test_one_that_leaves_too_much_unread_ends_and_this_is_recorded() -> None:
    """Events wait in the log, but what is no event waits in memory, and that has an end."""
    room, store, ann = TopicId(b"r" * 32), MemoryStore(), known_identity("ann")
    config = DeliveryConfig(window_items=1, buffer_items=1)
    context = Context(ann.device, ann.card, store, config, Random(1), verify_unit)
    readers = Driven(lambda out: RoomSubscriptions(room, context, RoomMemory(room, store, 10), out))
    readers.add(ReadRoom(2, room, None, None))
    readers.hand_log(2)
    late = Overdue(room, EventId(b"e" * 32), ())
    assert readers.tell_notice(late) == []
    ended: Deliver[Handed] = Deliver(2, (Ended(Reason.SUBSCRIBER_SLOW),))
    record = Record(Kind.DROPPED, room, reason=Reason.SUBSCRIBER_SLOW)
    assert readers.tell_notice(late) == [AfterCommit((ended,)), AfterCommit((record,))]
    assert readers.tell_notice(late) == []


def tangle(luck: Random) -> Chronicle:
    """Three people who know now more, now less of each other, with clocks that are hours off."""
    room = Chronicle("ann", time=0)
    heads = room.member("ann", "ann", Membership.JOIN, [room.create])
    said = [heads]
    for number in range(40):
        who = luck.choice(("ann", "bob", "cid"))
        deps = luck.sample(said, min(len(said), luck.randrange(1, 4)))
        skew = {"ann": 0, "bob": -7_200_000, "cid": 3_600_000}[who]
        said.append(room.sign(who, MESSAGE, None, b"", [heads], deps=deps, time=number * 10 + skew))
    return room


def order(events: list[Event]) -> list[Event]:
    timeline = Timeline()
    for number, event in enumerate(events):
        timeline.add(event, causes_of(event))
        if number % 7 == 0:
            timeline.key(event.id)
    return sorted(events, key=lambda event: timeline.key(event.id))


def test_the_order_is_causal_and_the_same_for_any_order_of_arrival() -> None:
    moved = 0
    for seed in range(30):
        luck = Random(seed)
        room = tangle(luck)
        events = list(room.events)
        first = order(events)
        place = {event.id: number for number, event in enumerate(first)}
        for event in events:
            assert all(place[cause] < place[event.id] for cause in causes_of(event))
        for _ in range(3):
            luck.shuffle(events)  # Also before their causes: what was gone may be back as history.
            assert order(events) == first
        moved += first != sorted(room.events, key=lambda event: (event.time, event.id))
    assert moved, "no clock was ever wrong: this shows nothing"


def test_what_is_not_known_is_at_the_beginning() -> None:
    key = member_key(person("bob").author)
    room = Chronicle("ann")
    event = room.sign("bob", MEMBER, key, Member(Membership.JOIN), [room.create])
    assert Timeline().key(event.id) == (-1, event.id)


class Apart(Circle):
    """Everybody is handed what they read by subscription."""

    def __init__(self, *names: str, seed: int) -> None:
        self.by: dict[tuple[str, int], list[Handed]] = {}
        super().__init__(*names, seed=seed)

    def _deliver(self, peer: PeerId, effect: Deliver[Handed], now: float) -> None:
        self.by.setdefault((self.name(peer), effect.subscription), []).extend(effect.items)
        super()._deliver(peer, effect, now)

    def history(self, name: str, number: int, since: float = 0.0) -> list[Handed]:
        self.ask(name, ReadRoom(number, self.room, since, None, live=False, state=False))
        self.run(0.5)
        return self.by[name, number]

    def speak_apart(self) -> None:
        """Each half says three things that the other does not hear."""
        self.network.partition([[self.peer("ann"), self.peer("cid")], [self.peer("bob")]])
        self.run(1.0)
        for number in range(3):
            self.say("ann", f"ann {number}")
            self.run(0.7)
            self.say("bob", f"bob {number}")
            self.run(0.7)
        self.network.heal()
        self.run(60.0)


def texts(items: list[Handed]) -> list[str]:
    return [item.body.decode() for item in items if isinstance(item, Event)]


def test_after_two_have_spoken_apart_all_show_the_same_order_and_after_restarts() -> None:
    circle = Apart("ann", "bob", "cid", seed=51)
    circle.found("ann", "bob", "cid")
    circle.say("ann", "before")
    circle.run(2.0)
    circle.speak_apart()
    circle.say("bob", "after")
    circle.run(3.0)
    expected = ["before", "ann 0", "bob 0", "ann 1", "bob 1", "ann 2", "bob 2", "after"]
    assert texts(circle.by["ann", 1]) != texts(circle.by["bob", 1]), "they came in one order anyway"
    for name in ("ann", "bob", "cid"):
        assert texts(circle.history(name, 7)) == expected
    circle.offline("ann", "bob", "cid")
    circle.online("ann", "bob", "cid")
    circle.run(5.0)
    for name in ("ann", "bob", "cid"):
        circle.by.clear()
        assert texts(circle.history(name, 8)) == expected


def test_what_came_late_is_marked_in_history_where_it_came_late() -> None:
    circle = Apart("ann", "bob", "cid", seed=52)
    circle.found("ann", "bob", "cid")
    circle.speak_apart()
    for name, other in (("ann", "bob"), ("bob", "ann")):
        items = circle.history(name, 7)
        marked = {item.event: item.before for item in items if isinstance(item, Inserted)}
        late = [item for item in items if isinstance(item, Event) and item.id in marked]
        # Of what the other said the last came after everything of ours, or before something of it.
        assert {item.body.decode() for item in late} <= {f"{other} {number}" for number in range(3)}
        assert f"{other} 0" in {item.body.decode() for item in late}
        order = [item.id for item in items if isinstance(item, Event)]
        for at, item in enumerate(items):
            if isinstance(item, Inserted):
                following = items[at + 1]
                assert isinstance(following, Event)
                assert following.id == item.event
                assert item.before not in order[: order.index(item.event)]
        assert isinstance(items[-2], CaughtUp)


def test_a_live_reader_is_told_that_what_comes_belongs_further_up() -> None:
    circle = Apart("ann", "bob", "cid", seed=53)
    circle.found("ann", "bob", "cid")
    circle.ask("ann", ReadRoom(9, circle.room, None, None, state=False))
    circle.speak_apart()
    items = circle.by["ann", 9]
    said = {item.id: item.body.decode() for item in items if isinstance(item, Event)}
    assert texts(items)[:3] == ["ann 0", "ann 1", "ann 2"]
    assert sorted(texts(items)[3:]) == ["bob 0", "bob 1", "bob 2"]
    marks = {said[item.event]: said[item.before] for item in items if isinstance(item, Inserted)}
    assert marks["bob 0"] == "ann 1"
    assert marks["bob 1"] == "ann 2"
    assert "bob 2" not in marks


def test_only_what_is_asked_for_is_put_in_order_and_what_comes_meanwhile_follows() -> None:
    circle = Apart("ann", "bob", "cid", seed=54)
    circle.found("ann", "bob", "cid")
    circle.say("ann", "long ago")
    circle.run(100.0)
    since = circle.network.now
    circle.speak_apart()
    assert texts(circle.history("cid", 7, since)) == ["ann 0", "bob 0", "ann 1", "bob 1", "ann 2", "bob 2"]
    circle.ask("cid", ReadRoom(8, circle.room, 0.0, None, state=False))
    circle.say("bob", "now")
    circle.run(2.0)
    assert texts(circle.by["cid", 8]) == [
        "long ago",
        "ann 0",
        "bob 0",
        "ann 1",
        "bob 1",
        "ann 2",
        "bob 2",
        "now",
    ]


TOPIC = TopicId(b"t" * 32)


WHO = seeded_identity(1, "ann", 0.0)


def said(number: int) -> Verified:
    card = WHO.card
    return sign_unit(
        WHO.device,
        Spot(TOPIC, card.person, card.device, number, None),
        (message_tail(str(number).encode(), 1),),
    )


class Scene:
    """A log, a reader of it, and an application that handles what it is handed when it likes."""

    def __init__(self, window: int = 4, durable: bool = True, after: int = 0, live: bool = True) -> None:
        self.store = MemoryStore()
        self.config = DeliveryConfig(window_items=window)
        self.durable = durable
        self.hidden: set[bytes] = set()
        self.out = Outbox()
        self.numbers: dict[EventId, int] = {}
        self.written = 0
        self.reader = self.read(after, live)

    def read(self, after: int = 0, live: bool = True) -> RoomReader:
        cursor = Cursor(TOPIC, "app", self.store.cells) if self.durable else None
        if cursor is not None and not cursor.resumed:
            cursor.begin(after)
        self.handed: list[Item] = []
        self.flying = 0
        self.reader = self.new_reader(cursor, after, live)
        self.hand_log()
        return self.reader

    def new_reader(self, cursor: Cursor | None, after: int, live: bool) -> RoomReader:
        window: Window[Item] = Window(1, self.config)
        return RoomReader(TOPIC, window, cursor, after, live, self.shown, self.key, arranged=False)

    def key(self, event: EventId) -> tuple[int, EventId]:
        return self.numbers.setdefault(event, len(self.numbers)), event

    def hand_log(self) -> None:
        self.reader.hand_log(self.store.log, self.out)
        self.take()

    def shown(self, event: Event) -> Event | None:
        return None if event.body in self.hidden else event

    def take(self) -> None:
        for effect in self.out.take():
            assert isinstance(effect, Deliver)
            self.handed += effect.items
            self.flying += len(effect.items)

    def write(self, count: int = 1) -> None:
        for _ in range(count):
            made = said(self.written)
            card = WHO.card
            entry = Entry(
                TOPIC, card.person, card.device, self.written, 1, made.head, 0.0, encode_unit(made.unit)
            )
            position = self.store.log.append(entry)
            assert position is not None
            self.written += 1
            self.reader.hand_written(position, made.events, self.out)
            self.take()

    def handle(self, count: int) -> None:
        self.flying -= count
        self.reader.handle_consumed(count, self.store.log, self.out)
        self.take()

    def tell(self, item: Item) -> None:
        self.reader.tell(item, self.out)
        self.take()

    @property
    def bodies(self) -> list[int]:
        return [int(item.body) for item in self.handed if isinstance(item, Event)]


def test_who_is_slow_is_waited_for_in_the_log() -> None:
    scene = Scene(window=4)
    scene.handle(1)  # the word that all was read
    scene.write(10)
    assert scene.bodies == [0, 1, 2, 3]
    scene.handle(3)
    assert scene.bodies == [0, 1, 2, 3, 4, 5, 6]
    scene.handle(4)
    assert scene.bodies == list(range(10))
    scene.write(2)
    assert scene.bodies == list(range(11))  # no room again
    scene.handle(4)
    assert scene.bodies == list(range(12))
    assert sum(isinstance(item, CaughtUp) for item in scene.handed) == 1


def test_what_is_not_for_it_is_passed_over() -> None:
    scene = Scene(window=2)
    scene.handle(1)
    scene.hidden = {b"1", b"3"}
    scene.write(6)
    assert scene.bodies == [0, 2]
    scene.handle(2)
    assert scene.bodies == [0, 2, 4, 5]


@given(
    st.lists(st.one_of(st.just("write"), st.integers(1, 5), st.just("crash")), max_size=60), st.integers(1, 6)
)
def test_nothing_is_left_out_or_twice_in_a_life(steps: list[str | int], window: int) -> None:
    scene = Scene(window=window)
    handled = 0
    for step in steps:
        if step == "write":
            scene.write()
        elif step == "crash":
            scene.read()
        elif isinstance(step, int):
            scene.handle(min(step, scene.flying))
        assert scene.flying <= max(window, 1)
        first = scene.bodies[0] if scene.bodies else 0
        assert scene.bodies == list(range(first, first + len(scene.bodies)))
        handled = max(handled, first)
    while scene.flying:
        scene.handle(scene.flying)
    assert not scene.bodies or scene.bodies[-1] == scene.written - 1


def test_a_log_of_many_pages_is_handed_over_whole() -> None:
    scene = Scene(window=1000)
    for more in (256, 256, 100):
        scene.write(more)
        scene.read()
        assert scene.bodies == list(range(scene.written))


def test_what_is_no_event_comes_in_its_turn_and_moves_no_place_past_an_event() -> None:
    scene = Scene(window=2)
    scene.handle(1)
    scene.write()
    late = Overdue(TOPIC, EventId(b"e" * 32), ())
    scene.tell(late)
    scene.tell(late)
    scene.write()
    assert [type(item) for item in scene.handed] == [CaughtUp, Event, Overdue]
    scene.handle(2)
    assert [type(item) for item in scene.handed] == [CaughtUp, Event, Overdue, Overdue, Event]
    scene.handle(1)
    scene.read()
    assert scene.bodies == [1]
