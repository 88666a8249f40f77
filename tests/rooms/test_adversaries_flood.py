"""Members who flood, forge and lie about structure: everything has a limit, a reason, and an end.

Counted are the things that victims keep and the effects that they ask for, never time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

import pytest
from msgspec.structs import replace
from tests.rooms.intruder import Pen, events_of
from tests.rooms.siege import Siege

from linnet.core.ids import DeviceId, EventId, PeerId
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.delivery.messages import Beyond, Bound, Further, Given, Range, Reconcile, Want
from linnet.delivery.set_reconciliation import END
from linnet.event.event import MESSAGE, Verified
from linnet.identity.cards import revoke
from linnet.identity.keys import SigningKey
from linnet.peer.whereabouts import Located
from linnet.rooms.auth.control_graph import HEADS_OF_ONE
from linnet.rooms.commands import CreateRoom, RoomMade, SendToRoom, Sent, SetMembership
from linnet.rooms.config import RelayConfig, RelayPolicy, RoomsConfig
from linnet.rooms.event_types import CREATE, NAME, REVOCATION, Create, Membership, Revoked
from linnet.rooms.messages import AskControl, ControlPage, RelaySend, RelayTaken
from linnet.rooms.messages import Refused as RefusedMessage
from linnet.sim.seeded_random import SeededEntropy

FLOOD = 5000 if os.environ.get("LINNET_SOAK") else 120
TIGHT = RoomsConfig(waiting_events=40, rejected=30, flood_soft=8, page_events=64)
RELAY = RelayConfig(policy=RelayPolicy.OPEN, park_events=40)


def room_with_mal(seed: int, *names: str, config: RoomsConfig = TIGHT) -> tuple[Siege, Pen]:
    siege = Siege(*names, seed=seed, config=config, relay=RELAY)
    siege.found(*names)
    siege.say("ann", "hello")
    siege.run(1.0)
    siege.intruder()
    pen = siege.enter("mal", at=tuple(name for name in names if not name.startswith("r")))
    for relay in (name for name in names if name.startswith("r")):
        siege.connect("mal", relay)
        siege.tell("mal", relay, pen.greet((), siege.control()))
    pen.note(siege.log("ann"))
    siege.played("mal").take()
    return siege, pen


def nobody(number: int) -> EventId:
    return EventId(number.to_bytes(32, "big"))


def goes_on(siege: Siege, *names: str) -> None:
    """Honest members agree, and what they say still arrives, and soon."""
    siege.say("ann", "we go on")
    siege.say("bob", "so we do")
    siege.run(15.0)
    assert len({siege.state(name).digest for name in names}) == 1
    for name in names:
        assert siege.heard(name)[-2:] == ["we go on", "so we do"]


def device_gone(siege: Siege, pen: Pen, number: int, heads: Iterable[EventId], fork: bool = True) -> Verified:
    """Any member may say of any device that it is not theirs: a control event that costs no level."""
    device = DeviceId(number.to_bytes(8, "big"))
    key = SigningKey.generate(SeededEntropy(siege.seed, "identity/mal"))
    return pen.write(REVOCATION, device.hex(), Revoked(revoke(key, device, 1)), heads, fork=fork)


# Events that are wrong in themselves.


def wrong_height(siege: Siege, pen: Pen) -> Verified:
    return pen.message("up", siege.control(), fork=True, height=10**6)


def too_low(siege: Siege, pen: Pen) -> Verified:
    return pen.message("down", siege.control(), fork=True, height=1)


def message_as_control_head(siege: Siege, pen: Pen) -> Verified:
    said = next(event.id for event in events_of(siege.log("ann")) if event.kind == MESSAGE)
    return pen.message("odd", (said,), fork=True)


def membership_on_a_message(siege: Siege, pen: Pen) -> Verified:
    said = next(event.id for event in events_of(siege.log("ann")) if event.kind == MESSAGE)
    return pen.member(pen.identity, Membership.LEAVE, (said,), fork=True)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (wrong_height, Reason.MALFORMED),
        (too_low, Reason.MALFORMED),
        (message_as_control_head, Reason.NOT_ALLOWED),
        (membership_on_a_message, Reason.NOT_ALLOWED),
    ],
)
def test_an_event_that_lies_about_its_place_is_refused(
    wrong: Callable[[Siege, Pen], Verified], reason: Reason
) -> None:
    siege, pen = room_with_mal(51, "ann", "bob")
    before = siege.print("ann")
    made = wrong(siege, pen)
    (answer,) = siege.tell("mal", "ann", pen.data(made))
    assert isinstance(answer, RefusedMessage)
    assert (answer.event, answer.reason) == (made.head, reason)
    assert siege.print("ann") == before
    goes_on(siege, "ann", "bob")
    siege.offline("ann")
    siege.run(1.0)
    siege.online("ann")  # and it does not bite after a restart
    goes_on(siege, "ann", "bob")


def test_a_relay_takes_no_message_for_a_control_head() -> None:
    siege, pen = room_with_mal(52, "ann", "bob", "r0")
    before = siege.print("r0")
    for number, wrong in enumerate((message_as_control_head, membership_on_a_message)):
        made = wrong(siege, pen)
        asked = RelaySend(siege.room, number, (made.unit,), (pen.identity.card,))
        heard = siege.tell("mal", "r0", asked, seconds=40.0)
        (taken,) = [each for each in heard if isinstance(each, RelayTaken)]
        assert taken.outcomes[0].cursor is None
        assert taken.outcomes[0].reason in (Reason.NOT_ALLOWED, Reason.MISSING_DEPENDENCY)
    assert siege.print("r0") == before
    goes_on(siege, "ann", "bob")


def test_an_event_of_the_far_future_is_shown_and_harms_nobody() -> None:
    siege, pen = room_with_mal(53, "ann", "bob")
    made = pen.message("from tomorrow", siege.control(), fork=True, time=pen.now_ms + 10**9)
    answers = siege.tell("mal", "ann", pen.data(made))
    assert not [each for each in answers if isinstance(each, RefusedMessage)]
    goes_on(siege, "ann", "bob")
    for name in ("ann", "bob"):
        assert siege.heard(name).count("from tomorrow") == 1


def test_more_references_than_allowed_are_no_message_at_all() -> None:
    """33 dependencies: the codec of the link does not let them through, nor do those who check."""
    siege, pen = room_with_mal(54, "ann", "bob")
    before = siege.print("ann")
    many = pen.write(MESSAGE, None, b"many", siege.control(), deps=map(nobody, range(1, 34)), fork=True)
    since = len(siege.notes.rows)
    assert siege.tell("mal", "ann", pen.data(many)) == []
    assert siege.refusals("ann", since) == ["malformed"]
    assert siege.print("ann") == before


def test_a_second_create_event_and_one_of_another_room_are_refused() -> None:
    siege, pen = room_with_mal(55, "ann", "bob", "r0")
    before = [siege.print(name) for name in ("ann", "r0")]
    second = pen.write(CREATE, "", Create(1, (), bytes(16)), None, fork=True, height=0)
    own = siege.get("bob", CreateRoom("other", newcomers=None), RoomMade).room
    units = [second.unit, *siege.log_of("bob", own)[:2]]
    assert events_of(units)[1].kind == CREATE
    for unit, reason in zip(units, ("not_allowed", "not_allowed", "unknown_room"), strict=True):
        since = len(siege.notes.rows)
        page = ControlPage(siege.room, 1, (unit,), (siege.identity["bob"].card,), False, (), (), None)
        # mal is a member, and is told where the others are, whenever that is due.
        told = [each for each in siege.tell("mal", "ann", page) if not isinstance(each, Located)]
        assert told == []
        assert siege.refusals("ann", since) == [reason]
    (taken,) = [
        each
        for each in siege.tell("mal", "r0", RelaySend(siege.room, 1, tuple(units), ()))
        if isinstance(each, RelayTaken)
    ]
    assert {outcome.cursor for outcome in taken.outcomes} == {None}
    assert {outcome.reason for outcome in taken.outcomes} <= {Reason.UNKNOWN_ROOM, Reason.MALFORMED}
    assert [siege.print(name) for name in ("ann", "r0")] == before


def test_a_forked_chain_is_two_branches_and_nothing_breaks() -> None:
    """Two events with the same number: both are valid by themselves, and members have both."""
    siege, pen = room_with_mal(56, "ann", "bob", "r0")
    twins = [pen.message(f"twin {n}", siege.control(), fork=True) for n in range(2)]
    assert twins[0].unit.seq == twins[1].unit.seq
    for twin in twins:
        siege.tell("mal", "ann", pen.data(twin))
        siege.tell("mal", "r0", RelaySend(siege.room, twin.head[0], (twin.unit,), (pen.identity.card,)))
    siege.run(3.0)
    assert sorted(siege.heard("bob"))[-2:] == ["twin 0", "twin 1"]
    goes_on(siege, "ann", "bob")


# Floods.


@pytest.mark.parametrize("sort", ["messages", "control"])
def test_events_that_wait_for_what_nobody_has_fill_a_bounded_room(sort: str) -> None:
    siege, pen = room_with_mal(57, "ann", "bob", "r0")
    card, heads = pen.identity.card, siege.control()
    if sort == "messages":
        made = [
            pen.write(MESSAGE, None, b"%d" % n, heads, deps=(nobody(n + 1),), fork=True) for n in range(FLOOD)
        ]
    else:
        made = [device_gone(siege, pen, n, (nobody(n + 1),)) for n in range(FLOOD)]
    since = len(siege.notes.rows)
    siege.tell("mal", "ann", *map(pen.data, made), seconds=1.0)
    assert siege.status("ann").waiting <= 40
    assert siege.status("ann").missing <= 40
    assert siege.refusals("ann", since).count("queue_full") >= FLOOD - 40
    goes_on(siege, "ann", "bob")
    if sort == "control":
        for start in range(0, FLOOD, 60):
            units = tuple(each.unit for each in made[start : start + 60])
            siege.tell("mal", "r0", RelaySend(siege.room, start, units, (card,)))
            assert siege.status("r0").waiting <= 10  # a quarter of what may wait is one peer's
        siege.run(60.0)
        assert (siege.status("r0").waiting, siege.status("r0").missing) == (0, 0)
        assert "missing_dependency" in siege.refusals("r0", since)
    goes_on(siege, "ann", "bob")


def test_a_full_waiting_room_does_not_shut_out_what_honest_members_say() -> None:
    """cid was away: what it gets comes in pieces that have to wait, among junk that waits for ever."""
    siege, pen = room_with_mal(58, "ann", "bob", "cid")
    siege.network.partition([[siege.peer("ann"), siege.peer("bob")], [siege.peer("cid"), siege.peer("mal")]])
    siege.run(1.0)
    for number in range(60):
        siege.say("ann" if number % 2 else "bob", f"line {number}")
    junk = [
        pen.write(MESSAGE, None, b"%d" % n, siege.control(), deps=(nobody(n + 1),), fork=True)
        for n in range(FLOOD)
    ]
    siege.tell("mal", "cid", *map(pen.data, junk), seconds=1.0)
    assert siege.status("cid").waiting == 40
    siege.network.heal()
    siege.run(90.0)
    assert siege.heard("cid")[-60:] == [f"line {number}" for number in range(60)]


def test_a_flood_of_refused_events_is_forgotten_and_changes_nothing() -> None:
    siege, pen = room_with_mal(59, "ann", "bob", "r0")
    before, heads = [siege.print(name) for name in ("ann", "bob", "r0")], siege.control()
    made = [pen.write(NAME, "", b"%d" % n, heads, fork=True) for n in range(FLOOD)]
    watched = siege.watched("ann")
    inputs, effects = watched.inputs, watched.effects
    siege.tell("mal", "ann", *map(pen.data, made), seconds=1.0)
    assert watched.effects - effects <= 6 * (watched.inputs - inputs)
    room = siege.room_at("ann")
    assert len(room.memory.rejected) == 30
    assert len(room.dag._aside) <= 30
    for start in range(0, FLOOD, 60):
        units = tuple(each.unit for each in made[start : start + 60])
        (taken,) = siege.tell("mal", "r0", RelaySend(siege.room, start, units, (pen.identity.card,)))
        assert isinstance(taken, RelayTaken)
        assert {outcome.reason for outcome in taken.outcomes} == {Reason.NO_POWER}
    siege.run(3.0)
    assert [siege.print(name) for name in ("ann", "bob", "r0")] == before
    goes_on(siege, "ann", "bob")


def test_a_flood_of_control_events_beside_each_other_is_cut_off() -> None:
    siege, pen = room_with_mal(60, "ann", "bob", "r0")
    heads = siege.control()
    made = [device_gone(siege, pen, n, heads) for n in range(FLOOD)]
    since = len(siege.notes.rows)
    siege.tell("mal", "ann", *map(pen.data, made), seconds=2.0)
    assert siege.refusals("ann", since).count("flooding") >= FLOOD - HEADS_OF_ONE
    assert len(siege.control("ann")) <= HEADS_OF_ONE
    for start in range(0, FLOOD, 60):
        units = tuple(each.unit for each in made[start : start + 60])
        siege.tell("mal", "r0", RelaySend(siege.room, start, units, (pen.identity.card,)))
    assert len(siege.control("r0")) <= 2 * HEADS_OF_ONE
    goes_on(siege, "ann", "bob")
    siege.get("ann", SetMembership(siege.room, siege.person("mal"), Membership.BAN), Sent)
    siege.run(3.0)
    for name in ("ann", "bob"):
        assert siege.room_at(name).view.membership(siege.person("mal")) is Membership.BAN
    assert siege.relay_room("r0").view.membership(siege.person("mal")) is Membership.BAN


def test_a_long_chain_of_control_events_fills_the_room_and_who_did_it_can_still_be_put_out() -> None:
    config = RoomsConfig(max_control=60, flood_soft=8)
    siege, pen = room_with_mal(61, "ann", "bob", "r0", config=config)
    heads, since = siege.control(), len(siege.notes.rows)
    for number in range(FLOOD if FLOOD < 500 else 500):
        made = device_gone(siege, pen, number, heads, fork=False)
        siege.tell("mal", "ann", pen.data(made), seconds=0.02)
        heads = (made.head,)
    siege.run(2.0)
    assert siege.status("ann").control_events == 60
    assert "quota" in siege.refusals("ann", since)
    siege.get("ann", SetMembership(siege.room, siege.person("mal"), Membership.BAN), Sent)
    siege.run(10.0)
    for name in ("ann", "bob"):
        assert siege.room_at(name).view.membership(siege.person("mal")) is Membership.BAN
    assert siege.relay_room("r0").view.membership(siege.person("mal")) is Membership.BAN
    goes_on(siege, "ann", "bob")


def test_pages_of_garbage_cost_their_sender_the_link() -> None:
    siege, pen = room_with_mal(62, "ann", "bob")
    before = siege.print("ann")
    good = pen.message("x", siege.control(), fork=True).unit
    forged = tuple(replace(good, seq=n, sig=bytes(64)) for n in range(1024))
    watched = siege.watched("ann")
    effects = watched.effects
    siege.tell("mal", "ann", Further(siege.room, 1, forged, (), True, ()))
    assert siege.played("mal").ended == [Reason.FORGING]
    assert watched.effects - effects <= 3 * 1024 + 50
    assert siege.print("ann") == before
    goes_on(siege, "ann", "bob")


def test_a_relay_lets_go_of_who_sends_forged_events() -> None:
    siege, pen = room_with_mal(63, "ann", "bob", "r0")
    before = siege.print("r0")
    good = pen.message("x", siege.control(), fork=True).unit
    forged = tuple(replace(good, seq=n, sig=bytes(64)) for n in range(100))
    siege.tell("mal", "r0", RelaySend(siege.room, 1, forged, (pen.identity.card,)))
    assert siege.played("mal").ended == [Reason.FORGING]
    assert siege.print("r0") == before


# Synchronising with a liar.


def whole(fingerprint: bytes | None, *ids: EventId) -> Range:
    return Range(Bound(*END), fingerprint, ids, skip=False)


def sessions(siege: Siege, count: int) -> list[int]:
    """Numbers that are mal's to begin with: both ends have theirs."""
    mine = int(siege.peer("mal") > siege.peer("ann"))
    return [2 * number + mine for number in range(500, 500 + count)]


