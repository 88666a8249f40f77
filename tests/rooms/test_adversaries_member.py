"""People who were of a room and are not any more, or may no longer what they could."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from msgspec.structs import replace
from tests.rooms.intruder import Pen, events_of
from tests.rooms.siege import Siege

from linnet.core.ids import DeviceId, EventId
from linnet.core.inputs import Received
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.delivery.messages import Beyond, Bound, Data, Given, Range, Reconcile, Want
from linnet.delivery.set_reconciliation import END
from linnet.event.event import Verified
from linnet.identity.cards import issue_card, revoke
from linnet.identity.keys import SigningKey
from linnet.rooms.attachments import piece_of
from linnet.rooms.commands import KeepChunk, Sent, SetLevel, SetMembership
from linnet.rooms.config import RelayConfig, RelayPolicy, RoomsConfig
from linnet.rooms.event_types import (
    JOIN_RULES,
    MEMBER,
    NAME,
    POWER,
    REVOCATION,
    JoinRule,
    JoinRules,
    Member,
    Membership,
    Power,
    Revoked,
    member_key,
)
from linnet.rooms.messages import (
    AskControl,
    ChunkIs,
    ChunkPut,
    ChunkTaken,
    ChunkWant,
    ControlPage,
    Greet,
    Refused,
    RelaySend,
    RelayTaken,
    Resync,
    ResyncPage,
)
from linnet.sim.seeded_random import SeededEntropy

FLOOD = 3000 if os.environ.get("LINNET_SOAK") else 60
PIECE = b"a piece of a picture"
SMALL = RoomsConfig(flood_soft=8)
OPEN = RelayConfig(policy=RelayPolicy.OPEN, soft_failed=3)


def with_mal(*names: str, seed: int, level: int | None = None) -> tuple[Siege, Pen]:
    """A room that mal is in, with links to everyone, following the relay."""
    siege = Siege(*names, seed=seed, config=SMALL, relay=OPEN)
    siege.found(*names)
    siege.intruder()
    pen = siege.enter("mal", at=tuple(name for name in names if not name.startswith("r")))
    if level is not None:
        siege.get("ann", SetLevel(siege.room, level, person=siege.person("mal")), Sent)
    siege.run(1.0)
    for relay in (name for name in names if name.startswith("r")):
        siege.connect("mal", relay)
        siege.tell("mal", relay, pen.greet((), siege.control()), Resync(siege.room, 1, None, 256, True))
    pen.note(siege.log("ann"))
    return siege, pen


def person_key(siege: Siege, name: str) -> SigningKey:
    """What signs somebody's cards and revocations."""
    return SigningKey.generate(SeededEntropy(siege.seed, f"identity/{name}"))


def put_out(siege: Siege, membership: Membership) -> None:
    siege.get("ann", SetMembership(siege.room, siege.person("mal"), membership), Sent)
    siege.run(1.0)


def demote(siege: Siege, pen: Pen) -> None:
    siege.get("ann", SetLevel(siege.room, 0, person=siege.person("mal")), Sent)
    siege.run(1.0)
    pen.note(siege.log("ann"))


def bodies(heard: list[Message]) -> list[bytes]:
    """All that was said in whatever brought it."""
    units = [each.unit for each in heard if isinstance(each, Data)]
    for each in heard:
        units += getattr(each, "units", ())
    return [event.body for event in events_of(units) if event.kind == "message"]


def asked_for(siege: Siege, answers: list[Message]) -> None:
    """Who says that it knows better is asked, and told no heads but those by which it was put out."""
    refused, asked = answers
    assert isinstance(refused, Refused)
    assert isinstance(asked, AskControl)
    removal = siege.room_at("ann").view.get((MEMBER, member_key(siege.person("mal"))))
    assert removal is not None
    assert (asked.heads, asked.ticket) == (removal.control, None)


def shows_no_more_than_the_removal(siege: Siege, answers: list[Message]) -> None:
    """A member may tell who was removed that it was, and what it would have been shown before: no more."""
    (page,) = answers
    assert isinstance(page, ControlPage)
    removal = siege.room_at("ann").view.get((MEMBER, member_key(siege.person("mal"))))
    assert removal is not None
    control = siege.room_at("ann").control
    shown = [event.id for event in events_of(page.units)] + list(page.heads)
    assert all(each == removal.id or control.is_before(each, removal.id) for each in shown)
    assert (page.more, page.relays) == (False, ())


