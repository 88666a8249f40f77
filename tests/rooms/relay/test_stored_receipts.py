"""The receipts that a relay keeps."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.rooms.chronicle import person
from tests.rooms.relay.scenes import OPEN, Station, World, card_of, peer_of

from linnet.core.errors import RemoteError
from linnet.core.reasons import Reason
from linnet.rooms.event_types import Membership
from linnet.rooms.messages import RoomReceipt
from linnet.rooms.receipts import StoredReceipts, sign_room_receipt
from linnet.trace.records import Kind

WORLD = World()


def receipt(who: str, at_ms: int = 1, world: World = WORLD) -> RoomReceipt:
    return sign_room_receipt(person(who).device, card_of(who), world.room, at_ms, world.control)


def kept(station: Station, most: int = 10) -> StoredReceipts:
    return StoredReceipts(WORLD.room, station.context, most)


def test_the_latest_of_each_device_over_a_restart() -> None:
    station = Station("r0")
    receipts = kept(station)
    assert [receipts.learn(each) for each in (receipt("ann", 2), receipt("ann", 1), receipt("ben"))] == [
        True,
        False,
        True,
    ]
    again = kept(station)
    assert again.page(0) == ((receipt("ann", 2), receipt("ben")), 2) or again.page(0) == (
        (receipt("ben"), receipt("ann", 2)),
        2,
    )
    assert (again.count_of(person("ann").author), again.count_of(person("eve").author)) == (1, 0)


def test_a_page_goes_on_where_the_last_ended() -> None:
    receipts = kept(Station("r0"))
    receipts.learn(receipt("ann"))
    page, after = receipts.page(0)
    assert (page, receipts.page(after)) == ((receipt("ann"),), ((), after))
    receipts.learn(receipt("ben"))
    receipts.learn(receipt("ann", 5))
    assert receipts.page(after)[0] == (receipt("ben"), receipt("ann", 5))


def test_there_are_so_many_and_false_ones_are_none() -> None:
    receipts = kept(Station("r0"), 1)
    receipts.learn(receipt("ann"))
    with pytest.raises(RemoteError) as error:
        receipts.learn(receipt("ben"))
    assert error.value.reason is Reason.TOO_MANY
    assert receipts.learn(receipt("ann", 9))
    with pytest.raises(RemoteError) as error:
        receipts.learn(replace(receipt("ann", 10), sig=bytes(64)))
    assert error.value.reason is Reason.BAD_SIGNATURE


def test_a_relay_keeps_as_many_as_its_configuration_says() -> None:
    world = World("r0", config=replace(OPEN, receipts=1), met=("ann", "ben"))
    for who in ("ann", "ben"):
        world.tell("r0", who, receipt(who, world=world))
    (refused,) = world.station("r0").noted(Kind.REJECTED, "receipt")
    assert (refused.peer, refused.reason) == (peer_of("ben"), Reason.TOO_MANY)


def test_receipts_of_those_who_left_are_forgotten() -> None:
    station = Station("r0")
    receipts = kept(station, 1)
    receipts.learn(receipt("ann"))
    receipts.retain(frozenset({person("ben").author}))
    assert receipts.page(0)[0] == kept(station).page(0)[0] == ()
    assert receipts.learn(receipt("ben"))


def test_only_members_give_and_bring_them_and_other_relays_get_them_once() -> None:
    world = World("r0", "r1", met=("ann", "ben"))
    world.tell("r0", "ann", receipt("ben", world=world))  # passed on by another member
    world.tell("r0", "eve", world.greet("eve"))
    world.tell("r0", "eve", receipt("ann", world=world))
    world.tell("r0", "ann", receipt("eve", world=world))
    refused = world.station("r0").noted(Kind.REJECTED, "receipt")
    assert [(each.peer, each.reason) for each in refused] == [
        (peer_of("eve"), Reason.NOT_A_MEMBER),
        (peer_of("ann"), Reason.NOT_A_MEMBER),
    ]
    for name in ("r0", "r1"):
        world.link(name, "ann")
        assert world.resync(name, "ann").receipts == (receipt("ben", world=world),)
    world.send("r0", "ann", world.membership("ann", "ben", Membership.BAN))
    for name in ("r0", "r1"):
        world.unlink(name, "ann")
        world.link(name, "ann")
        assert world.resync(name, "ann").receipts == ()
