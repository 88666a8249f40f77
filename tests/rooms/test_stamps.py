"""Stamps: what an open relay asks for a new room, and that one cannot be used twice."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.rooms.circle import Circle
from tests.rooms.relay.scenes import OPEN, Station, World, card_of, peer_of

from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.rooms.commands import AddRelay, ExaminePrice, RelayPrice, Sent
from linnet.rooms.config import RelayConfig, RelayPolicy, RoomsConfig
from linnet.rooms.messages import RelayAnswer, RelayAsk
from linnet.rooms.stamps import WINDOW, Stamp, StampPrice, find_stamp, is_paid, window_at

RELAY, DEVICE, ROOM = PeerId(b"r" * 32), PeerId(b"d" * 32), TopicId(b"o" * 32)
BITS, NOW = 8, 10_000 * WINDOW + 5.0
PRICE = StampPrice(BITS, window_at(NOW))


def test_a_stamp_counts_for_one_relay_room_device_and_for_two_windows() -> None:
    stamp = find_stamp(PRICE, RELAY, ROOM, DEVICE)
    assert stamp is not None
    assert is_paid(stamp, BITS, RELAY, ROOM, DEVICE, NOW)
    assert is_paid(stamp, BITS, RELAY, ROOM, DEVICE, NOW + WINDOW)
    assert not is_paid(stamp, BITS, RELAY, ROOM, DEVICE, NOW + 2 * WINDOW)
    assert not is_paid(stamp, BITS, RELAY, ROOM, DEVICE, NOW - WINDOW)
    assert not is_paid(None, BITS, RELAY, ROOM, DEVICE, NOW)
    assert is_paid(None, 0, RELAY, ROOM, DEVICE, NOW)


@pytest.mark.parametrize("other", ["relay", "room", "device", "window"])
def test_a_stamp_of_something_else_is_worth_nothing(other: str) -> None:
    # A stamp of 16 bits fits by chance once in 65,536 times.
    stamp = find_stamp(StampPrice(16, window_at(NOW)), RELAY, ROOM, DEVICE)
    assert stamp is not None
    assert is_paid(stamp, 16, RELAY, ROOM, DEVICE, NOW)
    relay = DEVICE if other == "relay" else RELAY
    room = TopicId(b"x" * 32) if other == "room" else ROOM
    device = RELAY if other == "device" else DEVICE
    if other == "window":
        stamp = Stamp(stamp.window - 1, stamp.nonce)
    assert not is_paid(stamp, 16, relay, room, device, NOW)


def test_the_work_can_be_stopped() -> None:
    tried: list[int] = []

    def goes_on(number: int) -> bool:
        tried.append(number)
        return len(tried) < 2

    assert find_stamp(StampPrice(64, 1), RELAY, ROOM, DEVICE, goes_on) is None
    assert len(tried) == 2


def asked(world: World, who: str, stamp: Stamp | None = None, number: int = 7) -> RelayAnswer:
    """The answer of r0 to the question to serve another room."""
    room = TopicId(bytes([number]) * 32)
    answers = world.tell("r0", who, RelayAsk(room, 1, (Contact(peer_of(who)),), card_of(who), stamp))
    (answer,) = [each for each in answers if isinstance(each, RelayAnswer)]
    return answer


def priced(**changed: object) -> World:
    world = World()
    world.add(Station("r0", replace(OPEN, stamp_bits=BITS, **changed)))
    return world


def test_an_open_relay_names_its_price_to_strangers_and_serves_who_pays_it() -> None:
    world = priced()
    first = asked(world, "ann")
    price = StampPrice(BITS, window_at(world.now))
    assert (first.reason, first.price, first.card) == (Reason.NOT_ALLOWED, price, None)
    stamp = find_stamp(price, peer_of("r0"), first.room, peer_of("ann"))
    assert asked(world, "ben", stamp).price == price  # It is ann's.
    assert asked(world, "ann", stamp, number=8).price == price  # It is for the other room.
    paid = asked(world, "ann", stamp)
    assert (paid.reason, paid.price, paid.card) == (None, None, card_of("r0"))


def test_who_is_allowed_by_name_pays_nothing_and_a_closed_relay_takes_no_stamps() -> None:
    world = priced(allow=(card_of("ann").person,))
    assert asked(world, "ann").reason is None
    assert asked(world, "ben", number=8).price is not None
    closed = priced(policy=RelayPolicy.ALLOW, allow=(card_of("ann").person,))
    assert asked(closed, "ann").reason is None
    refused = asked(closed, "ben", number=8)
    assert (refused.reason, refused.price) == (Reason.NOT_ALLOWED, None)


def circle(asks: int, pays: int = 24) -> Circle:
    relay = RelayConfig(policy=RelayPolicy.OPEN, stamp_bits=asks)
    made = Circle("ann", "r0", relay=relay, config=RoomsConfig(stamp_bits=pays))
    made.found("ann")
    return made


def test_a_member_learns_the_price_pays_it_and_the_relay_serves_the_room() -> None:
    made = circle(BITS)
    contact = made.contact("r0")
    declined = made.declined("ann", AddRelay(made.room, contact))
    assert declined.reason is Reason.UNPAID
    assert f"{BITS} bits" in declined.detail
    asks = made.get("ann", ExaminePrice(made.room, contact.peer), RelayPrice)
    assert (asks.price.bits, asks.device, asks.most) == (BITS, made.peer("ann"), 24)
    stamp = find_stamp(asks.price, contact.peer, made.room, asks.device)
    made.get("ann", AddRelay(made.room, contact, stamp=stamp), Sent)
    made.run(5.0)
    assert [relay.up for relay in made.status("ann").relays] == [True]


def test_a_relay_that_asks_more_than_we_pay_is_refused_with_its_price() -> None:
    made = circle(30, pays=20)
    declined = made.declined("ann", AddRelay(made.room, made.contact("r0")))
    assert declined.reason is Reason.TOO_EXPENSIVE
    assert "30 bits, about 1,074 s of one core; this node makes stamps of 20 bits" in declined.detail


def test_without_a_question_there_is_no_price() -> None:
    made = circle(BITS)
    assert made.declined("ann", ExaminePrice(made.room, made.peer("r0"))).reason is Reason.UNKNOWN