OUT = pytest.mark.parametrize(
    ("how", "why", "door"),
    [
        (Membership.BAN, Reason.BANNED, Reason.BANNED),
        (Membership.LEAVE, Reason.NOT_A_MEMBER, Reason.NOT_INVITED),
    ],
)


@OUT
@pytest.mark.parametrize("again", [False, True])
def test_who_is_put_out_gets_nothing_by_any_question(
    how: Membership, why: Reason, door: Reason, again: bool
) -> None:
    """With the link that was open at that moment, and with a new one; old events too."""
    siege, pen = with_mal("ann", "bob", "r0", seed=11)
    siege.get("ann", KeepChunk(siege.room, piece_of(PIECE).digest, PIECE), object)
    siege.say("ann", "before")
    siege.run(1.0)
    assert b"before" in bodies(siege.played("mal").take())
    known = tuple(event.id for event in events_of(siege.log("ann")))
    put_out(siege, how)
    if again:
        siege.disconnect("mal", "ann", "bob", "r0")
        siege.connect("mal", "ann", "bob", "r0")
    siege.get("ann", SetLevel(siege.room, 7, kind="tea"), Sent)
    siege.played("mal").take()
    siege.say("bob", "after")
    siege.run(1.0)
    assert bodies(siege.played("mal").take()) == []
    room, card = siege.room, pen.identity.card
    before = [siege.print(name) for name in ("ann", "bob", "r0")]
    made_up = (EventId(b"n" * 32),)
    for target in ("ann", "bob"):
        asked_for(siege, siege.tell("mal", target, pen.greet(made_up, made_up)))
        assert siege.tell("mal", target, Refused(room, None, why, "and you?")) == []
        (refused,) = siege.tell("mal", target, pen.greet((), siege.control()))
        assert isinstance(refused, Refused)
        assert (refused.event, refused.reason) == (None, why)
        for asked in (
            Want(room, 1, known),
            Beyond(room, 1, ()),
            Reconcile(room, 1, (Range(Bound(*END), bytes(32), (), False),)),
        ):
            assert siege.tell("mal", target, asked) == [
                Refused(room, None, Reason.NOT_A_MEMBER, "greet first")
            ]
        shows_no_more_than_the_removal(siege, siege.tell("mal", target, AskControl(room, 1, (), None, card)))
        assert siege.tell("mal", target, ChunkWant(room, (piece_of(PIECE).digest,))) == [
            ChunkIs(room, piece_of(PIECE).digest, None, Reason.NOT_A_MEMBER)
        ]
    (refused,) = siege.tell("mal", "r0", pen.greet())
    assert isinstance(refused, Refused)
    assert refused.reason is door
    assert siege.tell("mal", "r0", Want(room, 1, known)) == [Given(room, 1, (), (), known, why)]
    assert siege.tell("mal", "r0", Resync(room, 2, None, 256, True)) == [
        ResyncPage(room, 2, (), (), (), (), None, False, None, (), why)
    ]
    shows_no_more_than_the_removal(siege, siege.tell("mal", "r0", AskControl(room, 1, (), None, card)))
    assert siege.tell("mal", "r0", ChunkWant(room, (piece_of(PIECE).digest,))) == [
        ChunkIs(room, piece_of(PIECE).digest, None, why)
    ]
    assert siege.tell("mal", "r0", ChunkPut(room, piece_of(b"x").digest, b"x")) == [
        ChunkTaken(room, piece_of(b"x").digest, why)
    ]
    assert [siege.print(name) for name in ("ann", "bob", "r0")] == before


def test_who_is_banned_and_never_was_a_member_is_shown_nothing() -> None:
    siege = Siege("ann", "bob", "r0", seed=10)
    siege.found("ann", "bob", "r0")
    siege.intruder()
    put_out(siege, Membership.BAN)
    siege.connect("mal", "ann", "bob", "r0")
    greet = replace(siege.pen("mal").greet(), control=(EventId(b"n" * 32),))
    for target in ("ann", "bob"):
        (refused,) = siege.tell("mal", target, greet)
        assert isinstance(refused, Refused)
    for target in ("ann", "bob", "r0"):
        asked = AskControl(siege.room, 1, (), siege.ticket("ann").ticket, siege.identity["mal"].card)
        assert siege.tell("mal", target, asked) == [
            ControlPage(siege.room, 1, (), (), False, (), (), Reason.BANNED)
        ]


