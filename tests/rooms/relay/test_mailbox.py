"""Pages that a relay gives, and what it pushes to those who follow."""

from __future__ import annotations

from msgspec.structs import replace
from tests.rooms.chronicle import person
from tests.rooms.relay.scenes import OPEN, World, card_of, peer_of

from linnet.core.ids import Contact, EventId
from linnet.core.reasons import Reason
from linnet.core.stores import Entry
from linnet.delivery.context import CardBook
from linnet.delivery.messages import Given
from linnet.event.signing import encode_unit, recall_unit
from linnet.rooms.commands import AskRelay
from linnet.rooms.config import RoomsConfig
from linnet.rooms.event_types import Membership
from linnet.rooms.messages import AskControl, ControlPage, RelayCursor, Resync, ResyncPage, Tombstone
from linnet.rooms.receipts import sign_room_receipt
from linnet.rooms.relay.event_cache import ExpiryDue, Placed
from linnet.rooms.relay.mailbox import Pages
from linnet.store.memory import MemoryStore
from linnet.trace.records import Kind, Record


def linked(world: World) -> World:
    world.link("r0", "ann", "ben")
    return world


def test_the_beginning_is_never_expired_and_control_events_are_always_there() -> None:
    world = linked(World("r0", config=replace(OPEN, max_lifetime=60.0)))
    first = world.send("r0", "ann", world.say("ann", b"old"))[0].cursor
    world.now += 100
    world.send("r0", "ann", world.say("ann", b"new"))
    page = world.resync("r0", "ben")
    assert page.units[: len(world.control_units())] == world.control_units()
    assert world.said(page) == [b"new"]
    assert first is not None
    assert world.resync("r0", "ben", first).reason is None  # it has seen the one that went
    early = replace(first, position=first.position - 1)
    expired = world.resync("r0", "ben", early)
    assert (expired.reason, expired.next, expired.units) == (Reason.CURSOR_EXPIRED, None, ())
    again = world.resync("r0", "ben", expired.oldest)
    assert (again.reason, world.said(again)) == (None, [b"new"])


def test_an_author_is_told_what_went_and_nobody_else() -> None:
    world = linked(World("r0", config=replace(OPEN, max_lifetime=60.0)))
    hello = world.say("ann")
    world.send("r0", "ann", hello)
    cursor = world.resync("r0", "ann").next
    world.now += 100
    page = world.resync("r0", "ann", cursor)
    stone = Tombstone(hello.id, Reason.RETENTION)
    assert (page.tombstones, page.reason) == ((stone,), None)
    assert world.resync("r0", "ann", page.next).tombstones == ()
    assert world.resync("r0", "ben", cursor).tombstones == ()
    # Over a new link it is told again, since the page may have been lost; not to who went on since.
    world.unlink("r0", "ann")
    world.link("r0", "ann")
    assert world.resync("r0", "ann", page.next).tombstones == (stone,)
    world.send("r0", "ann", world.say("ann"))
    later = world.resync("r0", "ann", page.next).next
    world.unlink("r0", "ann")
    world.link("r0", "ann")
    assert world.resync("r0", "ann", later).tombstones == ()


def test_many_tombstones_come_in_pages() -> None:
    world = linked(World("r0", config=replace(OPEN, max_lifetime=60.0, tombstones=3000)))
    for start in range(0, 1500, 500):
        world.send("r0", "ann", *(world.say("ann", b"%d" % n) for n in range(start, start + 500)))
    page = world.resync("r0", "ben")
    while page.more:
        page = world.resync("r0", "ben", page.next)
    cursor = page.next
    world.now += 100
    for _ in range(2):
        world.resync("r0", "ben", cursor)  # each look removes a bounded part
    page = world.resync("r0", "ann", cursor)
    assert (len(page.tombstones), page.more) == (1024, True)
    page = world.resync("r0", "ann", page.next)
    assert (len(page.tombstones), page.more) == (476, False)


def test_receipts_come_along_once() -> None:
    world = linked(World("r0"))
    receipt = sign_room_receipt(person("ben").device, card_of("ben"), world.room, 1, world.control)
    world.tell("r0", "ben", receipt)
    page = world.resync("r0", "ann")
    assert page.receipts == (receipt,)
    assert world.resync("r0", "ann", page.next).receipts == ()
    later = sign_room_receipt(person("ben").device, card_of("ben"), world.room, 2, world.control)
    world.tell("r0", "ben", later)
    assert world.resync("r0", "ann", page.next).receipts == (later,)


