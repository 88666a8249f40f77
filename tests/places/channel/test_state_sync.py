"""Both ways of catching up end in the same state; the cheaper is chosen; a forged state is found out."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from tests.places.channel.lines import PLACE, delta_for, fresh, line, offer, seeds
from tests.raised import reason_of

from linnet.core.errors import RemoteError
from linnet.core.reasons import Reason
from linnet.places.catch_up import (
    Delta,
    Full,
    Pages,
    Plan,
    Unknown,
    pages,
    plan,
    plan_delta,
    plan_full,
)
from linnet.places.channel.packet import Modifier
from linnet.places.channel.state_order import NotTaken, StateOrder, Step
from linnet.places.config import PlacesConfig
from linnet.places.messages import STATE_PAGE_BYTES, StateIs


def _catch_up(order: StateOrder, planned: Plan, steps: list[Step]) -> None:
    """What an asker does: check and take the state by the hash of its message, then replay."""
    by_message = {step.message: step for step in steps}
    assert not isinstance(planned, Unknown)
    if isinstance(planned, Full):
        sha = by_message[planned.message].hash
        assert sha is not None
        assert not any(isinstance(each, NotTaken) for each in order.full(planned.message, planned.data, sha))
    for message in planned.replay:
        offer(order, by_message[message])


def _through_pages(planned: Plan) -> Plan | None:
    gathered = Pages()
    answer = None
    for page in pages(PLACE, 7, planned):
        assert answer is None
        answer = gathered.add(page)
    return answer


@given(seeds)
def test_full_and_delta_end_in_equal_state_and_the_cheaper_is_chosen(seed: int) -> None:
    luck = Random(seed)
    teller = fresh()
    steps = line(luck, luck.randint(1, 12), teller)
    known = luck.randint(0, len(steps))
    asked = steps[known - 1].message if known else 0
    delta, full, chosen = plan_delta(teller, asked), plan_full(teller, asked), plan(teller, asked)
    assert delta is not None
    assert chosen == (delta if full is None or delta.cost <= full.cost else full)
    for planned in (delta, full):
        if planned is not None:
            asker = fresh()
            for step in steps[:known]:
                offer(asker, step)
            _catch_up(asker, planned, steps)
            assert (asker.state.digest(), asker.applied) == (teller.state.digest(), teller.applied)
            assert asker.missing == ()


def _grown(values: int, size: int) -> StateOrder:
    """One variable that was set again and again, and the hash behind it."""
    order = fresh()
    for message in range(1, values + 1):
        modifiers = (Modifier("=", "_a", b"x" * size),)
        sha = order.digest_with(modifiers) if message == values else None
        order.offered(message, delta_for(order, message), modifiers, sha)
    return order


def test_many_changes_of_little_are_cheaper_in_full_and_one_change_of_much_by_delta() -> None:
    order = _grown(50, 100)
    assert isinstance(plan(order, 0), Full)
    order.offered(51, 1, (Modifier("=", "_b", b"y"),), order.digest_with((Modifier("=", "_b", b"y"),)))
    assert isinstance(plan(order, 49), Full)
    large = fresh()
    large.offered(1, 0, (Modifier("=", "_a", b"x" * 9000),))
    last = (Modifier("=", "_b", b"y"),)
    large.offered(2, 1, last, large.digest_with(last))
    assert isinstance(plan(large, 1), Delta)
    assert plan(large, 2) == Delta((), 0)


def test_behind_a_reset_only_what_came_since_is_replayed() -> None:
    order = fresh()
    order.offered(1, 0, (Modifier("=", "_a", b"1"),))
    order.offered(2, 1, (Modifier("=", "_b", b"1"),))
    order.offered(5, 0, (Modifier("=", "_c", b"1"),))
    order.offered(6, 1, ())
    planned = plan(order, 1)
    assert isinstance(planned, Delta)
    assert planned.replay == (5, 6)


def test_later_modifiers_apply_on_top_of_a_full_state_without_older_messages() -> None:
    teller = _grown(30, 50)
    teller.offered(40, 10, (Modifier("=", "_late", b"1"),))
    planned = plan(teller, 0)
    assert isinstance(planned, Full)
    assert (planned.message, planned.replay) == (30, (40,))
    asker = fresh()
    _catch_up(asker, planned, list(teller.steps))
    assert asker.state.variables == teller.state.variables
    assert asker.base == 30


def test_a_forged_full_state_is_detected_by_its_hash_and_a_right_one_taken_at_the_second_try() -> None:
    teller = _grown(30, 50)
    planned, sha = plan_full(teller, 0), teller.hash_of(30)
    assert planned is not None
    assert sha is not None
    forged = Full(planned.message, planned.data.replace(b"xxx", b"xyx"), (), planned.cost)
    asker = fresh()
    [refused] = asker.full(30, forged.data, sha)
    assert isinstance(refused, NotTaken)
    assert refused.reason == Reason.STATE_MISMATCH
    assert (asker.applied, asker.state.variables) == (0, {})
    asker.full(30, planned.data, sha)
    assert asker.state.variables == teller.state.variables


def test_a_teller_that_lacks_the_line_says_so() -> None:
    asker = fresh()
    teller = _grown(3, 10)
    asker.full(3, teller.state.encode(), teller.state.digest())
    asker.offered(4, 1, ())
    asker.rollback(4)
    assert isinstance(plan(asker, 0), Full)
    unsigned = fresh()
    unsigned.offered(2, 0, ())
    unsigned.offered(5, 3, ())
    assert plan(unsigned, 4) == Unknown()


@pytest.mark.parametrize(
    "size", [0, 1, STATE_PAGE_BYTES - 1, STATE_PAGE_BYTES, STATE_PAGE_BYTES + 1, 600_000]
)
def test_a_full_state_goes_in_pages_and_comes_back_whole(size: int) -> None:
    planned = Full(9, b"x" * size, (10, 11), size)
    told = pages(PLACE, 7, planned)
    assert all(len(page.data) <= STATE_PAGE_BYTES for page in told)
    assert [page.done for page in told] == [False] * (len(told) - 1) + [True]
    assert _through_pages(planned) == planned


def test_a_delta_and_an_excuse_are_one_page() -> None:
    assert _through_pages(Delta((4, 5), 0)) == Delta((4, 5), 0)
    assert _through_pages(Unknown()) == Unknown(Reason.NOT_HELD)


def _page(message: int, offset: int, data: bytes, done: bool = False) -> StateIs:
    return StateIs(PLACE, 7, message, (), offset, data, done, None)


@pytest.mark.parametrize(
    "bad", [_page(9, 1, b"x"), _page(9, 3, b"x"), _page(8, 2, b"x"), _page(9, 2, b""), _page(0, 2, b"x")]
)
def test_pages_out_of_order_of_two_states_or_without_end_are_refused(bad: StateIs) -> None:
    gathered = Pages()
    assert gathered.add(_page(9, 0, b"ab")) is None
    assert reason_of(RemoteError, gathered.add, bad) == Reason.MALFORMED


def test_pages_are_bounded() -> None:
    gathered = Pages(PlacesConfig(state_bytes=1024))
    gathered.add(_page(9, 0, b"x" * 7000))
    assert reason_of(RemoteError, gathered.add, _page(9, 7000, b"x" * 169)) == Reason.TOO_LARGE