@pytest.mark.parametrize("target", ["ann", "bob", "r0"])
def test_who_says_to_be_somebody_who_was_put_out_is_shown_nothing(target: str) -> None:
    siege, pen = with_mal("ann", "bob", "r0", seed=9)
    put_out(siege, Membership.LEAVE)
    siege.intruder("eve")
    siege.connect("eve", target)
    eve = siege.identity["eve"]
    forged = replace(eve.card, person=siege.person("mal"))
    (page,) = siege.tell("eve", target, AskControl(siege.room, 1, (), None, forged))
    assert isinstance(page, ControlPage)
    assert (page.units, page.heads) == ((), ())
    assert page.reason in (Reason.BAD_SIGNATURE, Reason.UNKNOWN_DEVICE)
    stolen = AskControl(siege.room, 1, (), None, pen.identity.card)
    assert siege.tell("eve", target, stolen) == [
        ControlPage(siege.room, 1, (), (), False, (), (), Reason.UNKNOWN_DEVICE)
    ]


@OUT
def test_who_is_put_out_hears_that_and_nothing_after_it(how: Membership, why: Reason, door: Reason) -> None:
    siege, _ = with_mal("ann", "bob", "r0", seed=12)
    siege.played("mal").take()
    put_out(siege, how)
    siege.say("ann", "secret")
    siege.say("bob", "secret too")
    siege.run(5.0)
    heard = siege.played("mal").take()
    assert bodies(heard) == []
    pages = [each for each in heard if isinstance(each, ResyncPage)]
    assert [(page.units, page.reason) for page in pages] == [((), why)]
    told = events_of(each.unit for each in heard if isinstance(each, Data))
    assert {(event.kind, event.author) for event in told} == {(MEMBER, siege.person("ann"))}
    # Who asks, of a relay too, is shown that event with what it builds on, and not what came after it.
    siege.get("ann", SetLevel(siege.room, 7, person=siege.person("bob")), Sent)
    siege.run(1.0)
    for target in ("ann", "r0"):
        asked = AskControl(siege.room, 1, (), None, siege.identity["mal"].card)
        (page,) = [each for each in siege.tell("mal", target, asked) if isinstance(each, ControlPage)]
        shown = events_of(page.units)
        assert page.reason is None
        (last,) = page.heads
        assert shown[-1].id == last
        assert shown[-1].tail.key == member_key(siege.person("mal"))
        assert shown[-1].author == siege.person("ann")
        assert [event.kind for event in shown].count(POWER) == 1


def test_a_page_with_a_ban_and_what_was_said_after_it_is_not_passed_on_to_who_is_banned() -> None:
    """bob learns of the ban and of what followed at once, while mal is linked to him."""
    siege, _ = with_mal("ann", "bob", "r0", seed=13)
    siege.network.partition([[siege.peer("ann"), siege.peer("r0")], [siege.peer("bob"), siege.peer("mal")]])
    siege.run(1.0)
    put_out(siege, Membership.BAN)
    siege.say("ann", *(f"secret {number}" for number in range(20)))
    siege.played("mal").take()
    siege.network.heal()
    siege.run(60.0)
    assert siege.heard("bob")[-20:] == [f"secret {number}" for number in range(20)]
    assert bodies(siege.played("mal").take()) == []


# What is sent by who may no longer.


def sent_by(siege: Siege, made: Verified, target: str) -> Reason | None:
    """Why mal's event is not taken, or what else is said of it."""
    pen_card = siege.identity["mal"].card
    if target.startswith("r"):
        heard = siege.tell("mal", target, RelaySend(siege.room, 9, (made.unit,), (pen_card,)))
        (taken,) = [each for each in heard if isinstance(each, RelayTaken)]
        return taken.outcomes[0].reason if taken.reason is None else taken.reason
    heard = siege.tell("mal", target, Data(made.unit, 1, 0, 0, pen_card))
    refused = [each for each in heard if isinstance(each, Refused)]
    return refused[0].reason if refused else None


Writes = Callable[[Siege, Pen, tuple[EventId, ...]], Verified]


def message(siege: Siege, pen: Pen, heads: tuple[EventId, ...]) -> Verified:
    return pen.message("still here", heads, fork=True, time=pen.now_ms - 5000)


def name(siege: Siege, pen: Pen, heads: tuple[EventId, ...]) -> Verified:
    return pen.write(NAME, "", b"my room", heads, fork=True)