def test_single_events_control_events_too_and_what_is_not_held() -> None:
    world = linked(World("r0", config=replace(OPEN, max_lifetime=60.0)))
    old = world.say("ann", b"old")
    world.send("r0", "ann", old)
    world.now += 100
    hello = world.say("ann")
    world.send("r0", "ann", hello)
    create = world.chronicle.create
    unheard = replace(hello, id=EventId(b"u" * 32))
    given = world.want("r0", "ben", create, hello, old, unheard)
    units = (world.unit(create), world.unit(hello))
    assert given == Given(
        world.room, given.request, units, (card_of("ann"),), (old.id, unheard.id), Reason.RETENTION
    )
    assert world.want("r0", "ben", unheard).reason is Reason.NOT_HELD
    small = linked(World("r0", rooms=RoomsConfig(page_events=1)))
    given = small.want("r0", "ben", *small.chronicle.events[:3])
    assert (len(given.units), given.unknown, given.reason) == (1, (), Reason.TOO_LARGE)


def test_the_control_dag_in_pages() -> None:
    world = linked(World("r0", "r1", rooms=RoomsConfig(page_events=4)))
    heads: tuple[EventId, ...] = ()
    seen: list[EventId] = []
    more = True
    while more:
        (page,) = world.tell("r0", "ben", AskControl(world.room, 7, heads, None))
        assert isinstance(page, ControlPage)
        assert page.relays == (Contact(peer_of("r1"), ("tls://r1:1",)),)
        seen += [recall_unit(unit).head for unit in page.units]
        heads, more = (seen[-1],), page.more
    assert seen == [recall_unit(unit).head for unit in world.control_units()]


def test_whom_the_room_has_invited_sees_the_control_dag_alone() -> None:
    world = linked(World("r0"))
    world.send("r0", "ann", world.membership("ann", "cyd", Membership.INVITE), world.say("ann"))
    (page,) = world.tell("r0", "cyd", AskControl(world.room, 1, (), None, card_of("cyd")))
    assert isinstance(page, ControlPage)
    assert page.units == world.control_units()
    assert world.resync("r0", "cyd").reason is Reason.NOT_A_MEMBER


def test_a_cursor_past_the_end_is_one_of_before_a_backup() -> None:
    world = linked(World("r0"))
    end = world.resync("r0", "ann").next
    assert end is not None
    assert world.resync("r0", "ann", end).reason is None
    ahead = world.resync("r0", "ann", replace(end, position=end.position + 1))
    assert ahead.reason is Reason.CURSOR_EXPIRED


def test_who_asks_without_a_link_is_told_everything_with_each_page() -> None:
    world = linked(World("r0", config=replace(OPEN, max_lifetime=60.0)))
    hello = world.say("ann")
    world.send("r0", "ann", hello)
    cursor = world.resync("r0", "ann").next
    world.now += 100
    ann = person("ann")
    for request in (1, 2):
        ask = AskRelay(ann.peer, ann.author, Resync(world.room, request, cursor, 10, False))
        (page,) = world.station("r0").relay.ask(ask, world.now).messages
        assert isinstance(page, ResyncPage)
        assert page.tombstones == (Tombstone(hello.id, Reason.RETENTION),)
        assert not page.more


def test_who_reads_from_the_oldest_goes_on_over_pages_that_end_before_what_was_let_go() -> None:
    """With more control events than a page holds, its cursor is one that would have expired."""
    world = World("r0", rooms=RoomsConfig(page_events=3), met=("ann", "ben"))
    world.send("r0", "ann", world.keep_for(60_000))
    old = world.resync("r0", "ben").next
    world.send("r0", "ann", world.say("ann", b"old"))
    world.now += 61
    world.send("r0", "ann", world.say("ann", b"new"))
    world.resync("r0", "ann")
    page = world.resync("r0", "ben", old)
    assert page.reason is Reason.CURSOR_EXPIRED
    said, pages = [], 0
    page = world.resync("r0", "ben")
    while True:
        assert page.reason is None
        said += world.said(page)
        pages += 1
        if not page.more:
            break
        page = world.resync("r0", "ben", page.next)
    assert (said, pages > 2) == ([b"new"], True)
    assert world.resync("r0", "ben", old).reason is Reason.CURSOR_EXPIRED


