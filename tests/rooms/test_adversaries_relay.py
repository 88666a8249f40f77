"""Abuse of relays, relays that lie, and lies about what arrived."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable

import pytest
from msgspec.structs import replace
from tests.rooms.intruder import Pen, events_of
from tests.rooms.siege import Siege

from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.delivery.messages import Given, Want
from linnet.event.event import Unverified
from linnet.identity.cards import issue_card
from linnet.identity.keys import SigningKey
from linnet.rooms.attachments import piece_of
from linnet.rooms.commands import AddRelay, Sent, SetMembership
from linnet.rooms.config import RelayConfig, RelayPolicy, RoomsConfig
from linnet.rooms.event_types import Membership
from linnet.rooms.messages import (
    AskControl,
    ChunkPut,
    ChunkTaken,
    ControlPage,
    Greet,
    Refused,
    RelayAnswer,
    RelayAsk,
    RelayCursor,
    RelayForward,
    RelayOutcome,
    RelaySend,
    RelayTaken,
    Resync,
    ResyncPage,
    Tombstone,
)
from linnet.rooms.receipts import DEVICES_OF_ONE, sign_room_receipt
from linnet.sim.seeded_random import SeededEntropy
from linnet.trace.records import Kind

FLOOD = 2000 if os.environ.get("LINNET_SOAK") else 80
EPOCH = b"lies!!!!"


def member_mal(seed: int, *names: str, relay: RelayConfig | None = None) -> tuple[Siege, Pen]:
    """mal is a member, with a link to ann and the relays, and follows nobody yet."""
    siege = Siege(*names, seed=seed, relay=relay)
    siege.found(*names)
    siege.intruder()
    pen = siege.enter("mal", at=("ann",))
    for name in names:
        if name.startswith("r"):
            siege.connect("mal", name)
            siege.tell("mal", name, pen.greet((), siege.control()))
    siege.run(1.0)
    pen.note(siege.log("ann"))
    return siege, pen


def send(
    siege: Siege, pen: Pen, target: str, units: Iterable[Unverified], number: int = 1
) -> list[RelayOutcome]:
    message = RelaySend(siege.room, number, tuple(units), (pen.identity.card,))
    taken = [each for each in siege.tell("mal", target, message) if isinstance(each, RelayTaken)]
    assert [each.request for each in taken] == [number]
    assert taken[0].reason is None
    return list(taken[0].outcomes)


# What a relay keeps.


def test_one_sender_fills_its_own_share_and_no_more() -> None:
    config = RelayConfig(policy=RelayPolicy.OPEN, sender_bytes=20_000, room_bytes=100_000)
    siege, pen = member_mal(71, "ann", "bob", "r0", relay=config)
    (honest,) = siege.say("ann", "mine is kept")
    siege.run(1.0)
    texts = [pen.message(f"{n} " + "x" * 1000, siege.control(), fork=True) for n in range(FLOOD)]
    outcomes: list[RelayOutcome] = []
    for start in range(0, FLOOD, 40):
        outcomes += send(siege, pen, "r0", [each.unit for each in texts[start : start + 40]], start + 1)
    kept = [each for each in outcomes if each.cursor is not None]
    assert 10 < len(kept) < 20
    assert {each.reason for each in outcomes if each.cursor is None} == {Reason.QUOTA}
    usage = siege.relay_room("r0").cache.usage
    assert usage.share_of(siege.person("mal")).bytes <= 20_000
    assert siege.relay_room("r0").cache.position(honest) is not None


def test_a_full_room_lets_the_oldest_go_and_remembers_so_many_of_them() -> None:
    config = RelayConfig(policy=RelayPolicy.OPEN, sender_bytes=10**6, room_bytes=20_000, tombstones=10)
    siege, pen = member_mal(72, "ann", "bob", "r0", relay=config)
    texts = [pen.message(f"{n} " + "x" * 1000, siege.control(), fork=True) for n in range(FLOOD)]
    for start in range(0, FLOOD, 40):
        outcomes = send(siege, pen, "r0", [each.unit for each in texts[start : start + 40]], start + 1)
        assert all(each.cursor is not None for each in outcomes)
    cache = siege.relay_room("r0").cache
    assert cache.usage.bytes <= 20_000
    assert len(cache.tombstones._gone) == 10
    assert len(cache.control) == len(siege.relay_room("r0").dag)  # no control event ever goes
    again = send(siege, pen, "r0", [texts[-25].unit], 9999)
    assert (again[0].cursor, again[0].reason) == (None, Reason.QUOTA)


def test_pieces_have_a_bound_too() -> None:
    config = RelayConfig(policy=RelayPolicy.OPEN, chunk_bytes=5 * 4096)
    siege, _ = member_mal(73, "ann", "bob", "r0", relay=config)
    pieces = [piece_of(b"%d" % n) for n in range(10)]
    puts = [ChunkPut(siege.room, each.digest, each.data) for each in pieces]
    heard = [each for each in siege.tell("mal", "r0", *puts) if isinstance(each, ChunkTaken)]
    assert [each.reason for each in heard] == [None] * 5 + [Reason.QUOTA] * 5
    wrong = ChunkPut(siege.room, pieces[0].digest, b"another")
    assert siege.tell("mal", "r0", wrong) == [ChunkTaken(siege.room, pieces[0].digest, Reason.MALFORMED)]


@pytest.mark.parametrize("lie", ["epoch", "future", "far future"])
def test_a_cursor_that_is_not_of_this_relay_says_so(lie: str) -> None:
    siege, _ = member_mal(74, "ann", "bob", "r0")
    own = siege.rooms("r0")._relay
    assert own is not None
    cursor = {
        "epoch": RelayCursor(b"12345678", 1),
        "future": RelayCursor(own.epoch, siege.relay_room("r0").cache.end + 1),
        "far future": RelayCursor(own.epoch, 2**53),
    }[lie]
    (page,) = siege.tell("mal", "r0", Resync(siege.room, 1, cursor, 100, True))
    assert isinstance(page, ResyncPage)
    assert (page.units, page.next, page.reason) == ((), None, Reason.CURSOR_EXPIRED)


def test_who_asks_to_follow_often_follows_once() -> None:
    siege, _ = member_mal(75, "ann", "bob", "r0")
    siege.tell("mal", "r0", *(Resync(siege.room, n, None, 256, True) for n in range(100)))
    room = siege.relay_room("r0")
    assert [peer for peer in room._followers._followers if peer == siege.peer("mal")] == [siege.peer("mal")]
    siege.played("mal").take()
    (said,) = siege.say("ann", "once")
    siege.run(2.0)
    pages = [each for each in siege.played("mal").take() if isinstance(each, ResyncPage)]
    got = [event.id for page in pages for event in events_of(page.units)]
    assert got.count(said) == 1


def test_three_relays_pass_each_event_on_exactly_once_to_each() -> None:
    siege, pen = member_mal(76, "ann", "bob", "r0", "r1", "r2")
    since = len(siege.notes.rows)
    said = siege.say("ann", "one") + siege.say("bob", "two")
    third = pen.message("three", siege.control())
    assert [each.reason for each in send(siege, pen, "r1", [third.unit])] == [None]
    siege.run(30.0)
    relays = {siege.peer(name): name for name in ("r0", "r1", "r2")}
    for event in (*said, third.head):
        sent = Counter(
            (relays[node], relays[record.peer])
            for _, node, record in siege.notes.rows[since:]
            if record.kind is Kind.SENT and record.event == event and node in relays and record.peer in relays
        )
        stored = Counter(
            relays[node]
            for _, node, record in siege.notes.rows[since:]
            if record.kind is Kind.STORED and record.event == event and node in relays
        )
        assert stored == {"r0": 1, "r1": 1, "r2": 1}
        assert len(sent) == 2
        assert set(sent.values()) == {1}
        assert len({origin for origin, _ in sent}) == 1


def test_what_is_forwarded_by_who_is_no_relay_is_not_looked_at() -> None:
    siege, pen = member_mal(77, "ann", "bob", "r0")
    before = siege.print("r0")
    unit = pen.message("as a relay", siege.control()).unit
    heard = siege.tell("mal", "r0", RelayForward(siege.room, 4, (unit,), (pen.identity.card,)))
    assert heard == [RelayTaken(siege.room, 4, (), Reason.NOT_A_RELAY)]
    assert siege.print("r0") == before


# A relay that lies.


class Liar:
    """A relay that was named, joined, and then does as it likes."""

    def __init__(self, siege: Siege, name: str = "liar") -> None:
        self.siege = siege
        self.name = name
        self.machine = siege.intruder(name)
        self.card = siege.identity[name].card
        self.machine.answer = self.answer
        self.units: tuple[Unverified, ...] = ()
        self.kept: dict[EventId, Unverified] = {}
        self.answers: Callable[[PeerId, Message], list[Message] | None] = lambda peer, message: None
        self.pen = Pen(siege.identity[name], siege.room, int(siege.network.now * 1000))
        siege.get("ann", AddRelay(siege.room, siege.contact(name)), Sent)
        siege.connect(name, "ann")
        heard = siege.tell(name, "ann", AskControl(siege.room, 1, (), None, self.card))
        (page,) = [each for each in heard if isinstance(each, ControlPage)]
        self.pen.note(page.units)
        join = self.pen.member(siege.identity[name], Membership.JOIN, page.heads)
        siege.tell(name, "ann", self.pen.data(join), replace(self.greet(), answer=False))
        siege.run(1.0)

    def greet(self) -> Greet:
        return replace(self.pen.greet((), ()), relay=True, answer=True)

    def answer(self, peer: PeerId, message: Message) -> list[Message]:
        lie = self.answers(peer, message)
        if lie is not None:
            return lie
        room = self.siege.room
        match message:
            case RelayAsk(_, request):
                return [RelayAnswer(room, request, None, self.card.person, self.card)]
            case Greet(answer=False):
                return [self.greet()]
            case Resync(_, request):
                end = RelayCursor(EPOCH, 1)
                return [ResyncPage(room, request, (), (), (), (), end, False, end, (), None)]
            case RelaySend(_, request, units):
                ids = [event.id for event in events_of(units)]
                self.kept |= dict(zip(ids, units, strict=True))
                cursor = RelayCursor(EPOCH, 1)
                return [
                    RelayTaken(room, request, tuple(RelayOutcome(i, cursor, None, ()) for i in ids), None)
                ]
            case Want(_, request, ids):
                return [Given(room, request, (), (), ids, Reason.RETENTION)]
            case _:
                return []


def with_liar(seed: int, *others: str) -> tuple[Siege, Liar]:
    config = RoomsConfig(relay_timeout=2.0, relay_retry=5.0, relays_at_once=1)
    siege = Siege("ann", "bob", "cid", *others, seed=seed, config=config)
    siege.found("ann", "bob", "cid", *others)
    siege.say("ann", "before")
    siege.run(1.0)
    return siege, Liar(siege)


def end_well(siege: Siege, *lines: str) -> None:
    """Whatever the relay did: honest members have the same, all of it, and no more than was said."""
    siege.run(90.0)
    for name in ("ann", "bob", "cid"):
        assert sorted(siege.heard(name)) == sorted(("before", *lines))
    assert len({siege.state(name).digest for name in ("ann", "bob", "cid")}) == 1


def test_a_relay_that_says_it_keeps_what_it_does_not_loses_nothing_for_good() -> None:
    """bob is away, and ann believes that the relay has it. bob gets it of somebody who has it."""
    siege, liar = with_liar(81)
    siege.offline("bob")
    siege.say("ann", "lost?")
    siege.run(3.0)
    assert liar.kept
    siege.offline("ann")
    siege.online("bob")
    siege.run(20.0)  # cid has it too, and is there
    assert "lost?" in siege.heard("bob")
    siege.online("ann")
    end_well(siege, "lost?")


def test_a_relay_that_says_that_something_is_gone_is_not_the_last_to_be_asked() -> None:
    """It says that what an event depends on has expired. Who has it comes later: then it is history."""
    siege, liar = with_liar(82)
    siege.offline("bob")
    siege.say("ann", "first")
    siege.say("ann", "second")
    siege.run(3.0)
    second = siege.log("ann")[-1]
    siege.network.partition([[siege.peer("bob"), siege.peer("liar")], [siege.peer("ann"), siege.peer("cid")]])

    def hand_out(peer: PeerId, message: Message) -> list[Message] | None:
        if isinstance(message, Resync):
            cards, end = (siege.identity["ann"].card,), RelayCursor(EPOCH, 1)
            page = ResyncPage(
                siege.room, message.request, (second,), cards, (), (), end, False, end, (), None
            )
            return [page]
        return None

    liar.answers = hand_out
    siege.online("bob")
    siege.run(20.0)
    assert siege.heard("bob") == ["before", "second"]
    first = events_of(siege.log("ann"))[-2]
    assert list(siege.room_at("bob").memory.expired) == [first.id]
    siege.network.heal()
    siege.run(60.0)
    assert siege.room_at("bob").memory.expired == {}
    assert first.id in [event.id for event in events_of(siege.log("bob"))]
    assert siege.status("bob").missing == 0


@pytest.mark.parametrize("sort", ["forged", "unknown author", "of a banned member", "another room"])
def test_a_relay_that_hands_out_what_nobody_said_is_not_believed(sort: str) -> None:
    siege, liar = with_liar(83, "r0")
    siege.intruder("eve")
    eve = Pen(siege.identity["eve"], siege.room, int(siege.network.now * 1000))
    eve.note(siege.log("ann"))
    old = siege.control()
    siege.get("ann", SetMembership(siege.room, siege.person("eve"), Membership.BAN), Sent)
    siege.run(1.0)
    said = siege.log("ann")[-2]
    units: tuple[Unverified, ...] = {
        "forged": tuple(replace(said, seq=n, sig=bytes(64)) for n in range(100, 110)),
        "unknown author": tuple(eve.message(f"{n}", siege.control(), fork=True).unit for n in range(10)),
        "of a banned member": tuple(eve.message(f"{n}", old, fork=True).unit for n in range(10)),
        "another room": (
            eve.write("message", None, b"x", old, fork=True, room=TopicId(siege.room[::-1])).unit,
        ),
    }[sort]
    cards = (siege.identity["eve"].card, siege.identity["ann"].card)

    def hand_out(peer: PeerId, message: Message) -> list[Message] | None:
        if isinstance(message, Resync):
            end = RelayCursor(EPOCH, 1)
            page = ResyncPage(siege.room, message.request, units, cards, (), (), end, False, end, (), None)
            return [page]
        return None

    liar.answers = hand_out
    before = [siege.room_at(name).control.heads for name in ("bob", "cid")]
    for name in ("bob", "cid"):
        siege.offline(name)
        siege.online(name)
    siege.run(20.0)
    assert [siege.room_at(name).control.heads for name in ("bob", "cid")] == before
    siege.say("ann", "true")
    end_well(siege, "true")


def endless(siege: Siege, peer: PeerId, message: Message) -> list[Message] | None:
    if isinstance(message, Resync):
        at = RelayCursor(EPOCH, (message.cursor.position if message.cursor else 0) + 1)
        return [ResyncPage(siege.room, message.request, (), (), (), (), at, True, at, (), None)]
    return None


def the_same_again(siege: Siege, peer: PeerId, message: Message) -> list[Message] | None:
    """One page for ever, each time with another cursor."""
    if isinstance(message, Resync):
        at = RelayCursor(EPOCH, (message.cursor.position if message.cursor else 0) + 1)
        units = tuple(siege.log("ann")[1:3])
        return [ResyncPage(siege.room, message.request, units, (), (), (), at, True, at, (), None)]
    return None


def always_another_epoch(siege: Siege, peer: PeerId, message: Message) -> list[Message] | None:
    if isinstance(message, Resync):
        return [
            ResyncPage(
                siege.room, message.request, (), (), (), (), None, False, None, (), Reason.CURSOR_EXPIRED
            )
        ]
    return None


def no_end_of_heads(siege: Siege, peer: PeerId, message: Message) -> list[Message] | None:
    """Names control heads that nobody has."""
    if isinstance(message, Resync):
        at, heads = RelayCursor(EPOCH, 1), tuple(EventId(bytes([n]) * 32) for n in range(200))
        return [ResyncPage(siege.room, message.request, (), (), (), (), at, False, at, heads, None)]
    return None


def silence(siege: Siege, peer: PeerId, message: Message) -> list[Message] | None:
    return []


@pytest.mark.parametrize("lie", [endless, the_same_again, always_another_epoch, no_end_of_heads, silence])
def test_members_move_on_from_a_relay_that_wastes_their_time(
    lie: Callable[[Siege, PeerId, Message], list[Message] | None],
) -> None:
    siege, liar = with_liar(84, "r0")
    liar.answers = lambda peer, message: lie(siege, peer, message)
    for name in ("bob", "cid"):
        siege.offline(name)
        siege.online(name)
    siege.run(30.0)
    liar.machine.take()
    watched = siege.watched("bob")
    inputs, effects = watched.inputs, watched.effects
    siege.run(60.0)
    assert watched.inputs - inputs < 60 * 60  # no busy loop: a message or so in each round trip at most
    assert watched.effects - effects < 60 * 120
    siege.say("ann", "still true")
    end_well(siege, "still true")


def test_tombstones_of_a_liar_take_nothing_back() -> None:
    siege, liar = with_liar(85)
    (said,) = siege.say("ann", "mine")
    siege.run(2.0)
    gone = (Tombstone(said, Reason.RETENTION), Tombstone(EventId(b"n" * 32), Reason.QUOTA))

    def bury(peer: PeerId, message: Message) -> list[Message] | None:
        if isinstance(message, Resync):
            end = RelayCursor(EPOCH, 1)
            return [ResyncPage(siege.room, message.request, (), (), (), gone, end, False, end, (), None)]
        return None

    liar.answers = bury
    siege.offline("ann")
    siege.online("ann")
    siege.run(10.0)
    fates = siege.fates("ann", said)
    assert fates == {"bob": "delivered", "cid": "delivered"}
    end_well(siege, "mine")


# Lies about what arrived.


def test_nobody_gives_receipts_for_another() -> None:
    siege, _ = member_mal(91, "ann", "bob", "r0")
    siege.offline("bob")
    (said,) = siege.say("ann", "who has it?")
    siege.run(2.0)
    bob, mal, at = siege.identity["bob"], siege.identity["mal"], int(siege.network.now * 1000) + 10**6
    stolen = sign_room_receipt(mal.device, bob.card, siege.room, at, (said,))
    renamed = replace(sign_room_receipt(mal.device, mal.card, siege.room, at, (said,)), card=bob.card)
    for target in ("ann", "r0"):
        for forged in (stolen, renamed):
            since = len(siege.notes.rows)
            siege.tell("mal", target, forged)
            assert siege.refusals(target, since) == ["bad_signature"]
    siege.run(2.0)
    assert siege.fates("ann", said)["bob"] in ("pending", "at_relay")


def test_a_receipt_of_who_is_no_member_counts_for_nothing() -> None:
    siege, _ = member_mal(92, "ann", "bob", "r0")
    siege.intruder("eve")
    eve = siege.identity["eve"]
    (said,) = siege.say("ann", "hello")
    receipt = sign_room_receipt(eve.device, eve.card, siege.room, 1, (said,))
    for target in ("ann", "r0"):
        since = len(siege.notes.rows)
        siege.tell("mal", target, receipt)
        assert siege.refusals(target, since) == ["not_a_member"]


def test_an_older_receipt_does_not_take_back_a_newer_one_and_is_not_passed_on() -> None:
    siege, _ = member_mal(93, "ann", "bob", "r0")
    (said,) = siege.say("ann", "hello")
    siege.run(1.0)
    mal, now = siege.identity["mal"], int(siege.network.now * 1000)
    newer = sign_room_receipt(mal.device, mal.card, siege.room, now + 10, (said,))
    older = sign_room_receipt(mal.device, mal.card, siege.room, now, ())
    future = sign_room_receipt(mal.device, mal.card, siege.room, 2**53 - 1, (EventId(b"f" * 32),))
    siege.tell("mal", "ann", newer)
    assert siege.fates("ann", said)["mal"] == "delivered"
    effects = siege.watched("bob").effects
    for each in (older, newer, older):
        siege.tell("mal", "ann", each)
    assert siege.watched("bob").effects - effects < 20
    siege.tell("mal", "ann", future)  # from now on this device says nothing more: its own loss
    siege.tell("mal", "ann", sign_room_receipt(mal.device, mal.card, siege.room, now + 20, ()))
    assert siege.fates("ann", said)["mal"] == "delivered"
    (later,) = siege.say("ann", "later")
    siege.run(1.0)
    assert siege.fates("ann", later)["mal"] in ("pending", "at_relay")


def test_who_refused_something_and_acknowledges_it_has_refused_it_and_others_are_not_concerned() -> None:
    siege, _ = member_mal(94, "ann", "bob")
    (said,) = siege.say("ann", "take it")
    siege.tell("mal", "ann", Refused(siege.room, said, Reason.NO_POWER, "no"))
    assert siege.fates("ann", said)["mal"] == "refused"
    mal, now = siege.identity["mal"], int(siege.network.now * 1000)
    siege.tell("mal", "ann", sign_room_receipt(mal.device, mal.card, siege.room, now, (said,)))
    assert siege.fates("ann", said)["mal"] == "refused"
    (later,) = siege.say("ann", "and this")
    siege.tell("mal", "ann", sign_room_receipt(mal.device, mal.card, siege.room, now + 1, (later,)))
    siege.run(1.0)
    assert siege.fates("ann", later) == {"mal": "delivered", "bob": "delivered"}
    assert siege.fates("ann", said)["bob"] == "delivered"


def test_one_person_with_many_devices_does_not_push_out_the_receipts_of_others() -> None:
    siege, pen = member_mal(95, "ann", "bob", "r0")
    person = SigningKey.generate(SeededEntropy(siege.seed, "identity/mal"))
    assert person.public == siege.person("mal")
    since = len(siege.notes.rows)
    for number in range(FLOOD):
        device = SigningKey.generate(SeededEntropy(number, "device"))
        card = issue_card(person, device.public, pen.identity.card.not_before, pen.identity.card.not_after)
        receipt = sign_room_receipt(device, card, siege.room, 1, ())
        for target in ("ann", "r0"):
            siege.tell("mal", target, receipt, seconds=0.0)
    siege.run(1.0)
    assert siege.refusals("ann", since).count("too_many") >= FLOOD - DEVICES_OF_ONE
    assert len(siege.room_at("ann").receipts.all()) <= DEVICES_OF_ONE + 3
    assert siege.relay_room("r0").receipts.count_of(siege.person("mal")) <= DEVICES_OF_ONE
    (said,) = siege.say("ann", "hello")
    siege.run(2.0)
    assert siege.fates("ann", said)["bob"] == "delivered"