def test_endless_sessions_of_reconciliation_are_one_at_a_time_and_end_by_flooding() -> None:
    siege, pen = room_with_mal(64, "ann", "bob")
    siege.tell("mal", "ann", pen.greet(siege.room_at("ann").dag.all_heads, siege.control()))
    asks = [Reconcile(siege.room, number, (whole(bytes(32)),)) for number in sessions(siege, 200)]
    heard = siege.tell("mal", "ann", *asks)
    assert sum(isinstance(each, Reconcile) for each in heard) == 200
    assert len(siege.room_at("ann").sync._answering) == 1
    siege.tell("mal", "ann", *asks * 30)
    assert siege.played("mal").ended == [Reason.FLOODING]
    goes_on(siege, "ann", "bob")


@pytest.mark.parametrize(
    ("ranges", "reason"),
    [
        (
            (Range(Bound(5, nobody(0)), None, (), False), Range(Bound(1, nobody(0)), None, (), False)),
            "malformed",
        ),
        ((Range(Bound(*END), bytes(32), (nobody(1),), False),), "malformed"),
        ((), "protocol_error"),
    ],
)
def test_ranges_that_make_no_sense_end_a_session(ranges: tuple[Range, ...], reason: str) -> None:
    siege, _ = room_with_mal(65, "ann", "bob")
    since = len(siege.notes.rows)
    heard = siege.tell("mal", "ann", Reconcile(siege.room, sessions(siege, 1)[0], ranges))
    assert [each for each in heard if isinstance(each, Reconcile)] == []
    assert siege.refusals("ann", since) == [reason]
    assert len(siege.room_at("ann").sync._answering) == 0