def test_the_records_of_a_resync() -> None:
    world = World("r0", met=("ann", "ben"))
    before = world.resync("r0", "ben").next
    world.send("r0", "ann", world.say("ann"), world.say("ann"))
    station = world.station("r0")
    station.records.clear()
    world.resync("r0", "ben", before)
    ben = peer_of("ben")
    assert station.noted(Kind.RESYNC) == [
        Record(Kind.RESYNC, world.room, peer=ben, note="receive-resync"),
        Record(Kind.RESYNC, world.room, events=2, peer=ben, note="reply-resync"),
    ]
    station.records.clear()
    world.resync("r0", "ben", RelayCursor(b"another.", 1))
    assert station.noted(Kind.RESYNC)[-1] == Record(
        Kind.RESYNC, world.room, events=0, peer=ben, reason=Reason.CURSOR_EXPIRED, note="reject-resync"
    )


WORLD = World()


UNITS = [WORLD.chronicle.units[WORLD.say(who, b"." * 100).id] for who in ("ann", "ben", "ann", "ann")]


SIZE = len(encode_unit(UNITS[0].unit))


def pages(events: int = 100, size: int = 10**6) -> Pages:
    cards = CardBook(MemoryStore().cells)
    cards.learn(card_of("ann"))
    return Pages(cards, events, size)


def placed() -> list[Placed]:
    return [
        (
            10 + number,
            Entry(
                WORLD.room,
                unit.unit.author,
                unit.unit.device,
                unit.unit.seq,
                1,
                unit.head,
                0.0,
                encode_unit(unit.unit),
            ),
        )
        for number, unit in enumerate(UNITS)
    ]


def test_a_page_ends_by_number_limit_or_bytes_and_has_one_at_least() -> None:
    cases = {
        (100, 10**6, None): (4, True),
        (3, 10**6, None): (3, False),
        (3, 10**6, 2): (2, False),
        (100, 2 * SIZE + 5, None): (2, False),
        (100, 1, None): (1, False),
    }
    for (events, size, limit), (count, whole) in cases.items():
        page = pages(events, size).cut_page(placed(), limit)
        assert (len(page.units), page.whole, page.last) == (count, whole, 9 + count)
        assert page.ids == tuple(unit.head for unit in UNITS[:count])
        assert page.units == tuple(unit.unit for unit in UNITS[:count])


def test_an_empty_page() -> None:
    page = pages().cut_page([])
    assert (page.units, page.last, page.whole) == ((), 0, True)


def test_units_at_hand_are_cut_alike() -> None:
    at_hand = [(unit.head, unit.unit) for unit in UNITS]
    assert pages(3).cut_units(at_hand) == ([unit.unit for unit in UNITS[:3]], 3)
    assert pages(3, 1).cut_units(at_hand) == ([UNITS[0].unit], 1)


def test_a_relay_ends_its_pages_at_so_many_bytes() -> None:
    world = linked(World("r0", rooms=RoomsConfig(page_bytes=1500)))
    page = world.resync("r0", "ben", limit=1024)
    while page.more:
        page = world.resync("r0", "ben", page.next)
    world.send("r0", "ann", *(world.say("ann", b"." * 600) for _ in range(3)), world.say("ann", b"." * 5000))
    sizes = []
    for _ in range(4):
        page = world.resync("r0", "ben", page.next)
        sizes.append((len(page.units), page.more))
    assert sizes == [(1, True), (1, True), (1, True), (1, False)]  # one at least, however large


def test_each_card_that_is_known_comes_once() -> None:
    assert pages().cards_for(unit.unit for unit in UNITS) == (card_of("ann"),)


def following(world: World, *who: str) -> dict[str, ResyncPage]:
    pages = {}
    for each in who:
        world.link("r0", each)
        pages[each] = world.resync("r0", each, follow=True)
    return pages


def pushed(world: World, who: str, since: int) -> list[ResyncPage]:
    return [each for each in world.inbox[peer_of(who)][since:] if isinstance(each, ResyncPage)]


