"""Getting control events that a relay lacks."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from tests.rooms.relay.scenes import OPEN, card_of

from linnet.core.effects import CancelTimer, Send, SetTimer
from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.messages import Want
from linnet.machine.outbox import Effect, Outbox
from linnet.rooms.messages import AskControl, ControlPage
from linnet.rooms.relay.control_fetch import ControlFetch, FetchDue

ROOM = TopicId(b"r" * 32)
HEADS = (EventId(b"h" * 32),)
LACK, MORE = EventId(b"l" * 32), EventId(b"m" * 32)
ANN, BEN, CYD = PeerId(b"a" * 32), PeerId(b"b" * 32), PeerId(b"c" * 32)
TIMER = FetchDue(ROOM)
WAIT = OPEN.fetch_timeout


class Scene:
    """The questions of one room, each with all that comes of it."""

    def __init__(self) -> None:
        self.out = Outbox()
        self.fetch = ControlFetch(ROOM, OPEN, card_of("r0"), lambda: HEADS, self.out)

    def seek(
        self, ids: Iterable[EventId], source: PeerId | None, now: float, member: bool = True
    ) -> list[Effect]:
        self.fetch.seek_events(ids, source, now, member)
        return self.out.take()

    def ask_stranger(self, peer: PeerId, named: Iterable[EventId], now: float) -> list[Effect]:
        self.fetch.ask_stranger(peer, named, now)
        return self.out.take()

    def page(self, peer: PeerId, page: ControlPage, news: bool, now: float) -> tuple[list[Effect], bool]:
        is_done = self.fetch.handle_page(peer, page, news, now)
        return self.out.take(), is_done

    def given(self, peer: PeerId, now: float) -> list[Effect]:
        self.fetch.handle_given(peer, now)
        return self.out.take()

    def fire(self, candidates: Iterable[PeerId], now: float) -> tuple[list[Effect], list[EventId]]:
        lost = self.fetch.ask_next(candidates, now)
        return self.out.take(), lost

    def stop(self) -> list[Effect]:
        self.fetch.stop()
        return self.out.take()


def ask(peer: PeerId, number: int) -> Send[AskControl]:
    return Send(peer, AskControl(ROOM, number, HEADS, None, card_of("r0")))


def page(number: int, more: bool = False, reason: Reason | None = None) -> ControlPage:
    return ControlPage(ROOM, number, (), (), more, (), (), reason)


def test_who_named_it_is_asked_first() -> None:
    one = Scene()
    assert one.seek((LACK,), ANN, 0.0) == [ask(ANN, 1), SetTimer(WAIT, TIMER)]
    assert one.seek((LACK,), BEN, 0.5) == []
    assert one.fetch.sought == (LACK,)


def test_something_else_that_is_missing_is_asked_of_who_named_that() -> None:
    one = Scene()
    one.seek((LACK,), ANN, 0.0)
    assert one.seek((MORE,), BEN, 0.5) == [ask(BEN, 2)]
    assert one.seek((EventId(b"n" * 32),), BEN, 0.6) == []  # ben is being asked


def test_pages_are_asked_for_while_they_bring_something() -> None:
    one = Scene()
    one.seek((LACK,), ANN, 0.0)
    assert one.fetch.expects_answer(ANN, 1)
    assert one.page(ANN, page(1, more=True), True, 1.0) == ([ask(ANN, 1)], False)
    assert one.page(ANN, page(1, more=True), False, 1.0) == ([Send(ANN, Want(ROOM, 1, (LACK,)))], False)


def test_who_has_it_not_lets_the_next_have_its_turn_at_once() -> None:
    one = Scene()
    one.seek((LACK,), ANN, 0.0)
    one.page(ANN, page(1), False, 1.0)
    assert one.given(ANN, 1.0) == [SetTimer(0.0, TIMER)]
    assert not one.fetch.is_asking(ANN)
    assert one.fire([ANN, BEN], 1.0) == ([ask(BEN, 2), SetTimer(WAIT, TIMER)], [])


def test_who_refuses_is_passed_over() -> None:
    one = Scene()
    one.seek((LACK,), ANN, 0.0)
    assert one.page(ANN, page(1, reason=Reason.NOT_INVITED), False, 1.0) == ([SetTimer(0.0, TIMER)], True)
    assert not one.fetch.is_asking(ANN)


def test_after_so_many_turns_it_is_given_up() -> None:
    one = Scene()
    one.seek((LACK,), ANN, 0.0)
    now, asked = 0.0, [ANN]
    for turn in range(2, OPEN.fetch_tries + 1):
        now += WAIT
        effects, lost = one.fire([ANN, BEN, CYD], now)
        assert lost == []
        (send,) = [each for each in effects if isinstance(each, Send)]
        assert send == ask(send.peer, turn)
        asked.append(send.peer)
    assert asked == [ANN, BEN, CYD]
    assert one.fire([ANN, BEN, CYD], now + WAIT)[1] == [LACK]
    assert one.fetch.sought == ()


def given_up(one: Scene, now: float) -> float:
    """Let all turns pass without an answer; the time at which all is given up."""
    while one.fetch.sought:
        now += WAIT
        one.fire([], now)
    return now


def test_what_was_given_up_is_asked_for_ever_more_seldom() -> None:
    one = Scene()
    one.seek((LACK,), ANN, 0.0)
    asked = []
    now = given_up(one, 0.0)
    while now < 400.0:
        # Whatever comes names it again, all the time.
        if any(isinstance(each, Send) for each in one.seek((LACK,), ANN, now)):
            asked.append(now)
        now = given_up(one, now)
    pauses = [after - before for before, after in pairwise(asked)]
    assert pauses == sorted(pauses)
    assert 60.0 <= pauses[-1] <= 60.0 + 2 * OPEN.fetch_tries * WAIT
    assert len(asked) < 12


def test_neither_is_it_asked_for_by_id_meanwhile_and_the_rest_is() -> None:
    one = Scene()
    one.seek((LACK,), ANN, 0.0)
    now = given_up(one, 0.0)
    one.seek((LACK, MORE), ANN, now)
    wanted, _ = one.page(ANN, page(2), False, now)
    assert wanted == [Send(ANN, Want(ROOM, 2, (MORE,)))]


def test_what_came_after_all_or_under_another_clock_rests_no_more() -> None:
    one = Scene()
    one.seek((LACK,), ANN, 0.0)
    now = given_up(one, 0.0)
    one.fetch.note_found(LACK)
    assert one.seek((LACK,), ANN, now)[0] == ask(ANN, 2)
    now = given_up(one, now)
    assert one.seek((LACK,), ANN, now - 3600.0)[0] == ask(ANN, 3)


def test_so_much_that_was_given_up_is_remembered_and_not_more() -> None:
    one = Scene()
    lacks = [EventId(number.to_bytes(32, "big")) for number in range(1025)]
    one.seek(lacks, None, 0.0)
    now = given_up(one, 0.0)
    assert one.seek(lacks[1:], ANN, now) == [SetTimer(WAIT, TIMER)]
    assert one.seek(lacks[:1], ANN, now) == [ask(ANN, 1)]


def test_endless_pages_do_not_make_it_wait_for_ever() -> None:
    one = Scene()
    one.seek((LACK,), ANN, 0.0)
    now = 0.0
    lost: list[EventId] = []
    while not lost and now < 1000:
        now += 1.0
        if one.fetch.is_asking(ANN):
            one.page(ANN, page(1, more=True), True, now)
        lost = one.fire([], now)[1]
    assert lost == [LACK]
    assert now <= 5 * OPEN.fetch_tries * WAIT + OPEN.fetch_tries * WAIT


def test_what_was_found_is_sought_no_more() -> None:
    one = Scene()
    one.seek((LACK,), ANN, 0.0)
    one.fetch.note_found(LACK)
    assert one.page(ANN, page(1), True, 1.0) == ([], True)
    assert one.fire([BEN], WAIT) == ([], [])


def test_a_link_that_ends_takes_its_answer_along() -> None:
    one = Scene()
    one.seek((LACK,), ANN, 0.0)
    one.fetch.handle_link_down(ANN)
    assert not one.fetch.expects_answer(ANN, 1)
    assert one.stop() == [CancelTimer(TIMER)]
    assert one.stop() == []


def want(number: int, *ids: EventId) -> Send[Want]:
    return Send(CYD, Want(ROOM, number, ids))


def test_who_is_no_member_is_asked_for_what_it_named_and_not_told_our_heads() -> None:
    one = Scene()
    assert one.seek((LACK,), CYD, 0.0, member=False) == [want(1, LACK), SetTimer(WAIT, TIMER)]
    assert one.ask_stranger(CYD, (MORE,), 0.1) == []  # it is being asked
    one.fetch.note_found(LACK)
    one.seek((MORE,), CYD, 0.2, member=False)
    assert one.given(CYD, 0.3) == [want(1, MORE)]
    one.fetch.note_found(MORE)
    assert one.given(CYD, 0.4) == []
    assert not one.fetch.is_asking(CYD)


def test_a_page_of_who_is_no_member_ends_the_questions() -> None:
    one = Scene()
    assert one.ask_stranger(CYD, (LACK,), 0.0) == [want(1, LACK), SetTimer(WAIT, TIMER)]
    assert one.page(CYD, page(1, more=True), True, 1.0) == ([], True)


def test_who_is_no_member_and_names_more_and_more_is_let_go() -> None:
    one = Scene()
    one.seek((LACK,), CYD, 0.0, member=False)
    answers = 0
    while one.fetch.is_asking(CYD):
        one.seek((EventId(answers.to_bytes(32, "big")),), CYD, 0.1, member=False)
        one.given(CYD, 0.1)
        answers += 1
    assert answers == 64
