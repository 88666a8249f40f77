"""Receipts of a room: signed, the latest of each device counts, and our own are given when they are due."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.driven import Driven

from linnet.core.effects import AfterCommit, Blame, CancelTimer, Send, SetTimer
from linnet.core.errors import RemoteError
from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.context import Context
from linnet.event.event import Event, Tail
from linnet.event.signing import verify_unit
from linnet.identity.cards import issue_card, revoke
from linnet.identity.keys import SigningKey
from linnet.rooms import receipts as receipts_module
from linnet.rooms.config import RoomsConfig
from linnet.rooms.messages import RoomReceipt
from linnet.rooms.receipts import HEADS, ReceiptDue, Receipts, check_room_receipt, sign_room_receipt
from linnet.sim.clock import START
from linnet.sim.seeded_random import SeededEntropy
from linnet.store.memory import MemoryStore
from linnet.testing.identities import known_identity
from linnet.trace.records import Kind, Record

ROOM = TopicId(b"r" * 32)
A, B, C, D = (EventId(letter * 32) for letter in (b"A", b"B", b"C", b"D"))
ANN, BEN, CID = known_identity("ann"), known_identity("ben"), known_identity("cid")
N1, N2 = PeerId(b"1" * 32), PeerId(b"2" * 32)
TICK = ReceiptDue(ROOM)
CONFIG = RoomsConfig(receipt_delay=0.25)


def bens(*heads: EventId, at: float = START, off: bool = False) -> RoomReceipt:
    return sign_room_receipt(BEN.device, BEN.card, ROOM, int(at * 1000), heads, off)


class Device:
    """Ann's device, which can be restarted with another configuration."""

    def __init__(self, config: RoomsConfig = CONFIG) -> None:
        self.store = MemoryStore()
        self.restart(config)

    def restart(self, config: RoomsConfig = CONFIG) -> None:
        self.context = Context(
            ANN.device, ANN.card, self.store, DeliveryConfig(), random.Random(1), verify_unit
        )
        self.receipts = Driven(lambda out: Receipts(ROOM, self.context, config, out))

    def given(self, now: float = START) -> RoomReceipt | None:
        """Our receipt, if one is due now."""
        effects = self.receipts.give_receipt((N1, N2), now)
        if not effects:
            return None
        (after,) = effects
        assert isinstance(after, AfterCommit)
        receipt: RoomReceipt = after.effects[0].message
        assert after == AfterCommit((Send(N1, receipt), Send(N2, receipt)))
        check_room_receipt(receipt)
        return receipt


def hear(receipts: Driven, *told: Any, member: bool) -> tuple[bool, list[Any]]:  # noqa: ANN401
    """Whether a receipt that a peer tells is news, and what comes of it."""
    news = receipts.handle_receipt(*told, member=member)
    return news, receipts.out.take()


def ours(own: EventId, deps: Sequence[EventId], concurrent: Sequence[EventId] = ()) -> Event:
    tail = Tail(tuple(deps), tuple(concurrent) or None, 1, None, "message", None, 0, None, b"")
    return Event(own, ROOM, ANN.author, ANN.card.device, 1, A, tail)


def test_a_false_one_is_refused_and_blamed_on_whoever_told_it() -> None:
    device = Device()
    forged = msgspec.structs.replace(bens(A), heads=(A, B))
    rejected = Record(Kind.REJECTED, ROOM, peer=N1, reason=Reason.BAD_SIGNATURE, note="receipt")
    blame = Blame(N1, Reason.BAD_SIGNATURE)
    assert hear(device.receipts, N1, forged, (N1, N2), member=True) == (False, [rejected, blame])
    assert device.receipts.all() == ()


def test_one_of_somebody_who_is_not_in_the_room_takes_no_place() -> None:
    receipts = Device().receipts
    rejected = Record(Kind.REJECTED, ROOM, peer=N1, reason=Reason.NOT_A_MEMBER, note="receipt")
    assert hear(receipts, N1, bens(A), (N1, N2), member=False) == (False, [rejected])
    assert receipts.all() == ()


def test_the_latest_of_a_device_counts() -> None:
    receipts = Device().receipts
    assert receipts.learn(bens(A))
    assert not receipts.learn(bens(A))
    assert receipts.learn(bens(B, at=START + 1))
    assert not receipts.learn(bens(C, at=START + 0.5))
    assert receipts.all() == (bens(B, at=START + 1),)
    assert (receipts.naming(A), receipts.naming(B)) == ((), (bens(B, at=START + 1),))


