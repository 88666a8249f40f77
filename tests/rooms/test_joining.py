"""An attempt to join: everyone is asked, one is listened to, and what is lost is asked for again."""

from __future__ import annotations

from tests.driven import Driven
from tests.rooms.bench import Bench

from linnet.core.effects import CancelTimer, Hold, Release, Send, SetTimer
from linnet.core.ids import Contact, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.rooms.joining import JoinEndDue, Joining, JoinRepeatDue
from linnet.rooms.messages import AskControl, ControlPage

ROOM = TopicId(b"r" * 32)
P, Q, STRANGER = (PeerId(bytes([number]) * 32) for number in (1, 2, 3))
CARD = Bench().who("ann").card
JOIN = EventId(b"j" * 32)
PURPOSE = f"join/{ROOM.hex()}"
PATIENCE, AGAIN = JoinEndDue(ROOM), JoinRepeatDue(ROOM)


def attempt() -> Driven:
    contacts = (Contact(P, ("tls://p:1",)), Contact(Q, ()))
    return Driven(lambda out: Joining(ROOM, 7, None, contacts, False, CARD, out))


def page(reason: Reason | None = None, heads: tuple[EventId, ...] = ()) -> ControlPage:
    return ControlPage(ROOM, 1, (), (), False, heads, (), reason)


def asks(request: int, peer: PeerId, *heads: EventId) -> list[object]:
    return [Send(peer, AskControl(ROOM, request, heads, None, CARD)), SetTimer(3.0, AGAIN)]


def test_everyone_is_turned_to_at_once_and_asked_when_there() -> None:
    joining = attempt()
    effects = joining.begin({Q: None}, 20.0)
    assert effects == [
        Hold(P, ("tls://p:1",), PURPOSE),
        Hold(Q, (), PURPOSE),
        *asks(1, Q),
        SetTimer(20.0, PATIENCE),
    ]
    assert joining.handle_link_up(P) == asks(2, P)
    assert joining.handle_link_up(STRANGER) == []


def test_the_first_that_shows_the_room_is_listened_to() -> None:
    joining = attempt()
    assert not joining.wants(STRANGER, page())
    assert not joining.wants(P, page(Reason.NOT_INVITED))
    assert joining.last_reason is Reason.NOT_INVITED
    assert joining.wants(Q, page())
    assert not joining.wants(P, page())
    assert joining.ask_page(Q, (JOIN,)) == asks(1, Q, JOIN)


def test_if_it_goes_away_another_is() -> None:
    joining = attempt()
    assert joining.wants(Q, page())
    joining.handle_link_down(P)
    assert not joining.wants(P, page())
    joining.handle_link_down(Q)
    assert joining.wants(P, page())


def test_who_does_not_answer_is_asked_again_and_so_are_the_others() -> None:
    joining = attempt()
    joining.wants(Q, page())
    assert joining.ask_again({P: None, STRANGER: None}) == asks(1, P)
    assert joining.answering is None
    joining.machine.joined = JOIN
    assert joining.ask_again({P: None}) == [SetTimer(3.0, AGAIN)]
    assert joining.handle_link_up(P) == []
    assert not joining.wants(P, page())


def test_a_page_that_names_our_join_says_that_it_is_taken() -> None:
    joining = attempt()
    assert not joining.is_taken(page(heads=(JOIN,)))
    joining.machine.joined = JOIN
    assert joining.is_taken(page(heads=(JOIN,)))
    assert not joining.is_taken(page())


def test_at_its_end_everything_is_let_go() -> None:
    ended = attempt().end()
    assert ended == [CancelTimer(PATIENCE), CancelTimer(AGAIN), Release(P, PURPOSE), Release(Q, PURPOSE)]
