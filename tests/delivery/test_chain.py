"""One chain: duplicates, forks, order, giving up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.delivery.voices import Voice, take

from linnet.core.errors import InvalidEvent
from linnet.core.ids import AuthorId, DeviceId, PeerId
from linnet.core.reasons import Reason
from linnet.delivery.chain import Chain, EarlyUnits, agreed_end
from linnet.event.event import Verified


def fork_of(error: pytest.ExceptionInfo[InvalidEvent]) -> bool:
    return error.value.reason is Reason.FORKED_CHAIN


def test_an_early_unit_waits_for_those_before_it() -> None:
    ann = Voice()
    first, second, third, fourth = ann.units(4)
    chain = ann.chain()
    assert take(chain, third) == []
    assert take(chain, fourth) == []
    assert chain.early == 2
    assert chain.missing() == [(0, 1)]
    assert take(chain, first) == [first]
    assert take(chain, second) == [second, third, fourth]
    assert chain.early == 0


def test_what_lies_before_our_time_never_gets_a_turn() -> None:
    ann = Voice()
    old, new = ann.units(2)
    chain = ann.chain(base=1)
    assert take(chain, old) == []
    assert chain.early == 0
    assert take(chain, new) == [new]


def test_a_live_event_is_worth_more_than_word_of_a_later_beginning() -> None:
    ann = Voice()
    first, second = ann.units(2)
    chain = ann.chain(base=7)
    chain.begin_earlier(0)
    assert take(chain, first) == [first]
    chain.begin_earlier(0)
    assert take(chain, second) == [second]


def test_a_beginning_stands_once_something_was_seen() -> None:
    ann = Voice()
    units = ann.units(3)
    chain = ann.chain(base=2)
    take(chain, units[2])
    chain.begin_earlier(0)
    assert chain.base == 2


def test_a_unit_that_overlaps_what_was_seen_is_a_fork() -> None:
    ann, twin = Voice(), Voice()
    chain = ann.chain()
    take(chain, ann.say(b"a", b"b"))
    twin.say(b"a")
    with pytest.raises(InvalidEvent) as error:
        take(chain, twin.say(b"other", b"more"))
    assert fork_of(error)
    assert chain.seen.ranges == [(0, 1)]


def test_a_unit_that_names_another_predecessor_is_a_fork() -> None:
    ann, twin = Voice(), Voice()
    chain = ann.chain()
    take(chain, ann.say(b"a"))
    twin.say(b"other")
    with pytest.raises(InvalidEvent) as error:
        take(chain, twin.say(b"b"))
    assert fork_of(error)
    assert chain.next == 1
    assert take(chain, ann.say(b"b")) != []


def test_a_fork_is_seen_behind_a_gap_and_after_a_restart() -> None:
    ann, twin = Voice(), Voice()
    head = ann.units(3)[-1]
    twin.units(2)
    twin.say(b"other")
    chain = ann.chain()
    chain.restore(1, 2, head.head)
    assert (chain.base, chain.next) == (1, 3)
    with pytest.raises(InvalidEvent) as error:
        take(chain, twin.say())
    assert fork_of(error)
    following = ann.say()
    assert take(chain, following) == [following]


def test_forgoing_a_range_lets_those_behind_it_go_on() -> None:
    ann = Voice()
    units = ann.units(6)
    chain = ann.chain()
    take(chain, units[0])
    take(chain, units[3])
    take(chain, units[5])
    assert chain.forgo(1, 2) == [units[3]]
    assert chain.missing() == [(4, 4)]
    assert chain.forgo(4, 4) == [units[5]]
    assert chain.next == 6
    late = chain.seen.covers(1, 2)
    assert late, "what was given up counts as seen, and comes as a duplicate"


def test_forgoing_leaves_nothing_behind() -> None:
    """Every give-up would otherwise leave an id for ever."""
    ann = Voice()
    chain = ann.chain()
    for _ in range(50):
        take(chain, ann.say())
        ann.say()
        last = ann.say()
        take(chain, last)
        chain.forgo(chain.next, chain.next)
    assert len(chain.seen) == 1
    assert chain.seen.head_at(chain.next - 2) is None


def test_announcements_show_what_is_missing_at_the_end() -> None:
    ann = Voice()
    chain = ann.chain()
    take(chain, ann.say())
    chain.announced = 4
    assert chain.missing() == [(1, 4)]
    assert chain.forget_hearsay() == (1, 4)
    assert chain.missing() == []
    assert chain.forget_hearsay() is None


def test_giving_up_on_an_announcement_does_not_silence_the_author() -> None:
    """One false announcement would otherwise make duplicates of all that is to come."""
    ann = Voice()
    first, second = ann.units(2)
    chain = ann.chain()
    take(chain, first)
    chain.announced = 2**62
    chain.doubted_by = 1
    chain.forget_hearsay()
    assert take(chain, second) == [second]
    assert not chain.doubted_by, "an event came, so the next claim is news"


def test_rebasing_skips_what_cannot_be_had() -> None:
    ann = Voice()
    units = ann.units(5)
    chain = ann.chain()
    take(chain, units[3])
    take(chain, units[4])
    assert chain.rebase(3) == [units[3], units[4]]
    assert (chain.base, chain.next) == (3, 5)
    assert chain.rebase(2) == []
    assert (chain.base, chain.next) == (3, 5)


def test_a_full_window_gives_up_the_hole_not_what_was_seen() -> None:
    ann = Voice()
    units = ann.units(10)
    chain = ann.chain(capacity=2)
    lost = [chain.accept(units[n], n, n) for n in (0, 2, 4, 6)]
    # Of 0 to 2 nothing is lost by itself; the hole at 1 is, when the range behind it goes.
    assert lost == [None, None, None, (1, 1)]


def test_the_hole_that_a_full_window_gives_up_stalls_nobody() -> None:
    ann = Voice()
    units = ann.units(10)
    chain = ann.chain(capacity=2)
    shown: list[Verified] = []
    for n in (0, 2, 4, 6, 8):
        hole = chain.accept(units[n], n, n)
        shown += chain.in_order(units[n], n, n)
        if hole is not None:
            shown += chain.forgo(*hole)
    assert shown == [units[0], units[2], units[4]]
    assert chain.missing() == [(5, 5), (7, 7)]
    assert len(chain.seen) <= 2


@given(st.permutations(range(12)), st.integers(min_value=1, max_value=3))
def test_any_order_of_arrival_gives_the_order_of_the_chain(order: list[int], size: int) -> None:
    ann = Voice()
    units = [ann.say(*(b"%d" % n for n in range(1 + number % size))) for number in range(12)]
    chain = ann.chain()
    shown: list[Verified] = []
    for number in order:
        shown += take(chain, units[number])
    assert shown == units
    assert chain.missing() == []
    assert len(chain.seen) == 1
    assert chain.early == 0


@pytest.mark.parametrize(
    ("claims", "end"),
    [
        ([7], (7, 1)),
        ([7, 2**40], (7, 2)),
        ([7, 7, 2**40], (7, 3)),
        ([5, 7, 2**40], (7, 2)),
        ([7, 2**40, 2**41], (2**40, 2)),
    ],
)
def test_how_far_a_chain_goes_is_what_half_of_those_say_who_say_so(
    claims: list[int], end: tuple[int, int]
) -> None:
    assert agreed_end(claims) == end


def test_only_so_many_claims_are_remembered_and_none_of_what_was_seen() -> None:
    chain = Chain(AuthorId(b"a" * 32), DeviceId(b"d" * 8), 0, 8)
    for number in range(20):
        chain.note_claim(PeerId(bytes([number]) * 32), number)
    assert len(chain.claims or ()) == 8


def test_what_was_held_and_is_not_due_is_let_go() -> None:
    ann = Voice()
    units = ann.units(5)
    chain = ann.chain(3)
    chain.held = True
    for number in (3, 0, 1, 4):
        assert take(chain, units[number]) == []
    assert chain.early == 4
    assert chain.release() == [units[3], units[4]]
    assert chain.early == 0


def test_what_is_let_go_when_its_chain_is_released_takes_no_room_any_more() -> None:
    ann, early = Voice(), EarlyUnits()
    old, _, new, _, later = ann.units(5)
    chain = Chain(ann.identity.author, ann.identity.card.device, 2, 100, early)
    chain.held = True
    for unit in (new, old, later):
        assert take(chain, unit) == []
    each = early.bytes // 3
    assert chain.release() == [new]
    assert (chain.early, early.bytes) == (1, each), "the later one waits"
    early.forget(chain.key)
    assert early.bytes == 0
    assert early.find_greediest() is None