def test_ids_that_a_liar_lists_are_asked_for_a_few_times_and_forgotten() -> None:
    siege, _ = room_with_mal(66, "ann", "bob")
    lies = tuple(map(nobody, range(1, 257)))
    asked = Reconcile(siege.room, sessions(siege, 1)[0], (whole(None, *lies),))
    heard = siege.tell("mal", "ann", asked, seconds=1.0)
    assert siege.status("ann").missing == 256
    siege.run(60.0)
    heard += siege.played("mal").take()
    wants = [each for each in heard if isinstance(each, Want)]
    assert 256 <= sum(len(each.ids) for each in wants) <= 8 * 256
    assert siege.status("ann").missing == 0
    goes_on(siege, "ann", "bob")


def test_a_walk_that_never_ends_is_not_walked_for_ever() -> None:
    """`more` for ever, with what is known already, with nothing, or with what was not asked for."""
    siege, pen = room_with_mal(67, "ann", "bob")
    machine = siege.played("mal")
    known = tuple(siege.log("ann")[1:3])

    def for_ever(peer: PeerId, message: Message) -> list[Message]:
        if isinstance(message, Beyond):
            return [Further(siege.room, message.request, known, (), True, ())]
        if isinstance(message, AskControl):
            return [ControlPage(siege.room, message.request, known, (), True, (), (), None)]
        return []

    machine.answer = for_ever
    for number in range(5):
        siege.tell("mal", "ann", replace(pen.greet((nobody(number),), (nobody(number),)), answer=True))
        siege.run(10.0)
    asked = [each for each in machine.take() if isinstance(each, Beyond | AskControl)]
    watched = siege.watched("ann")
    effects = watched.effects
    siege.run(20.0)
    assert len(asked) <= 40
    assert watched.effects - effects < 100
    goes_on(siege, "ann", "bob")