def test_a_follower_gets_what_comes_under_the_number_of_its_request() -> None:
    world = World("r0")
    first = following(world, "ann", "ben")["ben"]
    before = len(world.inbox[peer_of("ben")])
    hello = world.say("ann")
    world.send("r0", "ann", hello)
    (page,) = pushed(world, "ben", before)
    assert first.next is not None
    end = RelayCursor(first.next.epoch, world.station("r0").store.log.end())
    assert page == replace(
        first, units=(world.unit(hello),), cards=(card_of("ann"),), next=end, after=first.next
    )
    # The cursor of the page goes on where it ends.
    assert world.resync("r0", "ben", page.next).units == ()


def test_who_brought_it_is_told_only_how_far_it_is() -> None:
    world = World("r0")
    first = following(world, "ann")["ann"]
    before = len(world.inbox[peer_of("ann")])
    world.send("r0", "ann", world.say("ann"))
    (page,) = pushed(world, "ann", before)
    assert (page.units, page.after) == ((), first.next)
    assert world.said(world.resync("r0", "ann", page.next)) == []


def test_following_begins_when_all_before_was_read() -> None:
    world = World("r0", met=("ann",))
    page = world.resync("r0", "ann", limit=2, follow=True)
    assert page.more
    before = len(world.inbox[peer_of("ann")])
    world.link("r0", "ben")
    world.send("r0", "ben", world.say("ben"))
    assert pushed(world, "ann", before) == []
    while page.more:
        page = world.resync("r0", "ann", page.next, limit=100, follow=True)
    before = len(world.inbox[peer_of("ann")])
    world.send("r0", "ben", world.say("ben"))
    assert len(pushed(world, "ann", before)) == 1


def test_it_ends_with_the_link_or_when_it_is_not_asked_for() -> None:
    world = World("r0")
    following(world, "ann", "ben")
    world.unlink("r0", "ben")
    world.resync("r0", "ann")
    before = {who: len(world.inbox[peer_of(who)]) for who in ("ann", "ben")}
    world.link("r0", "cyd")
    world.send("r0", "ann", world.say("ann"))
    assert [pushed(world, who, before[who]) for who in before] == [[], []]


def test_a_ban_ends_it_at_once() -> None:
    world = World("r0")
    first = following(world, "ann", "ben")["ben"]
    before = len(world.inbox[peer_of("ben")])
    world.send("r0", "ann", world.membership("ann", "ben", Membership.BAN), world.say("ann", b"secret"))
    world.send("r0", "ann", world.say("ann", b"more"))
    (page,) = pushed(world, "ben", before)
    assert (page.request, page.reason, page.units) == (first.request, Reason.BANNED, ())


def test_receipts_and_tombstones_come_too() -> None:
    world = World("r0", config=replace(OPEN, max_lifetime=60.0))
    following(world, "ann", "ben")
    hello = world.say("ann")
    world.send("r0", "ann", hello)
    before = len(world.inbox[peer_of("ann")])
    receipt = sign_room_receipt(person("ben").device, card_of("ben"), world.room, 1, (hello.id,))
    world.tell("r0", "ben", receipt)
    (page,) = pushed(world, "ann", before)
    assert (page.receipts, page.units) == ((receipt,), ())
    before = len(world.inbox[peer_of("ann")])
    world.fire("r0", ExpiryDue)
    (page,) = pushed(world, "ann", before)
    assert [(each.event, each.reason) for each in page.tombstones] == [(hello.id, Reason.RETENTION)]


def test_much_at_once_comes_in_pages_without_a_gap() -> None:
    world = World("r0", rooms=RoomsConfig(page_events=2), met=("ann", "ben"))
    page = world.resync("r0", "ben", follow=True)
    while page.more:
        page = world.resync("r0", "ben", page.next, follow=True)
    before = len(world.inbox[peer_of("ben")])
    world.send("r0", "ann", *(world.say("ann", b"%d" % number) for number in range(5)))
    pages = pushed(world, "ben", before)
    assert [world.said(each) for each in pages] == [[b"0", b"1"], [b"2", b"3"], [b"4"]]
    assert [each.after for each in pages] == [page.next, pages[0].next, pages[1].next]
