"""Operations on keys wait at a relay for the devices that lack them, whatever the room's retention is."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.rooms.chronicle import person, person_key
from tests.rooms.relay import scenes
from tests.rooms.relay.scenes import Station, World, card_of

from linnet.core.reasons import Reason
from linnet.event.event import Event
from linnet.event.signing import encode_unit, recall_unit
from linnet.identity.cards import revoke
from linnet.rooms.config import RelayConfig, RoomsConfig
from linnet.rooms.event_types import GROUP, REVOCATION, Membership, Revoked
from linnet.rooms.messages import RelayCursor, ResyncPage
from linnet.rooms.relay import event_index
from linnet.rooms.relay.event_cache import ExpiryDue
from linnet.rooms.relay.event_index import NOTE
from linnet.rooms.relay.relay import SweepDue
from linnet.sim.nemesis.open_node import DamageableLog, DamageableStore
from linnet.trace.records import Kind

DAY = 86_400.0
OPEN = replace(scenes.OPEN, group_least=0.0)


def world_of(*relays: str, config: RelayConfig = OPEN, rooms: RoomsConfig | None = None) -> World:
    """Ann and ben are at the relays, and take part in the keys."""
    world = World(*(relays or ("r0",)), config=config, rooms=rooms)
    for who in ("ann", "ben"):
        world.link("r0", who)
        operate(world, who, b"keys of " + who.encode())
    read_all(world, "ann")
    read_all(world, "ben")
    assert operations(world) == []
    world.station("r0").records.clear()
    return world


def let_in(world: World, name: str) -> None:
    """Somebody joins at the relay, and has no keys yet."""
    invite, join = world.join(name)
    world.send("r0", "ann", invite)
    world.link("r0", name)
    world.send("r0", name, join)


def operation(world: World, who: str, body: bytes = b"operation") -> Event:
    return world.chronicle.sign(who, GROUP, None, body, world.control)


def operate(world: World, who: str, body: bytes = b"operation", name: str = "r0") -> Event:
    event = operation(world, who, body)
    (outcome,) = world.send(name, who, event)
    assert outcome.reason is None
    return event


def read_all(world: World, who: str, cursor: RelayCursor | None = None, name: str = "r0") -> RelayCursor:
    """Ask until there is no more, and once from the end: so the relay knows that it arrived."""
    while True:
        page = world.resync(name, who, cursor)
        assert page.next is not None
        if page.next == cursor:
            return page.next
        cursor = page.next


def operations(world: World, name: str = "r0") -> list[bytes]:
    """What the relay keeps of them: as somebody would read it who has nothing, and never says so."""
    cache = world.station(name).relay._rooms[world.room].cache
    bodies = []
    for topic in cache.group_topics:
        for position, entry in world.station(name).store.log.read(topic, 0, 9999):
            assert cache.position(entry.head) == position
            bodies.append((position, world.chronicle.units[entry.head].events[0].body))
    return [body for _, body in sorted(bodies)]


def bodies(page: ResyncPage) -> list[bytes]:
    events = (recall_unit(unit).events[0] for unit in page.units)
    return [event.body for event in events if event.kind == GROUP]


def gone(world: World, name: str = "r0") -> list[tuple[Kind, Reason | None]]:
    records = world.station(name).records
    return [(each.kind, each.reason) for each in records if each.note == GROUP and each.reason]


def lost(world: World) -> list[tuple[bytes, Reason | None]]:
    """Devices that are not waited for any more, and why."""
    return [(each.device or b"", each.reason) for each in world.station("r0").noted(Kind.EVICTED, NOTE)]


def test_who_was_away_longer_than_the_rooms_retention_finds_all_of_them_and_no_old_message() -> None:
    world = world_of(rooms=RoomsConfig(page_events=4))
    away = read_all(world, "ben")
    world.send("r0", "ann", world.keep_for(60_000))
    said = [b"%d" % number for number in range(10)]
    for body in said:
        operate(world, "ann", body)
        world.send("r0", "ann", world.say("ann", b"message"))
        world.now += 60
    world.now += 1
    world.fire("r0", ExpiryDue)
    found: list[bytes] = []
    messages: list[bytes] = []
    cursor: RelayCursor | None = away
    for _ in range(10):
        page = world.resync("r0", "ben", cursor)
        if page.reason is Reason.CURSOR_EXPIRED:
            cursor, found = None, []
            continue
        found += bodies(page)
        messages += world.said(page)
        cursor = page.next
    assert (found, messages) == (said, [])
    assert operations(world) == []
    assert gone(world) == [(Kind.EXPIRED, Reason.RETENTION)] * 10
    assert len(world.station("r0").noted(Kind.EXPIRED, "message")) == 10


def test_single_ones_are_given_by_id_past_the_rooms_retention() -> None:
    world = world_of()
    world.send("r0", "ann", world.keep_for(60_000))
    event, message = operate(world, "ann"), world.say("ann")
    world.send("r0", "ann", message)
    world.now += 61
    given_back = world.want("r0", "ben", event, message)
    assert [recall_unit(unit).events[0].id for unit in given_back.units] == [event.id]
    assert (given_back.unknown, given_back.reason) == ((message.id,), Reason.RETENTION)


def test_one_goes_once_all_have_it_and_leaves_a_tombstone() -> None:
    world = world_of()
    event = operate(world, "ann")
    page = world.resync("r0", "ben")
    assert bodies(page) == operations(world) == [b"operation"]
    page = world.resync("r0", "ben", page.next)
    assert operations(world) == []
    assert gone(world) == [(Kind.EXPIRED, Reason.RETENTION)]
    assert world.send("r0", "ann", event)[0].reason is Reason.RETENTION
    assert lost(world) == []


def test_a_cursor_of_another_epoch_or_of_the_future_shows_nothing() -> None:
    world = world_of()
    operate(world, "ann")
    end = world.resync("r0", "ben").next
    assert end is not None
    world.resync("r0", "ben", RelayCursor(bytes(8), end.position))
    world.resync("r0", "ben", RelayCursor(end.epoch, end.position + 1))
    assert operations(world) == [b"operation"]


def test_who_begins_anew_is_waited_for_again() -> None:
    world = world_of()
    let_in(world, "cyd")
    operate(world, "ann")
    cursor = read_all(world, "ben")
    world.resync("r0", "ben")
    operate(world, "cyd", b"keys of cyd")
    read_all(world, "cyd")
    read_all(world, "ann")
    assert operations(world) == [b"operation", b"keys of cyd"]
    read_all(world, "ben", cursor)
    assert operations(world) == []


def test_who_has_joined_and_takes_no_part_yet_is_waited_for_with_the_newest() -> None:
    world = world_of(config=replace(OPEN, group_pending=3))
    let_in(world, "cyd")
    for number in range(5):
        operate(world, "ann", b"%d" % number)
    read_all(world, "ben")
    assert operations(world) == [b"2", b"3", b"4"]
    operate(world, "cyd", b"keys")
    read_all(world, "cyd")
    read_all(world, "ben")
    assert operations(world) == [b"keys"]


@pytest.mark.parametrize("how", ["leaves", "is put out", "is banned", "is revoked"])
def test_who_is_no_member_any_more_is_not_waited_for(how: str) -> None:
    world = world_of()
    operate(world, "ann")
    device = card_of("ben").device
    event = {
        "leaves": lambda: world.membership("ben", "ben", Membership.LEAVE),
        "is put out": lambda: world.membership("ann", "ben", Membership.LEAVE),
        "is banned": lambda: world.membership("ann", "ben", Membership.BAN),
        "is revoked": lambda: world.act(
            "ben", REVOCATION, device.hex(), Revoked(revoke(person_key("ben"), device, 0))
        ),
    }[how]()
    assert operations(world) == [b"operation"]
    world.send("r0", "ann", event)
    assert operations(world) == []
    assert gone(world) == [(Kind.EXPIRED, Reason.RETENTION)]


def test_nobody_is_waited_for_past_a_time() -> None:
    world = world_of(config=replace(OPEN, group_lifetime=30 * DAY, max_lifetime=60.0))
    away = read_all(world, "ben")
    operate(world, "ann", b"old")
    world.now += DAY
    operate(world, "ann", b"new")
    world.now -= DAY
    start = world.now
    world.fire("r0", ExpiryDue)
    assert 30 * DAY < world.now - start < 30 * DAY + 1
    assert operations(world) == [b"new"]
    assert gone(world) == [(Kind.EXPIRED, Reason.RETENTION)]
    assert lost(world) == [(card_of("ben").device, Reason.RETENTION)]
    assert world.resync("r0", "ben", away).reason is Reason.CURSOR_EXPIRED
    world.fire("r0", ExpiryDue)
    assert operations(world) == []
    assert len(lost(world)) == 1  # said once, until it has read again
    assert ExpiryDue(world.room) not in world.station("r0").timers


def test_nobody_is_waited_for_with_more_than_the_newest() -> None:
    world = world_of(config=replace(OPEN, group_pending=3))
    away = read_all(world, "ben")
    for number in range(3):
        operate(world, "ann", b"%d" % number)
        operate(world, "ben", b"its own do not count")
        read_all(world, "ann")
    assert (lost(world), gone(world)) == ([], [])
    operate(world, "ann", b"3")
    assert [body for body in operations(world) if body.isdigit()] == [b"1", b"2", b"3"]
    assert lost(world) == [(card_of("ben").device, Reason.TOO_MANY)]
    operate(world, "ann", b"4")
    assert len(lost(world)) == 1
    assert world.resync("r0", "ben", away).reason is Reason.CURSOR_EXPIRED
    assert [body for body in bodies(world.resync("r0", "ben")) if body.isdigit()] == [b"2", b"3", b"4"]
    read_all(world, "ben")
    for number in range(4):
        operate(world, "ann", b"%d" % number)
    assert len(lost(world)) == 2  # it had caught up, and is away again


def test_past_its_bytes_the_oldest_go_and_one_author_has_half_at_most() -> None:
    world = World("r0")
    size = len(encode_unit(world.unit(operation(world, "ann", b"0"))))
    world = world_of(config=replace(OPEN, group_bytes=4 * size + 20))
    for number in range(2):
        operate(world, "ann", b"%d" % number)
        operate(world, "ben", b"%d" % number)
    (outcome,) = world.send("r0", "ann", operation(world, "ann", b"3"))
    assert (outcome.cursor, outcome.reason) == (None, Reason.QUOTA)
    assert world.station("r0").noted(Kind.REJECTED, GROUP)[-1].reason is Reason.QUOTA
    assert gone(world) == [(Kind.REJECTED, Reason.QUOTA)]
    let_in(world, "cyd")
    operate(world, "cyd", b"5")
    assert operations(world) == [b"0", b"1", b"1", b"5"]
    assert gone(world)[-1] == (Kind.EVICTED, Reason.QUOTA)
    assert lost(world) == [(card_of("ben").device, Reason.QUOTA)]


def test_one_that_is_larger_than_all_there_is_is_refused() -> None:
    world = world_of(config=replace(OPEN, group_bytes=2000))
    (outcome,) = world.send("r0", "ann", operation(world, "ann", bytes(1000)))
    assert (outcome.cursor, outcome.reason) == (None, Reason.QUOTA)
    world = world_of(config=replace(OPEN, total_bytes=1000))
    (outcome,) = world.send("r0", "ann", operation(world, "ann", bytes(1000)))
    assert (outcome.cursor, outcome.reason) == (None, Reason.QUOTA)


def test_a_relay_that_is_full_lets_messages_go_before_keys() -> None:
    world = World("r0")
    size = len(encode_unit(world.unit(operation(world, "ann", b"000"))))
    world = world_of(config=replace(OPEN, total_bytes=3 * size + 100))
    world.send("r0", "ann", world.say("ann", b"message"))
    operate(world, "ann", b"0")
    operate(world, "ben", b"1")
    assert world.said(world.resync("r0", "ben")) == [b"message"]
    operate(world, "ann", b"2")
    assert (world.said(world.resync("r0", "ben")), operations(world)) == ([], [b"0", b"1", b"2"])
    assert [each.reason for each in world.station("r0").noted(Kind.EVICTED, "message")] == [Reason.QUOTA]
    operate(world, "ben", b"3")
    assert operations(world) == [b"1", b"2", b"3"]
    (outcome,) = world.send("r0", "ann", world.say("ann", b"message"))
    assert (outcome.cursor, outcome.reason) == (None, Reason.QUOTA)


def test_messages_do_not_put_them_out() -> None:
    world = World("r0")
    size = len(encode_unit(world.unit(world.say("ann", b"000"))))
    world = world_of(config=replace(OPEN, room_bytes=2 * size))
    operate(world, "ann")
    for number in range(9):
        world.send("r0", "ann", world.say("ann", b"%03d" % number))
    assert world.said(world.resync("r0", "ben")) == [b"007", b"008"]
    assert operations(world) == [b"operation"]


def test_too_many_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is of no member goes first."""
    monkeypatch.setattr(event_index, "DEVICES", 2)
    world = world_of()
    for name in ("cyd", "dan"):
        let_in(world, name)
    world.send("r0", "ann", world.membership("ann", "ben", Membership.LEAVE))
    operate(world, "cyd")
    assert lost(world) == [(card_of("ben").device, Reason.TOO_MANY)]
    operate(world, "dan")
    assert len(lost(world)) == 2


