"""How a room is joined: everyone is asked, one is listened to, and somebody's word is waited for."""

from __future__ import annotations

from linnet.core.effects import CancelTimer, Hold, Release, Send, SetTimer
from linnet.core.ids import Contact, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.rooms.joining import OWNER, Joining, JoiningEffect
from linnet.rooms.messages import AskControl, ControlPage
from linnet.testing.rooms import person, ticket_of

ROOM = TopicId(b"r" * 32)
OURS = EventId(b"j" * 32)
OTHER = EventId(b"o" * 32)
ANN, BEN, EVE = person("ann").peer, person("ben").peer, person("eve").peer
CARD = person("us").card
TICKET = ticket_of("ann", ROOM)
PATIENCE = Tick(OWNER, "patience", ROOM)
AGAIN = Tick(OWNER, "again", ROOM)


def attempt() -> Joining:
    contacts = (Contact(ANN, ("tls://ann:1",)), Contact(BEN, ()))
    return Joining(ROOM, 3, TICKET, contacts, False, CARD)


def page(*heads: EventId, reason: Reason | None = None) -> ControlPage:
    return ControlPage(ROOM, 1, (), (), False, heads, (), reason)


def asked(effects: list[JoiningEffect]) -> list[PeerId]:
    return [each.peer for each in effects if isinstance(each, Send)]


def test_everyone_is_dialled_at_once_and_asked_who_is_there() -> None:
    joining = attempt()
    effects = joining.begin({BEN: None, EVE: None}, 20.0)
    holds = [each for each in effects if isinstance(each, Hold)]
    assert [(hold.peer, hold.hints) for hold in holds] == [(ANN, ("tls://ann:1",)), (BEN, ())]
    assert asked(effects) == [BEN]
    assert effects[-1] == SetTimer(20.0, PATIENCE)
    assert joining.end() == [
        CancelTimer(PATIENCE),
        CancelTimer(AGAIN),
        *(Release(hold.peer, hold.purpose) for hold in holds),
    ]


def test_a_question_carries_who_we_are_and_by_what_we_come() -> None:
    joining = attempt()
    send, timer = joining.up(ANN)
    assert send == Send(ANN, AskControl(ROOM, 1, (), TICKET, CARD))
    assert isinstance(timer, SetTimer)
    assert timer.timer == AGAIN
    assert joining.more(ANN, (OTHER,))[0] == Send(ANN, AskControl(ROOM, 2, (OTHER,), TICKET, CARD))


def test_nobody_is_asked_who_was_not_named() -> None:
    joining = attempt()
    assert joining.up(EVE) == []
    assert not joining.wants(EVE, page(OTHER))
    assert joining.answering is None


def test_whoever_answers_first_is_listened_to_alone() -> None:
    joining = attempt()
    assert joining.wants(BEN, page(OTHER))
    assert not joining.wants(ANN, page(OTHER))
    assert joining.wants(BEN, page(OTHER))
    assert joining.answering == BEN


def test_a_refusal_is_remembered_and_takes_nobody_s_place() -> None:
    joining = attempt()
    assert not joining.wants(ANN, page(reason=Reason.BANNED))
    assert joining.last_reason is Reason.BANNED
    assert joining.answering is None
    assert joining.wants(BEN, page(OTHER))


def test_another_may_answer_when_the_one_who_did_is_gone() -> None:
    joining = attempt()
    assert joining.wants(BEN, page(OTHER))
    joining.down(ANN)
    assert not joining.wants(ANN, page(OTHER))
    joining.down(BEN)
    assert joining.wants(ANN, page(OTHER))


def test_after_a_silence_all_who_are_there_are_asked_again_and_anyone_may_answer() -> None:
    joining = attempt()
    assert joining.wants(BEN, page(OTHER))
    assert asked(joining.again({ANN: None, BEN: None, EVE: None})) == [ANN, BEN]
    assert joining.wants(ANN, page(OTHER))
    assert joining.again({}) == []  # a link that comes up asks


def test_once_our_join_is_made_no_more_pages_are_asked_for() -> None:
    joining = attempt()
    assert joining.wants(BEN, page(OTHER))
    joining.joined = OURS
    assert joining.up(ANN) == []
    assert not joining.wants(BEN, page(OTHER))
    joining.down(BEN)
    assert joining.answering == BEN  # our join is shown to it when it is back
    (timer,) = joining.again({ANN: None, BEN: None})
    assert isinstance(timer, SetTimer)
    assert timer.timer == AGAIN


def test_only_a_page_that_names_our_join_says_that_it_is_in_the_room() -> None:
    joining = attempt()
    assert not joining.is_taken(page(OURS))  # there is none yet
    joining.joined = OURS
    assert not joining.is_taken(page(OTHER))
    assert joining.is_taken(page(OTHER, OURS))
