"""Members who are told what comes, as it comes."""

from __future__ import annotations

from msgspec.structs import replace
from tests.rooms.relay.scenes import OPEN, World, card_of, peer_of

from linnet.core.reasons import Reason
from linnet.rooms.config import RoomsConfig
from linnet.rooms.content import Membership
from linnet.rooms.messages import RelayCursor, ResyncPage
from linnet.rooms.receipt import sign_room_receipt
from linnet.rooms.relay.retention import ExpiryDue
from linnet.testing.rooms import person


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
    world = World("r0")
    world.link("r0", "ann")
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
    world = World("r0", rooms=RoomsConfig(page_events=2))
    world.link("r0", "ann")
    world.link("r0", "ben")
    page = world.resync("r0", "ben", follow=True)
    while page.more:
        page = world.resync("r0", "ben", page.next, follow=True)
    before = len(world.inbox[peer_of("ben")])
    world.send("r0", "ann", *(world.say("ann", b"%d" % number) for number in range(5)))
    pages = pushed(world, "ben", before)
    assert [world.said(each) for each in pages] == [[b"0", b"1"], [b"2", b"3"], [b"4"]]
    assert [each.after for each in pages] == [page.next, pages[0].next, pages[1].next]