def test_it_is_the_same_after_a_restart() -> None:
    world = world_of(config=replace(OPEN, group_pending=3))
    for number in range(4):
        operate(world, "ann", b"%d" % number)
    page = world.resync("r0", "ben")
    world.restart("r0")
    world.link("r0", "ann", "ben")
    assert operations(world) == [b"1", b"2", b"3"]
    (room,) = world.station("r0").relay.examine().rooms
    assert (room.group_events, room.kept_events) == (3, 3)
    assert room.group_bytes == room.kept_bytes > 0
    assert [each.key_devices for each in room.people if each.person == card_of("ben").person] == [1]
    assert world.station("r0").timers[ExpiryDue(world.room)] > 29 * DAY
    world.resync("r0", "ben", page.next)
    assert operations(world) == []


def test_nothing_is_left_of_a_room_that_is_left() -> None:
    world = world_of()
    operate(world, "ann")
    world.name_relay("r0", active=False)
    world.send("r0", "ann", world.chronicle.units[world.control[0]].events[0])
    while SweepDue(world.room) in world.station("r0").timers:
        world.fire("r0", SweepDue)
    cells = world.station("r0").store.cells
    for space in ("relay.group_at", "relay.group_share", "relay.group_read", "relay.at"):
        assert list(cells.scan(f"{space}/{world.room.hex()}")) == []
    assert (Kind.EVICTED, Reason.NOT_A_RELAY) in gone(world)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["says", "reads", "old"]), st.booleans()), max_size=30))