@given(st.permutations([bens(A), bens(B), bens(C, at=START + 1), bens(at=START + 1, off=True)]))
def test_what_is_known_in_the_end_is_no_matter_of_order(order: list[RoomReceipt]) -> None:
    receipts = Device().receipts
    for receipt in order:
        receipts.learn(receipt)
    expected = max(order, key=lambda receipt: (receipt.at_ms, msgspec.msgpack.encode(receipt)))
    assert receipts.all() == (expected,)
    assert [head for head in (A, B, C) if receipts.naming(head)] == list(expected.heads)


def test_they_outlive_a_restart() -> None:
    device = Device()
    device.receipts.learn(bens(A))
    device.restart()
    assert device.receipts.all() == (bens(A),)
    assert device.receipts.naming(A) == (bens(A),)
    assert not device.receipts.learn(bens(A))


def test_news_go_to_all_neighbours_but_where_they_come_from() -> None:
    receipts = Device().receipts
    bens_device = PeerId(BEN.device.public)
    assert hear(receipts, N1, bens(A), (N1, N2, bens_device), member=True) == (True, [Send(N2, bens(A))])
    assert hear(receipts, N2, bens(A), (N1, N2), member=True) == (False, [])


def test_one_device_too_many_is_refused_with_a_record_and_blames_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(receipts_module, "DEVICES", 1)
    receipts = Device().receipts
    assert receipts.learn(bens(A))
    assert receipts.learn(bens(B, at=START + 1))
    cids = sign_room_receipt(CID.device, CID.card, ROOM, 7, (A,))
    refused = Record(Kind.REJECTED, ROOM, peer=N1, reason=Reason.TOO_MANY, note="receipt")
    assert hear(receipts, N1, cids, (N1, N2), member=True) == (False, [refused])
    receipts.forget(BEN.author)
    assert hear(receipts, N1, cids, (N1, N2), member=True) == (True, [Send(N2, cids)])


def test_who_left_is_forgotten_for_good() -> None:
    device = Device()
    device.receipts.learn(bens(A))
    device.receipts.forget(BEN.author)
    assert device.receipts.naming(A) == ()
    device.restart()
    assert device.receipts.all() == ()


def test_one_of_another_room_or_of_a_revoked_device_is_refused() -> None:
    device = Device()
    elsewhere = sign_room_receipt(BEN.device, BEN.card, TopicId(b"s" * 32), 7, (A,))
    with pytest.raises(RemoteError) as error:
        device.receipts.learn(elsewhere)
    assert error.value.reason is Reason.MALFORMED
    person, phone = SigningKey(b"p" * 32), SigningKey(b"d" * 32)
    card = issue_card(person, phone.public, 0, int(START) + 1)
    device.context.cards.revoke(revoke(person, card.device, int(START)))
    with pytest.raises(RemoteError) as error:
        device.receipts.learn(sign_room_receipt(phone, card, ROOM, 7, (A,)))
    assert error.value.reason is Reason.CARD_REVOKED


# Our own.


def test_changed_heads_are_told_after_a_while_and_once() -> None:
    device = Device()
    assert device.receipts.note_heads((A,)) == [SetTimer(0.25, TICK)]
    assert device.receipts.note_heads((A, B)) == []
    receipt = device.given()
    assert receipt is not None
    assert (receipt.heads, receipt.off, receipt.card) == ((A, B), False, ANN.card)
    assert device.receipts.note_heads((A, B)) == []
    assert device.receipts.all() == (receipt,)
    assert device.receipts.note_heads((C,)) == [SetTimer(0.25, TICK)]


def test_an_event_of_ours_that_says_it_makes_a_receipt_needless() -> None:
    device = Device()
    device.receipts.note_heads((A, B))
    assert device.receipts.note_own_event(ours(C, (A,), (B,))) == [CancelTimer(TICK)]
    assert device.receipts.note_heads((C,)) == []
    assert device.receipts.note_heads((C, D)) == [SetTimer(0.25, TICK)]


def test_an_event_of_ours_that_says_less_does_not() -> None:
    device = Device()
    device.receipts.note_heads((A, B))
    assert device.receipts.note_own_event(ours(C, (A,))) == []
    assert device.receipts.note_heads((B, C)) == []
    receipt = device.given()
    assert receipt is not None
    assert receipt.heads == (B, C)