def kick(siege: Siege, pen: Pen, heads: tuple[EventId, ...]) -> Verified:
    return pen.member(siege.identity["bob"], Membership.LEAVE, heads, fork=True)


def ban(siege: Siege, pen: Pen, heads: tuple[EventId, ...]) -> Verified:
    return pen.member(siege.identity["bob"], Membership.BAN, heads, fork=True)


def power(siege: Siege, pen: Pen, heads: tuple[EventId, ...]) -> Verified:
    return pen.write(POWER, "", Power({siege.person("mal"): 50}), heads, fork=True)


def promotion(siege: Siege, pen: Pen, heads: tuple[EventId, ...]) -> Verified:
    return pen.write(POWER, "", Power({siege.person("mal"): 100}), heads, fork=True)


def rule(siege: Siege, pen: Pen, heads: tuple[EventId, ...]) -> Verified:
    return pen.write(JOIN_RULES, "", JoinRules(JoinRule.PUBLIC), heads, fork=True)


@OUT
@pytest.mark.parametrize("what", [message, name, kick, ban, power, rule])
@pytest.mark.parametrize("back_dated", [False, True])
def test_who_is_put_out_sends_in_vain(
    how: Membership, why: Reason, door: Reason, what: Writes, back_dated: bool
) -> None:
    """By itself, whatever it builds on: nobody who knows takes anything from it."""
    siege, pen = with_mal("ann", "bob", "r0", seed=14, level=50)
    old = siege.control()
    put_out(siege, how)
    before = [siege.print(name) for name in ("ann", "bob", "r0")]
    made = what(siege, pen, old if back_dated else siege.control())
    for target in ("ann", "bob", "r0"):
        assert sent_by(siege, made, target) is why
    siege.run(5.0)
    assert [siege.print(name) for name in ("ann", "bob", "r0")] == before


@pytest.mark.parametrize("what", [name, kick, ban, power])
def test_who_was_demoted_may_no_longer(what: Writes) -> None:
    siege, pen = with_mal("ann", "bob", "r0", seed=15, level=50)
    demote(siege, pen)
    before = [siege.print(name) for name in ("ann", "bob", "r0")]
    made = what(siege, pen, siege.control())
    for target in ("ann", "bob", "r0"):
        assert sent_by(siege, made, target) is Reason.NO_POWER
    siege.run(2.0)
    assert [siege.print(name) for name in ("ann", "bob", "r0")] == before


@pytest.mark.parametrize("what", [name, kick, ban, power])
def test_who_was_demoted_changes_nothing_by_building_on_what_was(what: Writes) -> None:
    """On old branches it is allowed, and so it is kept; what holds now is another thing."""
    siege, pen = with_mal("ann", "bob", "r0", seed=16, level=50)
    old = siege.control()
    demote(siege, pen)
    digests = [siege.state(name).digest for name in ("ann", "bob")]
    made = what(siege, pen, old)
    reasons = [sent_by(siege, made, target) for target in ("ann", "bob", "r0")]
    siege.run(2.0)
    assert reasons[0] is Reason.NO_POWER
    assert reasons[2] is (Reason.SOFT_FAILED if what in (kick, ban) else Reason.NO_POWER)
    assert [siege.state(name).digest for name in ("ann", "bob")] == digests
    view = siege.relay_room("r0").view
    assert view.level_of(siege.person("mal")) == 0
    assert view.membership(siege.person("bob")) is Membership.JOIN


@pytest.mark.parametrize("what", [promotion, kick, ban, rule])
def test_a_member_without_the_level_gets_none_by_saying_so(what: Writes) -> None:
    siege, pen = with_mal("ann", "bob", "r0", seed=17)
    before = [siege.print(name) for name in ("ann", "bob", "r0")]
    made = what(siege, pen, siege.control())
    for target in ("ann", "bob", "r0"):
        assert sent_by(siege, made, target) is Reason.NO_POWER
    siege.run(2.0)
    assert [siege.print(name) for name in ("ann", "bob", "r0")] == before


# Memberships that are forged or played again.