def test_who_reads_on_misses_none_that_was_not_reported_lost(steps: list[tuple[str, bool]]) -> None:
    """Whatever happens, each gets every operation of the other, or its cursor ends and a record says so."""
    world = world_of(config=replace(OPEN, group_pending=4, group_lifetime=DAY))
    names = ("ann", "ben")
    cursors: dict[str, RelayCursor | None] = {who: read_all(world, who) for who in names}
    due: dict[str, list[bytes]] = {who: [] for who in names}
    for number, (what, flag) in enumerate(steps):
        who, other = names if flag else reversed(names)
        if what == "says":
            operate(world, who, b"%d" % number)
            due[other].append(b"%d" % number)
        elif what == "old":
            world.now += DAY / 2
            world.fire("r0", ExpiryDue)
        elif what == "reads":
            page = world.resync("r0", who, cursors[who])
            if page.reason is Reason.CURSOR_EXPIRED:
                page = world.resync("r0", who)
                missed = [body for body in due[who] if body not in bodies(page)]
                assert missed == due[who][: len(missed)]
                assert not missed or card_of(who).device in [device for device, _ in lost(world)]
                due[who] = due[who][len(missed) :]
            assert [body for body in bodies(page) if body in due[who]] == due[who]
            cursors[who], due[who] = page.next, []