def test_a_timer_that_crossed_an_event_of_ours_gives_nothing() -> None:
    device = Device()
    device.receipts.note_heads((A,))
    device.receipts.note_own_event(ours(C, (A,)))
    assert device.given() is None
    assert device.receipts.all() == ()
    assert device.receipts.stop() == []


def test_a_receipt_without_neighbours_is_kept_for_the_first_of_them() -> None:
    device = Device()
    device.receipts.note_heads((A,))
    assert device.receipts.give_receipt((), START) == [AfterCommit(())]
    for _ in range(2):
        assert [receipt.heads for receipt in device.receipts.all()] == [(A,)]
        device.restart()


def test_stopping_cancels_what_was_due() -> None:
    device = Device()
    device.receipts.note_heads((A,))
    assert device.receipts.stop() == [CancelTimer(TICK)]


def test_what_was_told_is_not_told_again_after_a_restart() -> None:
    device = Device()
    device.receipts.note_heads((A,))
    device.given()
    device.restart()
    assert device.receipts.note_heads((A,)) == []
    assert device.receipts.note_heads((A, B)) == [SetTimer(0.25, TICK)]


def test_ours_are_ever_later_whatever_the_clock_does() -> None:
    device = Device()
    device.receipts.note_heads((A,))
    first = device.given(START + 100)
    device.restart()
    device.receipts.note_heads((B,))
    second = device.given(START)
    assert first is not None
    assert second is not None
    assert second.at_ms == first.at_ms + 1


def test_receipts_that_are_switched_off_are_said_to_be_off_once() -> None:
    off = RoomsConfig(receipts=False, receipt_delay=0.25)
    device = Device(off)
    assert device.receipts.note_heads((A,)) == [SetTimer(0.25, TICK)]
    receipt = device.given()
    assert receipt is not None
    assert (receipt.heads, receipt.off) == ((), True)
    assert device.receipts.note_heads((B,)) == []
    device.restart(off)
    assert device.receipts.note_heads((C,)) == []
    assert device.receipts.all() == (receipt,)


def test_receipts_that_are_switched_on_again_are_given_again() -> None:
    device = Device()
    device.receipts.note_heads((A,))
    device.given()
    device.restart(RoomsConfig(receipts=False))
    device.receipts.note_heads((A,))
    said = device.given()
    assert said is not None
    assert said.off
    device.restart()
    assert device.receipts.note_heads((A,)) == [SetTimer(0.25, TICK)]
    said = device.given()
    assert said is not None
    assert (said.heads, said.off) == ((A,), False)


def test_more_heads_than_a_receipt_can_name_are_recorded() -> None:
    device = Device()
    heads = [EventId(bytes([number]) * 32) for number in range(HEADS + 1)]
    device.receipts.note_heads(heads[:HEADS])
    receipt = device.given()
    assert receipt is not None
    assert receipt.heads == tuple(heads[:HEADS])
    device.receipts.note_heads(heads)
    (after, record) = device.receipts.give_receipt((N1,), START)
    assert isinstance(after, AfterCommit)
    assert after.effects[0].message.heads == tuple(heads[:HEADS])
    note = "heads left out of a receipt: 1"
    assert record == Record(Kind.DROPPED, ROOM, reason=Reason.TOO_MANY, note=note)


def test_one_person_has_only_so_many_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cards are free: whoever makes up devices must not push out what others say."""
    monkeypatch.setattr(receipts_module, "DEVICES_OF_ONE", 1)
    device = Device()
    receipts = device.receipts
    assert receipts.learn(bens(A))
    assert receipts.learn(bens(B, at=START + 1))
    person = SigningKey.generate(SeededEntropy(0, "identity/ben"))
    other = SigningKey.generate(SeededEntropy(0, "another device"))
    card = issue_card(person, other.public, BEN.card.not_before, BEN.card.not_after)
    assert card.person == BEN.author
    one_more = sign_room_receipt(other, card, ROOM, 7, (A,))
    for _ in range(2):
        refused = Record(Kind.REJECTED, ROOM, peer=N1, reason=Reason.TOO_MANY, note="receipt")
        assert hear(device.receipts, N1, one_more, (N2,), member=True) == (False, [refused])
        device.restart()
    device.receipts.forget(BEN.author)
    assert hear(device.receipts, N1, one_more, (N2,), member=True) == (True, [Send(N2, one_more)])