def test_a_join_is_for_whoever_signs_it_and_nobody_else() -> None:
    siege, pen = with_mal("ann", "bob", "r0", seed=18)
    siege.intruder("eve")
    ticket = siege.ticket("ann").ticket
    before = [siege.print(name) for name in ("ann", "bob", "r0")]
    joined = Member(Membership.JOIN, None, ticket)
    for_eve = pen.write(MEMBER, member_key(siege.person("eve")), joined, siege.control(), fork=True)
    for target in ("ann", "bob", "r0"):
        assert sent_by(siege, for_eve, target) is Reason.NOT_ALLOWED
    misspelt = pen.write(MEMBER, member_key(siege.person("mal")).upper(), joined, siege.control(), fork=True)
    for target in ("ann", "bob", "r0"):
        assert sent_by(siege, misspelt, target) is Reason.MALFORMED
    forged = replace(pen.member(siege.identity["mal"], Membership.LEAVE, siege.control(), fork=True).unit)
    forged = replace(forged, author=siege.person("bob"))
    since = len(siege.notes.rows)
    siege.tell("mal", "ann", Data(forged, 1, 0, 0, siege.identity["bob"].card))
    assert siege.refusals("ann", since) == ["unknown_device"]
    own = replace(forged, device=siege.identity["bob"].card.device)
    since = len(siege.notes.rows)
    siege.tell("mal", "ann", Data(own, 1, 0, 0, siege.identity["bob"].card))
    assert siege.refusals("ann", since) == ["bad_signature"]
    (taken,) = siege.tell("mal", "r0", RelaySend(siege.room, 5, (own,), (siege.identity["bob"].card,)))
    assert isinstance(taken, RelayTaken)
    assert taken.outcomes[0].reason is Reason.BAD_SIGNATURE
    siege.run(2.0)
    assert [siege.print(name) for name in ("ann", "bob", "r0")] == before


@pytest.mark.parametrize("how", [Membership.BAN, Membership.LEAVE])
def test_an_old_join_is_worth_nothing_when_it_is_played_again(how: Membership) -> None:
    siege, pen = with_mal("ann", "bob", "r0", seed=19)
    join = next(unit for unit in siege.log("ann") if unit.author == pen.identity.author)
    put_out(siege, how)
    siege.disconnect("mal", "ann", "bob", "r0")
    siege.connect("mal", "ann", "bob", "r0")
    before = [siege.print(name) for name in ("ann", "bob", "r0")]
    for target in ("ann", "bob"):
        assert siege.tell("mal", target, Data(join, 1, 0, 0, pen.identity.card)) == []
    (taken,) = siege.tell("mal", "r0", RelaySend(siege.room, 5, (join,), (pen.identity.card,)))
    assert isinstance(taken, RelayTaken)
    assert [outcome.reason for outcome in taken.outcomes] == [Reason.DUPLICATE]
    siege.say("ann", "not for mal")
    siege.run(2.0)
    assert bodies(siege.played("mal").take()) == []
    assert [one[0] for one in before] == [siege.print(name)[0] for name in ("ann", "bob", "r0")]
    assert siege.person("mal") not in siege.room_at("bob").view.joined()


@OUT
def test_a_ticket_does_not_undo_a_ban_but_does_a_kick(how: Membership, why: Reason, door: Reason) -> None:
    siege, pen = with_mal("ann", "bob", "r0", seed=20)
    ticket = siege.ticket("ann").ticket
    put_out(siege, how)
    join = pen.member(pen.identity, Membership.JOIN, siege.control(), ticket)
    reasons = [sent_by(siege, join, target) for target in ("r0", "ann")]
    expected = Reason.BANNED if how is Membership.BAN else None
    assert reasons == [expected, expected]
    siege.run(2.0)
    is_in = siege.person("mal") in siege.room_at("ann").view.joined()
    assert is_in is (how is not Membership.BAN)


def test_a_join_that_builds_on_what_was_before_the_ban_opens_nothing() -> None:
    siege, pen = with_mal("ann", "bob", "r0", seed=21)
    old, ticket = siege.control(), siege.ticket("ann").ticket
    put_out(siege, Membership.BAN)
    before = [siege.print(name) for name in ("ann", "bob", "r0")]
    for heads in (old, (EventId(siege.room),)):
        join = pen.member(pen.identity, Membership.JOIN, heads, ticket, fork=True)
        for target in ("ann", "bob", "r0"):
            assert sent_by(siege, join, target) in (Reason.BANNED, Reason.NOT_INVITED)
    assert [siege.print(name) for name in ("ann", "bob", "r0")] == before


# Through an accomplice, who is a member still.


