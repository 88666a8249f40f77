"""Pages, cursors, tombstones, receipts, single events, the control DAG."""

from __future__ import annotations

from msgspec.structs import replace
from tests.rooms.relay.scenes import OPEN, World, card_of, peer_of

from linnet.core.ids import Contact, EventId
from linnet.core.reasons import Reason
from linnet.delivery.causal_messages import Given
from linnet.event.signing import recall_unit
from linnet.rooms.commands import AskRelay
from linnet.rooms.config import RoomsConfig
from linnet.rooms.content import Membership
from linnet.rooms.messages import AskControl, ControlPage, RelayCursor, Resync, ResyncPage, Tombstone
from linnet.rooms.receipt import sign_room_receipt
from linnet.testing.rooms import person
from linnet.trace.records import Kind, Record


def linked(world: World) -> World:
    for who in ("ann", "ben"):
        world.link("r0", who)
    return world


def test_a_whole_page() -> None:
    world = linked(World("r0"))
    before = world.resync("r0", "ben").next
    hello = world.say("ann")
    world.send("r0", "ann", hello)
    page = world.resync("r0", "ben", before)
    station = world.station("r0")
    epoch, end = station.relay.epoch, station.store.log.end()
    assert page == ResyncPage(
        world.room,
        page.request,
        (world.unit(hello),),
        (card_of("ann"),),
        (),
        (),
        RelayCursor(epoch, end),
        False,
        RelayCursor(epoch, 0),
        world.control,
        None,
    )


def test_pages_end_at_so_many_bytes() -> None:
    world = linked(World("r0", rooms=RoomsConfig(page_bytes=1500)))
    before = world.resync("r0", "ben", limit=1024)
    while before.more:
        before = world.resync("r0", "ben", before.next)
    world.send("r0", "ann", *(world.say("ann", b"." * 600) for _ in range(3)), world.say("ann", b"." * 5000))
    sizes, page = [], before
    for _ in range(3):
        page = world.resync("r0", "ben", page.next)
        sizes.append((len(page.units), page.more))
    assert sizes == [(1, True), (1, True), (1, True)]
    page = world.resync("r0", "ben", page.next)
    assert (len(page.units), page.more) == (1, False)  # one at least, however large


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
    world = World("r0", rooms=RoomsConfig(page_events=3))
    world.link("r0", "ann")
    world.link("r0", "ben")
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
    world = World("r0")
    for who in ("ann", "ben"):
        world.link("r0", who)
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


def test_only_who_is_being_asked_waits() -> None:
    world = World("r0")
    world.tell("r0", "eve", world.greet("eve"))
    assert world.resync("r0", "eve").reason is Reason.NOT_A_MEMBER
    world.tell("r0", "dan", world.greet("dan", control=(world.say("dan").id,)))
    world.unlink("r0", "dan")
    world.tell("r0", "dan", world.greet("dan", control=world.control))
    assert world.resync("r0", "dan").reason is Reason.NOT_A_MEMBER