def test_what_all_have_read_is_kept_for_a_while_since_they_may_crash() -> None:
    world = World("r0", config=scenes.OPEN)
    began = world.now
    for who in ("ann", "ben"):
        world.link("r0", who)
        operate(world, who, who.encode())
    for who in ("ann", "ben"):
        read_all(world, who)
    assert operations(world) == [b"ann", b"ben"]
    assert world.station("r0").timers[ExpiryDue(world.room)] > scenes.OPEN.group_least
    world.now = began + scenes.OPEN.group_least - 60.0
    operate(world, "ann", b"later")
    assert operations(world) == [b"ann", b"ben", b"later"]
    world.now += 120.0
    operate(world, "ann", b"last")
    assert operations(world) == [b"later", b"last"]


def test_nothing_is_let_go_while_damaged_control_events_hide_who_waits_for_it() -> None:
    world = World(config=OPEN)
    world.name_relay("r0")
    store = DamageableStore()
    world.add(Station("r0", OPEN, store=store))
    world.admit("r0")
    for who in ("ann", "ben"):
        world.link("r0", who)
        operate(world, who, b"keys of " + who.encode())
    read_all(world, "ann")
    cursor = read_all(world, "ben")
    operate(world, "ann", b"for ben")
    read_all(world, "ann")
    (join,) = [each for each in world.chronicle.events if each.author == person("ben").author][:1]
    assert isinstance(store.log, DamageableLog)
    store.log.spoil(join.id)
    world.restart("r0")
    assert operations(world) == [b"for ben"]
    world.link("r0", "ann")
    world.show_control("r0", "ann")
    assert operations(world) == [b"for ben"]
    world.link("r0", "ben")
    assert bodies(world.resync("r0", "ben", cursor)) == [b"for ben"]
    read_all(world, "ben", cursor)
    assert operations(world) == [], "it is known again who has what"