def accomplice(siege: Siege) -> Pen:
    siege.intruder("eve")
    pen = siege.enter("eve", at=("ann",))
    if "r0" in siege.identity:
        siege.connect("eve", "r0")
        siege.tell("eve", "r0", pen.greet((), siege.control()))
    return pen


def settled(siege: Siege, *names: str) -> None:
    """Honest members agree, and what they say still arrives."""
    siege.say("ann", "we go on")
    siege.say("bob", "so we do")
    siege.run(40.0)
    assert len({siege.state(name).digest for name in names}) == 1
    for one in names:
        assert siege.heard(one)[-2:] == ["we go on", "so we do"]


def test_back_dated_messages_of_who_is_banned_are_kept_in_small_number_and_shown_to_nobody() -> None:
    siege, pen = with_mal("ann", "bob", "r0", seed=22)
    accomplice(siege)
    pen.note(siege.log("ann"))
    old = siege.control()
    put_out(siege, Membership.BAN)
    digest, card = siege.state("ann").digest, pen.identity.card
    texts = [pen.write("message", None, b"%d" % n, old, fork=True, time=pen.now_ms - n) for n in range(FLOOD)]
    since = len(siege.notes.rows)
    siege.tell("eve", "ann", *(Data(each.unit, 1, 0, 0, card) for each in texts), seconds=5.0)
    reasons = siege.refusals("ann", since)
    assert (reasons.count("soft_failed"), reasons.count("flooding")) == (8, FLOOD - 8)
    assert not any(body.isdigit() for name in ("ann", "bob") for body in siege.heard(name))
    assert siege.status("ann").soft_failed == 8
    assert siege.status("bob").soft_failed <= 8
    kept = siege.relay_room("r0").cache.usage.events
    for start in range(0, FLOOD, 250):
        units = tuple(each.unit for each in texts[start : start + 250])
        (taken,) = siege.tell("eve", "r0", RelaySend(siege.room, start, units, (card,)))
        assert isinstance(taken, RelayTaken)
        assert {outcome.reason for outcome in taken.outcomes} == {Reason.BANNED}
    assert siege.relay_room("r0").cache.usage.events == kept
    assert siege.state("ann").digest == digest
    settled(siege, "ann", "bob")


@pytest.mark.parametrize("deps", ["known", "unknown"])
def test_a_banned_admin_who_bans_on_old_branches_bans_nobody(deps: str) -> None:
    """Thousands of them: few are kept, and whatever is kept resolves to what held before."""
    siege, pen = with_mal("ann", "bob", "cid", "r0", seed=23, level=50)
    accomplice(siege)
    pen.note(siege.log("ann"))
    old = siege.control()
    put_out(siege, Membership.BAN)
    card, target = pen.identity.card, member_key(siege.person("bob"))
    on = {"known": None, "unknown": (EventId(b"n" * 32),)}[deps]
    bans = [
        pen.write(MEMBER, target, Member(Membership.BAN, str(n)), old, deps=on, fork=True)
        for n in range(FLOOD)
    ]
    siege.tell("eve", "ann", *(Data(each.unit, 1, 0, 0, card) for each in bans), seconds=5.0)
    control = siege.status("ann").control_events
    for start in range(0, FLOOD, 250):
        units = tuple(each.unit for each in bans[start : start + 250])
        siege.tell("eve", "r0", RelaySend(siege.room, start, units, (card,)))
    for name in ("ann", "bob", "cid"):
        view = siege.room_at(name).view
        assert view.membership(siege.person("bob")) is Membership.JOIN
        assert view.membership(siege.person("mal")) is Membership.BAN
        assert len(siege.room_at(name).control) <= control
        assert siege.status(name).soft_failed <= 8 + 8
    assert siege.relay_room("r0").view.membership(siege.person("bob")) is Membership.JOIN
    assert siege.status("r0").soft_failed <= 3 + 8
    settled(siege, "ann", "bob", "cid")


def test_one_control_event_that_lacks_a_cause_does_not_stop_the_room() -> None:
    """Any member may say one that is allowed: all others name it, and nobody can ever have its cause."""
    siege, pen = with_mal("ann", "bob", "cid", "r0", seed=27)
    device = DeviceId(b"no such ")
    revoked = Revoked(revoke(person_key(siege, "mal"), device, 1))
    lacking = (EventId(b"n" * 32),)
    word = pen.write(REVOCATION, device.hex(), revoked, siege.control(), deps=lacking, height=7)
    sent_by(siege, word, "ann")
    siege.run(2.0)
    for name in ("ann", "bob", "cid"):
        assert siege.control(name) == (word.head,)
    settled(siege, "ann", "bob", "cid")
    siege.offline("bob")
    siege.run(1.0)
    siege.online("bob")
    siege.run(5.0)
    settled(siege, "ann", "bob", "cid")
    for name in ("ann", "bob", "cid"):
        assert (siege.status(name).waiting, siege.status(name).missing) == (1, 1)