def test_an_answer_with_other_events_than_asked_for_brings_nothing_else_in() -> None:
    siege, pen = room_with_mal(68, "ann", "bob")
    other = siege.get("bob", CreateRoom("other", newcomers=None), RoomMade).room
    siege.get("bob", SendToRoom(other, (b"elsewhere",)), Sent)
    foreign = tuple(siege.log_of("bob", other))
    lacking = pen.write(MESSAGE, None, b"w", siege.control(), deps=(nobody(1),), fork=True)
    machine = siege.played("mal")

    def other_things(peer: PeerId, message: Message) -> list[Message]:
        if isinstance(message, Want):
            return [Given(siege.room, message.request, foreign, (siege.identity["bob"].card,), (), None)]
        return []

    machine.answer = other_things
    before = siege.print("ann")
    since = len(siege.notes.rows)
    heard = siege.tell("mal", "ann", pen.data(lacking), seconds=40.0)
    assert set(siege.refusals("ann", since)) >= {"unknown_room"}
    assert siege.print("ann") == before
    asked = [each for each in heard if isinstance(each, Want)]
    assert 1 <= len(asked) <= 8
    machine.answer = None
    goes_on(siege, "ann", "bob")


def test_what_a_member_says_is_gone_is_still_asked_of_others() -> None:
    """A `Given` that says `retention`, about anything: no event is written off by that alone."""
    siege, _ = room_with_mal(69, "ann", "bob")
    before = siege.print("ann")
    ids = tuple(map(nobody, range(1, 1001)))
    siege.tell("mal", "ann", Given(siege.room, 7, (), (), ids, Reason.RETENTION))
    assert siege.room_at("ann").memory.expired == {}
    assert siege.print("ann") == before
