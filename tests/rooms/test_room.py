"""One room at a member: who is heard, what is believed of what is gone, who is put out."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.rooms.bench import Bench
from tests.rooms.circle import Circle

from linnet.core.effects import Dial, Send, SetTimer
from linnet.core.ids import EventId
from linnet.core.reasons import Reason
from linnet.delivery.causal_barriers import RecoveryDue
from linnet.delivery.messages import Beyond, Data, Further, Given, Want
from linnet.identity.text import Sort, to_text
from linnet.machine.commands import Declined
from linnet.peer.interface import Effect, Input, Start, Stop
from linnet.peer.peer import Peer
from linnet.rooms.commands import SendToRoom, SetLevel, SetMembership
from linnet.rooms.event_types import (
    MEMBER,
    NAME,
    POWER,
    RELAY,
    Member,
    Membership,
    Newcomers,
    Power,
    Relay,
    body_of,
    member_key,
)
from linnet.rooms.handshake import AnnounceDue
from linnet.rooms.messages import AskControl, ControlPage, Greet, Refused
from linnet.rooms.receipts import sign_room_receipt
from linnet.rooms.room_commands import FIRST_POWER
from linnet.rooms.room_status import name_of
from linnet.trace.records import Kind

NOWHERE = EventId(b"\x07" * 32)


def ask_for_missing(bench: Bench) -> list[Want]:
    """The time that a missing event may come by itself is over."""
    bench.now += 1.0
    effects = bench.fire(RecoveryDue(bench.id))
    return [each for name in ("bob", "cid") for each in bench.sent(name, Want, effects)]


def given(bench: Bench, request: int, *unknown: EventId, reason: Reason = Reason.RETENTION) -> Given:
    return Given(bench.id, request, (), (), unknown, reason)


# What is gone.


def test_nobody_says_unasked_that_an_event_is_gone() -> None:
    """Else anyone could have what is yet to come count as history, that no application is shown."""
    bench = Bench("bob", "cid")
    coming = bench.forge("bob")
    bench.hear("cid", given(bench, 1, coming.head))
    assert not bench.room.dag.satisfies(coming.head)
    assert bench.room.memory.expired == {}
    bench.bring("bob", coming)
    assert bench.shown() == [coming.head]


def test_who_was_not_asked_yet_is_not_believed_even_of_what_is_missing() -> None:
    bench = Bench("bob", "cid")
    missing = bench.forge("bob")
    after = bench.forge("bob", deps=(missing.head,))
    bench.bring("bob", after)
    (want,) = ask_for_missing(bench)
    bench.hear("cid", given(bench, want.request, missing.head))  # bob was asked
    effects = bench.hear("bob", given(bench, want.request, missing.head, reason=Reason.NOT_HELD))
    (again,) = bench.sent("cid", Want, effects)
    bench.hear("cid", given(bench, again.request, missing.head, reason=Reason.NOT_HELD))
    assert bench.room.memory.expired == {}
    assert bench.shown() == []
    bench.bring("bob", missing)
    assert bench.shown() == [missing.head, after.head]


def test_what_is_gone_at_one_is_asked_of_the_others_before_it_counts_as_gone() -> None:
    bench = Bench("bob", "cid")
    gone = bench.forge("bob")
    after = bench.forge("bob", deps=(gone.head,))
    bench.bring("bob", after)
    (want,) = ask_for_missing(bench)
    effects = bench.hear("bob", given(bench, want.request, gone.head))
    (again,) = bench.sent("cid", Want, effects)
    assert bench.shown() == []
    bench.hear("cid", given(bench, again.request, gone.head, reason=Reason.NOT_HELD))
    assert bench.shown() == [after.head]
    assert list(bench.room.memory.expired) == [gone.head]


def test_what_nobody_has_here_and_nobody_had_is_waited_for() -> None:
    bench = Bench("bob", "cid")
    bench.bring("bob", bench.forge("bob", deps=(NOWHERE,), height=9))
    (want,) = ask_for_missing(bench)
    effects = bench.hear("bob", given(bench, want.request, NOWHERE, reason=Reason.NOT_HELD))
    (again,) = bench.sent("cid", Want, effects)
    bench.hear("cid", given(bench, again.request, NOWHERE, reason=Reason.NOT_HELD))
    assert bench.shown() == []
    assert len(bench.room.intake.order) == 1


def test_what_was_refused_here_is_told_to_be_gone() -> None:
    """Nobody keeps it, so who waits for it, because something that counts depends on it, waits in vain."""
    bench = Bench("bob", "cid")
    refused = bench.forge("bob", POWER, "", body_of(Power()))
    after = bench.forge("bob", deps=(refused.head,))
    bench.bring("bob", refused, after)
    assert bench.shown() == [after.head]
    effects = bench.hear("cid", Want(bench.id, 5, (refused.head,)))
    assert bench.sent("cid", Given, effects) == [
        Given(bench.id, 5, (), (), (refused.head,), Reason.RETENTION)
    ]
    effects = bench.hear("cid", Want(bench.id, 6, (refused.head, NOWHERE)))
    assert bench.sent("cid", Given, effects) == [Given(bench.id, 6, (), (), (NOWHERE,), Reason.NOT_HELD)]


# Who is heard.


def test_who_comes_with_a_ticket_sees_control_events_and_nothing_else() -> None:
    bench = Bench()
    bench.say(SendToRoom(bench.id, (b"secret",)))
    bench.up("eve")
    ask = AskControl(bench.id, 4, (), bench.ticket(), bench.who("eve").card)
    (page,) = bench.sent("eve", ControlPage, bench.hear("eve", ask))
    assert len(page.units) == len(bench.room.control)
    assert not any(b"secret" in tail for unit in page.units for tail in unit.tails)
    assert bench.sent("eve", Given, bench.hear("eve", Want(bench.id, 1, bench.room.dag.heads))) == []


def test_news_of_strangers_change_nothing() -> None:
    bench = Bench("bob")
    message = bench.forge("bob")
    bench.up("eve")
    card = bench.who("bob").card
    before = (len(bench.room.dag), len(bench.room.control), len(bench.room.intake.order))
    eve = bench.who("eve")
    receipt = sign_room_receipt(eve.device, eve.card, bench.id, 1, bench.room.dag.heads, off=False)
    for news in (
        Given(bench.id, 1, (message.unit,), (card,), (NOWHERE,), Reason.RETENTION),
        Further(bench.id, 1, (message.unit,), (card,), True, ()),
        ControlPage(bench.id, 1, (message.unit,), (card,), True, (), (), None),
        receipt,
    ):
        effects = bench.hear("eve", news)
        assert [each for each in effects if not hasattr(each, "kind")] == []
    assert before == (len(bench.room.dag), len(bench.room.control), len(bench.room.intake.order))
    assert len(bench.room.receipts.all()) == 0


def test_a_receipt_of_somebody_else_is_heard_from_a_member_only_if_a_member_gave_it() -> None:
    bench = Bench("bob", "cid")
    for name, expected in (("eve", 0), ("cid", 1)):
        who = bench.who(name)
        heads = bench.room.dag.heads
        bench.hear("bob", sign_room_receipt(who.device, who.card, bench.id, 1, heads, off=False))
        assert len(bench.room.receipts.all()) == expected


# Who is put out.


def test_who_is_banned_is_put_out_of_everything_at_once() -> None:
    bench = Bench("bob", "cid")
    bob = bench.who("bob")
    bench.hear("bob", sign_room_receipt(bob.device, bob.card, bench.id, 1, bench.room.dag.heads, off=False))
    bench.say(SetMembership(bench.id, bob.author, Membership.BAN))
    assert list(bench.room.guests.by_peer) == [bench.link("cid")]
    assert len(bench.room.receipts.all()) == 0
    effects = bench.asked(SendToRoom(bench.id, (b"without bob",)))
    assert bench.sent("bob", Data, effects) == []
    assert len(bench.sent("cid", Data, effects)) == 1
    assert [each.reason for each in bench.sent("bob", Refused, bench.greet("bob"))] == [Reason.BANNED]


def test_a_banned_person_who_is_away_is_not_greeted_when_it_comes() -> None:
    """A greeting tells heads and where others may be dialled."""
    bench = Bench("bob", "cid")
    bench.down("bob")
    assert bench.room.neighbors.knows(bench.link("bob"))
    bench.say(SetMembership(bench.id, bench.who("bob").author, Membership.BAN))
    assert bench.sent("bob", Greet, bench.up("bob")) == []
    assert not bench.room.neighbors.knows(bench.link("bob"))


def test_who_is_let_in_again_is_known_again() -> None:
    bench = Bench("bob")
    person = bench.who("bob").author
    bench.say(SetMembership(bench.id, person, Membership.BAN))
    bench.say(SetMembership(bench.id, person, Membership.LEAVE))
    bench.bring("bob", bench.membership("bob", "bob", Membership.JOIN, bench.ticket()))
    assert [each.answer for each in bench.sent("bob", Greet, bench.greet("bob"))] == [True]
    message = bench.forge("bob")
    bench.bring("bob", message)
    assert bench.shown()[-1] == message.head


def test_who_is_invited_by_name_sees_control_events_and_nothing_else() -> None:
    bench = Bench()
    (secret,) = bench.say(SendToRoom(bench.id, (b"secret",)))
    bench.say(SetMembership(bench.id, bench.who("eve").author, Membership.INVITE))
    bench.up("eve")
    ask = AskControl(bench.id, 4, (), None, bench.who("eve").card)
    (page,) = bench.sent("eve", ControlPage, bench.hear("eve", ask))
    assert len(page.units) == len(bench.room.control)
    assert not any(b"secret" in tail for unit in page.units for tail in unit.tails)
    effects = bench.greet("eve")
    assert bench.sent("eve", Greet, effects) == []
    assert [each.reason for each in bench.sent("eve", Refused, effects)] == [Reason.NOT_A_MEMBER]
    assert bench.sent("eve", Given, bench.hear("eve", Want(bench.id, 1, (secret,)))) == []


def test_who_is_let_in_again_and_may_not_know_it_is_sought() -> None:
    bench = Bench("bob", "cid")
    bob = bench.who("bob")
    bench.say(SetMembership(bench.id, bob.author, Membership.BAN))
    assert not bench.room.neighbors.knows(bob.peer)
    bench.say(SetMembership(bench.id, bob.author, Membership.LEAVE))
    assert not bench.room.neighbors.knows(bob.peer)
    bench.bring("cid", bench.membership("bob", "bob", Membership.JOIN, bench.ticket()))
    assert bench.room.neighbors.knows(bob.peer)


def test_a_member_that_becomes_a_relay_is_served_as_a_relay() -> None:
    """Relays are shown control events; what people say they are given by its authors alone."""
    bench = Bench("bob", "rex")
    rex = bench.who("rex")
    assert rex.peer in bench.room.guests.members
    named = body_of(Relay(True, rex.author, ()))
    bench.bring("bob", bench.forge("bob", RELAY, to_text(Sort.DEVICE, rex.peer), named))
    assert rex.peer in bench.room.guests.members  # bob has no level to name it
    bench.name_relay("rex")
    assert rex.peer not in bench.room.guests.members
    (secret,) = bench.say(SendToRoom(bench.id, (b"secret",)))
    bench.greet("rex")
    effects = bench.hear("rex", Want(bench.id, 1, (secret, *bench.room.control.heads)))
    (answer,) = bench.sent("rex", Given, effects)
    assert [unit.tails for unit in answer.units if b"secret" in unit.tails[0]] == []
    assert answer.unknown == (secret,)
    effects = bench.hear("rex", Beyond(bench.id, 2, ()))
    assert [each.reason for each in bench.sent("rex", Refused, effects)] == [Reason.NOT_A_MEMBER]


def test_who_has_left_is_there_until_somebody_knows_it_and_then_serves_nobody() -> None:
    bench = Bench("bob")
    bench.down("bob")
    bench.say(SetMembership(bench.id, bench.who("ann").author, Membership.LEAVE))
    bench.restart()
    assert bench.room.is_present
    assert isinstance(bench.ask(SendToRoom(bench.id, (b"x",))), Declined)
    assert len(bench.sent("bob", Greet, bench.up("bob"))) == 1
    bench.greet("bob")
    (page,) = bench.sent("bob", ControlPage, bench.hear("bob", AskControl(bench.id, 1, (), None)))
    assert len(page.units) == len(bench.room.control)
    effects = bench.hear("bob", Refused(bench.id, None, Reason.NOT_A_MEMBER, "who are you"))
    assert bench.room.is_present  # it may not know us yet, and is shown and asked
    assert len(bench.sent("bob", Data, effects)) == 2  # that we came, and that we left
    assert len(bench.sent("bob", AskControl, effects)) == 1
    bench.hear("bob", ControlPage(bench.id, 1, (), (), False, bench.room.control.heads, (), None))
    assert not bench.room.is_present
    effects = bench.hear("bob", Want(bench.id, 1, bench.room.dag.heads))
    assert not bench.sent("bob", Given, effects)
    bench.restart()
    assert not bench.room.is_present


def test_who_was_put_out_asks_for_the_word_that_did_it() -> None:
    """It may have been away; as a member it would have been shown it, and all that it builds on."""
    bench = Bench("bob", "cid")
    bench.down("bob")
    (removal,) = bench.say(SetMembership(bench.id, bench.who("bob").author, Membership.LEAVE))
    bench.govern(POWER, "", body_of(FIRST_POWER))
    bench.up("bob")
    ask = AskControl(bench.id, 1, (), None, bench.who("bob").card)
    (page,) = bench.sent("bob", ControlPage, bench.hear("bob", ask))
    assert page.heads == (removal,)
    assert page.relays == ()
    assert len(page.units) == len(bench.room.control) - 1  # not what came after it
    left = bench.membership("cid", "cid", Membership.LEAVE)
    bench.bring("cid", left)
    ask = AskControl(bench.id, 1, (), None, bench.who("cid").card)
    (page,) = bench.sent("cid", ControlPage, bench.hear("cid", ask))
    assert page.heads == (left.head,)  # it is told that we know


def test_who_is_taken_for_a_stranger_asks_and_who_was_a_member_is_heard_out() -> None:
    bench = Bench("bob", "cid")
    effects = bench.hear("bob", Refused(bench.id, None, Reason.BANNED, "banned"))
    (ask,) = bench.sent("bob", AskControl, effects)
    assert ask.card == bench.who("ann").card
    bench.say(SetMembership(bench.id, bench.who("cid").author, Membership.LEAVE))
    greet = bench.greeting("cid", control=(NOWHERE,))
    effects = bench.hear("cid", greet)
    assert [each.reason for each in bench.sent("cid", Refused, effects)] == [Reason.NOT_A_MEMBER]
    assert len(bench.sent("cid", AskControl, effects)) == 1
    message = bench.forge("cid")
    before = len(bench.room.dag)
    bench.bring("cid", message)
    assert len(bench.room.dag) == before  # control events are heard, and nothing else
    bench.up("eve")
    effects = bench.hear("eve", bench.greeting("eve", control=(NOWHERE,)))
    assert not bench.sent("eve", AskControl, effects)


# State.


def test_a_name_counts_by_what_follows_it_once_that_is_known() -> None:
    """A control event that counts early may follow the name that it seems to stand against."""
    bench = Bench("bob", "cid")
    bob = bench.who("bob").author
    bench.govern(POWER, "", body_of(replace(FIRST_POWER, users={bob: 50})))
    name = bench.forge("bob", NAME, "", b"coffee")
    said = bench.forge("bob", deps=(name.head,))
    bench.bring("bob", name)
    assert name_of(bench.room) == "coffee"
    # bob leaves after all that: the leave is judged at once, and has its place when the rest has come
    leave = bench.forge("bob", MEMBER, member_key(bob), body_of(Member(Membership.LEAVE)), deps=(said.head,))
    bench.bring("bob", leave)
    assert bench.room.control.knows(leave.head)
    assert not bench.room.dag.knows(leave.head)
    assert name_of(bench.room) == "tea"  # nothing tells yet that the leave came later
    bench.bring("cid", said)
    assert bench.room.dag.knows(leave.head)
    assert name_of(bench.room) == "coffee"
    bench.restart()
    assert name_of(bench.room) == "coffee"


@pytest.mark.parametrize("count", [1, 3])
def test_control_pages_that_bring_nothing_new_are_asked_for_on_only_so_long(count: int) -> None:
    """As long as they may be about what we have; then it is a peer that never ends."""
    bench = Bench("bob")
    page = bench.room.backfill_server.build_control_page(AskControl(bench.id, 1, (), None), ())
    again = ControlPage(bench.id, 1, page.units[:count], page.cards, True, page.heads, (), None)
    most = 1 + len(bench.room.control) // count
    asked = [len(bench.sent("bob", AskControl, bench.hear("bob", again))) for _ in range(most + 1)]
    assert asked == [1] * most + [0]


def test_every_greeting_that_asks_for_one_is_answered() -> None:
    """The first answer may be lost; who has none does not listen to us."""
    bench = Bench("bob")
    for _ in range(2):
        assert [each.answer for each in bench.sent("bob", Greet, bench.greet("bob"))] == [True]
    assert not bench.sent("bob", Greet, bench.greet("bob", answer=True))


def test_who_is_linked_and_has_not_greeted_is_greeted_again() -> None:
    bench = Bench("bob")
    bench.down("bob")
    bench.up("bob")
    effects = bench.fire(AnnounceDue(bench.id))
    assert [each.answer for each in bench.sent("bob", Greet, effects)] == [False]


def test_a_node_that_stops_begins_nothing_again_as_its_links_go() -> None:
    bench = Bench("bob", "rex")
    rex = bench.who("rex")
    body = body_of(Relay(True, rex.author, ("tls://rex:1",)))
    bench.say(SetLevel(bench.id, 100, person=bench.who("bob").author))
    bench.bring("bob", bench.forge("bob", RELAY, to_text(Sort.DEVICE, rex.peer), body))
    assert bench.room.relays.chosen == (rex.peer,)
    bench.ask(Stop())
    for effects in (bench.down("bob"), bench.down("rex")):
        assert [each for each in effects if isinstance(each, Send | SetTimer | Dial)] == []
        assert bench.records(Kind.RESYNC, effects) == []
    assert not bench.room.relays.chosen
    # Whoever starts it again finds all as it was.
    bench.ask(Start())
    assert bench.room.relays.chosen == (rex.peer,)


class Drifting(Circle):
    """Bob's clock may be ahead."""

    ahead = 0.0

    def _machine(self, name: str) -> Peer:
        peer = super()._machine(name)
        right = peer.handle

        def handle(event: Input, now: float) -> list[Effect]:
            return right(event, now + (self.ahead if name == "bob" else 0.0))

        peer.handle = handle  # type: ignore[method-assign]
        return peer


@pytest.mark.parametrize("newcomers", [None, Newcomers.FROM_NOW])
def test_who_was_years_ahead_for_a_while_is_heard_again(newcomers: Newcomers | None) -> None:
    circle = Drifting("ann", "bob")
    circle.found("ann", "bob", newcomers=newcomers)
    circle.ahead = 3 * 365 * 86_400.0
    early = circle.ask("bob", SendToRoom(circle.room, (b"from the future",)), 30.0)
    circle.run(120.0)
    circle.ahead = 0.0
    circle.say("bob", "back")
    circle.run(10.0)
    assert circle.heard("ann") == ["back"]
    assert isinstance(early, Declined)
    assert early.reason is Reason.CARD_EXPIRED