def test_bans_that_cross_are_settled_alike_whoever_hears_which_first() -> None:
    """mal bans bob before it hears that it is banned: nobody is sure, and all agree."""
    siege, pen = with_mal("ann", "bob", "cid", seed=24, level=50)
    old = siege.control()
    crossing = pen.member(siege.identity["bob"], Membership.BAN, old)
    siege.network.partition([[siege.peer("ann"), siege.peer("bob")], [siege.peer("cid"), siege.peer("mal")]])
    siege.run(1.0)
    put_out(siege, Membership.BAN)
    siege.tell("mal", "cid", pen.data(crossing))
    assert siege.room_at("cid").view.membership(siege.person("bob")) is Membership.BAN
    siege.network.heal()
    siege.run(60.0)
    for name in ("ann", "bob", "cid"):
        assert siege.room_at(name).view.membership(siege.person("bob")) is Membership.JOIN
    assert len({siege.state(name).digest for name in ("ann", "bob", "cid")}) == 1


# Cards.


def test_a_device_that_was_revoked_in_the_room_is_not_listened_to() -> None:
    siege, pen = with_mal("ann", "bob", "r0", seed=25)
    device = pen.identity.card.device
    old = siege.control()
    word = pen.write(REVOCATION, device.hex(), Revoked(revoke(person_key(siege, "mal"), device, 1)), old)
    for target in ("ann", "r0"):
        assert sent_by(siege, word, target) is None
    siege.run(1.0)
    siege.played("mal").take()
    siege.say("ann", "not for stolen devices")
    siege.run(1.0)
    assert bodies(siege.played("mal").take()) == []
    (refused,) = siege.tell("mal", "ann", pen.greet())
    assert isinstance(refused, Refused)
    assert refused.reason is Reason.CARD_REVOKED
    assert siege.tell("mal", "r0", Resync(siege.room, 2, None, 256, True)) == [
        ResyncPage(siege.room, 2, (), (), (), (), None, False, None, (), Reason.CARD_REVOKED)
    ]
    late = pen.message("hello", siege.control())
    assert sent_by(siege, late, "r0") is Reason.CARD_REVOKED
    assert siege.tell("mal", "ann", pen.data(late)) == [
        Refused(siege.room, None, Reason.NOT_A_MEMBER, "greet first")
    ]


@pytest.mark.parametrize("knows", ["the revocation", "nothing of it"])
def test_what_a_revoked_device_says_is_shown_to_nobody_whoever_passes_it_on(knows: str) -> None:
    """Its own links are refused; who is a member still brings its words."""
    siege, pen = with_mal("ann", "bob", "r0", seed=31)
    accomplice(siege)
    pen.note(siege.log("ann"))
    old, device = siege.control(), pen.identity.card.device
    word = pen.write(REVOCATION, device.hex(), Revoked(revoke(person_key(siege, "mal"), device, 1)), old)
    assert sent_by(siege, word, "ann") is None
    siege.run(1.0)
    pen.note(siege.log("ann"))
    heads = siege.control() if knows == "the revocation" else old
    late = pen.message("trust me", heads, fork=True)
    since = len(siege.notes.rows)
    siege.tell("eve", "ann", Data(late.unit, 1, 0, 0, pen.identity.card))
    (taken,) = siege.tell("eve", "r0", RelaySend(siege.room, 9, (late.unit,), (pen.identity.card,)))
    assert isinstance(taken, RelayTaken)
    assert [outcome.reason for outcome in taken.outcomes] == [Reason.CARD_REVOKED]
    refusal = Reason.CARD_REVOKED if knows == "the revocation" else Reason.SOFT_FAILED
    assert siege.refusals("ann", since) == [refusal]
    settled(siege, "ann", "bob")
    for name in ("ann", "bob"):
        assert "trust me" not in siege.heard(name)


