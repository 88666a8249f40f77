"""Reading a relay: pages in order, a cursor that never runs ahead, refusals and new beginnings."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace
from tests.driven import Driven
from tests.rooms.relay_voices import (
    ROOM,
    cursor,
    event_id,
    page,
    relay_id,
    resync_record,
    tick,
    unit,
)

from linnet.core.effects import AfterCommit, CancelTimer, Send, SetTimer
from linnet.core.reasons import Reason
from linnet.rooms.config import RoomsConfig
from linnet.rooms.messages import RelayCursor, Resync, ResyncPage
from linnet.rooms.relay_client.relay_session import Behind, Forgot, Page, RelayReading
from linnet.rooms.relay_statements import Reach, RelayStatement
from linnet.store.memory import MemoryStore
from linnet.trace.records import Kind, Record

RELAY = relay_id(0)
CONFIG = RoomsConfig(relay_timeout=5.0, announce_period=30.0, page_events=10)
WAIT = SetTimer(5.0, tick("answer", RELAY))
ANSWERED = CancelTimer(tick("answer", RELAY))
LOOK = SetTimer(30.0, tick("look", RELAY))
ASKED = resync_record(RELAY, "resync")


def reading(store: MemoryStore | None = None) -> Driven:
    cells = (store or MemoryStore()).cells
    return Driven(lambda out: RelayReading(ROOM, RELAY, CONFIG, cells, out))


def ask(request: int, at: RelayCursor | None) -> list[Any]:
    resync = Resync(ROOM, request, at, 10, follow=True, signed=True)
    return [ASKED, AfterCommit((Send(RELAY, resync),)), CancelTimer(tick("look", RELAY)), WAIT]


def handed(number: int, *numbers: int, more: bool = False) -> Page:
    return Page(RELAY, number, tuple(map(unit, numbers)), (), (), (), (), more)


def response(events: int = 0, reason: Reason | None = None) -> Record:
    return resync_record(RELAY, "resync-response", events, reason)


def read(one: Driven, answer: ResyncPage) -> list[Any]:
    effects, failure = take_page(one, answer)
    assert failure is None
    return effects


def take_page(one: Driven, answer: ResyncPage) -> tuple[list[Any], Reason | None]:
    failure = one.handle_page(answer)
    return one.out.take_said(), failure


def caught_up(store: MemoryStore | None = None) -> Driven:
    """A reading that has 1 and 2 and follows."""
    one = reading(store)
    one.begin()
    read(one, page(1, (unit(1), unit(2)), cursor(2)))
    one.confirm_page(1, ())
    return one


def test_pages_are_asked_for_one_after_the_other_and_the_cursor_is_stored_once_they_are_taken_in() -> None:
    store = MemoryStore()
    one = reading(store)
    assert one.begin() == ask(1, None)
    first = page(1, (unit(1), unit(2)), cursor(2), more=True)
    assert read(one, first) == [ANSWERED, response(2), handed(1, 1, 2, more=True)]
    assert one.cursor is None
    assert one.confirm_page(1, ()) == ask(2, cursor(2))
    assert one.cursor == reading(store).cursor == cursor(2)
    assert read(one, page(2, (unit(3),), cursor(3))) == [ANSWERED, response(1), handed(2, 3)]
    assert one.confirm_page(2, ()) == [LOOK]
    again = reading(store)
    assert again.begin() == ask(1, cursor(3))


def test_what_follows_moves_the_cursor_if_nothing_is_missing_before_it() -> None:
    one = caught_up()
    assert read(one, page(1, (unit(3),), cursor(3), after=cursor(2))) == [response(1), handed(2, 3)]
    assert one.confirm_page(2, ()) == []
    assert one.cursor == cursor(3)


def test_a_page_that_was_lost_on_the_way_is_seen_and_asked_for() -> None:
    one = caught_up()
    assert read(one, page(1, (unit(4),), cursor(4), after=cursor(3))) == [response(1), handed(2, 4)]
    assert one.confirm_page(2, ()) == ask(2, cursor(2))
    assert one.cursor == cursor(2)
    read(one, page(2, (unit(3), unit(4)), cursor(4)))
    assert one.confirm_page(3, ()) == [LOOK]
    assert one.cursor == cursor(4)


def test_what_follows_while_pages_are_outstanding_never_moves_the_cursor() -> None:
    one = reading()
    one.begin()
    read(one, page(1, (unit(1),), cursor(1), more=True))
    read(one, page(1, (unit(9),), cursor(9), after=cursor(1)))
    assert one.confirm_page(1, ()) == []
    assert one.confirm_page(2, ()) == ask(2, cursor(1))
    # An answer that was lost, and then a page that follows under the same number.
    read(one, page(2, (unit(10),), cursor(10), after=cursor(9)))
    assert one.confirm_page(3, ()) == []
    assert one.cursor == cursor(1)


def test_a_page_that_does_not_say_where_it_begins_is_handed_over_and_moves_nothing() -> None:
    one = caught_up()
    assert read(one, page(1, (unit(3),), cursor(3))) == [response(1), handed(2, 3)]
    assert one.confirm_page(2, ()) == []
    assert one.cursor == cursor(2)


def test_after_a_while_without_news_it_is_asked_once_more_without_a_record() -> None:
    one = caught_up()
    resync = AfterCommit((Send(RELAY, Resync(ROOM, 2, cursor(2), 10, follow=True, signed=True)),))
    assert one.look() == [resync, CancelTimer(tick("look", RELAY)), WAIT]
    assert one.look() == []
    assert read(one, page(2, (), cursor(2))) == [ANSWERED, handed(2)]
    assert one.confirm_page(2, ()) == [LOOK]
    one.look()
    assert read(one, page(3, (unit(3),), cursor(3))) == [ANSWERED, response(1), handed(3, 3)]


def test_after_quiet_it_is_asked_from_where_the_quiet_began_so_that_one_statement_covers_it() -> None:
    def signed(request: int, after: int, upto: int, *numbers: int) -> ResyncPage:
        said = RelayStatement(b"line one", 9, bytes(32), (), 0, (), (), Reach(after, upto, 0, ()), bytes(64))
        return replace(page(request, tuple(map(unit, numbers)), cursor(upto)), said=said)

    def asked_at() -> RelayCursor | None:
        sent = one.look()[0].effects[0].message
        assert isinstance(sent, Resync)
        return sent.cursor

    one = caught_up()
    assert asked_at() == cursor(2)
    for request, upto in ((2, 5), (3, 8), (4, 11)):  # The log grows by what happens in other rooms.
        read(one, signed(request, 2, upto))
        one.confirm_page(request, ())
        assert one.cursor == cursor(upto)
        assert asked_at() == cursor(2)
    read(one, signed(5, 2, 12, 12))
    one.confirm_page(5, ())
    assert asked_at() == cursor(12)


def test_it_is_asked_now_and_then_though_news_never_end() -> None:
    """So the relay learns that they arrived."""
    one = caught_up()
    for number in range(3, 9):
        read(one, page(1, (unit(number),), cursor(number), after=cursor(number - 1)))
        assert one.confirm_page(number - 1, ()) == []  # the timer of the last answer runs on
    assert one.look()[0] == AfterCommit(
        (Send(RELAY, Resync(ROOM, 2, cursor(8), 10, follow=True, signed=True)),)
    )
    read(one, page(1, (unit(9),), cursor(9), after=cursor(8)))
    read(one, page(2, (unit(9),), cursor(9)))
    assert one.confirm_page(8, ()) == []
    assert one.confirm_page(9, ()) == [LOOK]


def test_a_page_of_a_link_that_is_gone_stores_nothing() -> None:
    one = reading()
    one.begin()
    read(one, page(1, (unit(1),), cursor(1)))
    one.end()
    one.begin()
    read(one, page(2, (unit(1), unit(2)), cursor(2)))
    assert one.confirm_page(1, ()) == []
    assert one.cursor is None
    assert one.confirm_page(2, ()) == [LOOK]
    assert one.cursor == cursor(2)


def test_an_expired_cursor_begins_again_at_the_oldest() -> None:
    one = caught_up()
    one.end()
    assert one.begin() == ask(2, cursor(2))
    expired = page(2, reason=Reason.CURSOR_EXPIRED, oldest=cursor(7))
    assert read(one, expired) == [ANSWERED, response(0, Reason.CURSOR_EXPIRED), *ask(3, None)]
    assert one.cursor is None
    read(one, page(3, (unit(8),), cursor(8)))
    one.confirm_page(2, ())
    assert one.cursor == cursor(8)


def test_another_epoch_means_that_the_relay_has_lost_what_it_had() -> None:
    for oldest in (cursor(0, epoch=1), None):
        one = caught_up()
        one.end()
        one.begin()
        expired = page(2, reason=Reason.CURSOR_EXPIRED, oldest=oldest)
        refused = response(0, Reason.CURSOR_EXPIRED)
        assert read(one, expired) == [ANSWERED, refused, Forgot(RELAY), *ask(3, None)]


def test_a_page_of_another_epoch_is_taken_in_and_read_again_from_the_oldest() -> None:
    one = caught_up()
    one.end()
    one.begin()
    effects = read(one, page(2, (unit(5),), cursor(9, epoch=1)))
    assert effects == [ANSWERED, response(1), Forgot(RELAY), handed(2, 5)]
    assert one.confirm_page(2, ()) == ask(3, None)
    assert one.cursor is None


def test_a_relay_whose_epochs_never_agree_is_given_up() -> None:
    one = caught_up()
    failure = None
    request, taken = 1, 2
    one.end()
    one.begin()
    for epoch in range(1, 20):
        request += 1
        _, failure = take_page(one, page(request, (), cursor(1, epoch), more=True))
        if failure is not None:
            break
        one.confirm_page(taken, ())
        taken += 1
    assert (failure, epoch) == (Reason.CURSOR_EXPIRED, 7)
    first = reading()
    first.begin()
    assert take_page(first, page(1, reason=Reason.CURSOR_EXPIRED))[1] is Reason.CURSOR_EXPIRED


def test_a_relay_that_promises_more_and_never_gets_further_is_given_up() -> None:
    one = caught_up()
    one.end()
    one.begin()
    assert take_page(one, page(2, (), cursor(1), more=True))[1] is Reason.PROTOCOL_ERROR
    one.begin()
    assert take_page(one, page(3, (), None, more=True))[1] is Reason.PROTOCOL_ERROR
    one.begin()
    count, failure = 0, None
    while failure is None:
        _, failure = take_page(one, page(4 + count, (), cursor(2), more=True))
        one.confirm_page(4 + count, ())
        count += 1
    assert (count, failure) == (65, Reason.PROTOCOL_ERROR)


def test_who_may_only_be_behind_is_told_before_it_is_left() -> None:
    one = reading()
    one.begin()
    refusal = page(1, control=(event_id(1),), reason=Reason.NOT_A_MEMBER)
    told = [ANSWERED, response(0, Reason.NOT_A_MEMBER), WAIT, Behind(RELAY, (event_id(1),))]
    assert take_page(one, refusal) == (told, None)
    assert one.ask_again() == ask(2, None)
    assert one.ask_again() == []
    assert take_page(one, page(2, reason=Reason.NOT_A_MEMBER))[1] is Reason.NOT_A_MEMBER
    one.begin()
    take_page(one, page(3, reason=Reason.BANNED))
    one.ask_again()
    assert take_page(one, page(4, (), cursor(0))) == ([ANSWERED, response(), handed(1)], None)
    assert (one.refusal, one.answered) == (None, True)
    assert one.ask_again() == []
    other = reading()
    other.begin()
    assert take_page(other, page(1, reason=Reason.UNKNOWN_ROOM))[1] is Reason.UNKNOWN_ROOM


def test_who_is_followed_and_serves_us_no_longer_says_so_unasked() -> None:
    one = caught_up()
    effects = [ANSWERED, response(0, Reason.NOT_A_RELAY)]
    assert take_page(one, page(1, reason=Reason.NOT_A_RELAY)) == (effects, Reason.NOT_A_RELAY)
    two = caught_up()
    told = [ANSWERED, response(0, Reason.BANNED), WAIT, Behind(RELAY, ())]
    assert take_page(two, page(1, reason=Reason.BANNED)) == (told, None)
    assert two.ask_again() == ask(2, cursor(2))
    assert take_page(two, page(1, reason=Reason.BANNED)) == ([response(0, Reason.BANNED)], None)
    assert take_page(two, page(2, reason=Reason.BANNED))[1] is Reason.BANNED


def test_a_relay_that_lacks_control_events_is_named_once_for_the_same_heads() -> None:
    one = reading()
    one.begin()
    known, ours = (event_id(1),), (event_id(2),)
    read(one, page(1, (), cursor(0), control=known))
    assert one.confirm_page(1, ours) == [LOOK, Behind(RELAY, known)]
    read(one, page(1, (), cursor(0), control=known, after=cursor(0)))
    assert one.confirm_page(2, ours) == []
    read(one, page(1, (), cursor(0), control=known, after=cursor(0)))
    assert one.confirm_page(3, (event_id(3),)) == [Behind(RELAY, known)]
    read(one, page(1, (), cursor(0), control=(*known, *ours), after=cursor(0)))
    assert one.confirm_page(4, ours) == []


def test_pages_that_nobody_takes_in_are_bounded_and_fetched_later() -> None:
    one = caught_up()
    for number in range(3, 67):
        read(one, page(1, (unit(number),), cursor(number), after=cursor(number - 1)))
    dropped = Record(
        Kind.DROPPED, ROOM, events=1, peer=RELAY, reason=Reason.QUEUE_FULL, note="fetched again later"
    )
    assert read(one, page(1, (unit(67),), cursor(67), after=cursor(66))) == [dropped]
    for taken in range(2, 65):
        assert one.confirm_page(taken, ()) == []
    assert one.confirm_page(65, ()) == ask(2, cursor(66))