@pytest.mark.parametrize("hours", [-1, 0, 1])
def test_a_revoked_device_makes_nobody_powerful_by_any_time_with_an_accomplice(hours: int) -> None:
    """Long after everyone has the revocation it writes on old heads, and who is of level 0 passes it on."""
    siege, pen = with_mal("ann", "bob", "cid", "r0", seed=30, level=100)
    accomplice(siege)
    pen.note(siege.log("ann"))
    old, device = siege.control(), pen.identity.card.device
    word = pen.write(REVOCATION, device.hex(), Revoked(revoke(person_key(siege, "mal"), device, 1)), old)
    assert sent_by(siege, word, "ann") is None
    siege.run(3600.0)
    before = siege.state("ann").digest
    time = word.events[0].time + hours * 3_600_000
    levels = {siege.person("mal"): 100, siege.person("eve"): 100}
    gift = pen.write(POWER, "", Power(users=levels), old, fork=True, time=time)
    rule = pen.write(JOIN_RULES, "", JoinRules(JoinRule.PUBLIC), (gift.head,), fork=True, time=time)
    for stolen in (gift, rule):
        siege.tell("eve", "ann", Data(stolen.unit, 1, 0, 0, pen.identity.card))
        siege.tell("eve", "r0", RelaySend(siege.room, 9, (stolen.unit,), (pen.identity.card,)))
    siege.run(60.0)
    relay = siege.relay_room("r0")
    assert relay.dag.knows(gift.head), "it came nowhere: this shows nothing"
    for view in (relay.view, *(siege.room_at(name).view for name in ("ann", "bob", "cid"))):
        assert view.level_of(siege.person("eve")) == 0
        assert view.join_rule() is JoinRule.INVITE
    assert {siege.state(name).digest for name in ("ann", "bob", "cid")} == {before}


def tells_nothing(heard: list[Message]) -> None:
    """Who we are is said to whoever may be a member; how far the room is, and who is in it, is not."""
    assert heard
    for each in heard:
        assert isinstance(each, Greet)
        assert (each.heads, each.control, each.events, each.contacts) == ((), (), 0, ())


def test_a_device_that_was_revoked_while_it_was_away_is_told_nothing_when_it_comes_back() -> None:
    siege, pen = with_mal("ann", "bob", seed=28)
    siege.disconnect("mal", "ann")
    device = pen.identity.card.device
    revoked = Revoked(revoke(person_key(siege, "mal"), device, 1))
    sent_by(siege, pen.write(REVOCATION, device.hex(), revoked, siege.control()), "bob")
    siege.run(1.0)
    siege.played("mal").take()
    siege.connect("mal", "ann")
    siege.say("ann", "not for stolen devices")
    siege.run(40.0)
    tells_nothing(siege.played("mal").take())


def test_who_was_only_told_of_is_told_nothing_before_it_has_greeted() -> None:
    """bob has heard of mal and never met it: it may have been put out since."""
    siege = Siege("ann", "bob", seed=29)
    siege.found("ann", "bob")
    siege.intruder()
    pen = siege.enter("mal", at=("ann",))
    siege.tell("mal", "ann", pen.greet(contacts=(siege.contact("mal"),)))
    told = replace(siege.pen("ann").greet(), contacts=(siege.contact("mal"),), answer=True)
    machine = siege.network.machine(siege.peer("bob"))
    machine.handle(Received(siege.peer("ann"), told), siege.network.now)
    assert siege.room_at("bob").neighbors.knows(siege.peer("mal"))
    put_out(siege, Membership.BAN)
    siege.played("mal").take()
    siege.connect("mal", "bob")
    siege.run(40.0)
    tells_nothing(siege.played("mal").take())


def test_a_card_that_has_ended_opens_no_door() -> None:
    siege, pen = with_mal("ann", "bob", "r0", seed=26)
    now = int(siege.network.now)
    ended = issue_card(person_key(siege, "mal"), pen.identity.peer, now - 90_000, now - 4000)
    siege.disconnect("mal", "ann", "r0")
    siege.connect("mal", "ann", "r0")
    for target in ("ann", "r0"):
        (refused,) = siege.tell("mal", target, replace(pen.greet(), card=ended))
        assert isinstance(refused, Refused)
        assert refused.reason is Reason.CARD_EXPIRED
    assert siege.tell("mal", "r0", Resync(siege.room, 2, None, 256, True)) == [
        ResyncPage(siege.room, 2, (), (), (), (), None, False, None, (), Reason.UNKNOWN_DEVICE)
    ]
