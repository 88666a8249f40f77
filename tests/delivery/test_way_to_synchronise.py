"""Which way to synchronise is taken, and that the estimates behave."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from linnet.delivery.set_reconciliation import Standing, Way, plan, reconcile_bytes, walk_bytes

sizes = st.integers(0, 1_000_000)


@st.composite
def standings(draw: st.DrawFn) -> Standing:
    heads = draw(st.integers(1, 256))
    return Standing(heads, draw(sizes), draw(st.integers(0, heads)))


@given(standings(), st.integers(1, 256), sizes)
def test_who_knows_all_their_heads_lacks_nothing(ours: Standing, heads: int, events: int) -> None:
    assert plan(ours, Standing(heads, events, 0)) is Way.NOTHING


@given(standings(), sizes, st.sampled_from([0, None]))
def test_who_is_only_behind_walks(theirs: Standing, events: int, unknown: int | None) -> None:
    expected = Way.WALK if theirs.unknown else Way.NOTHING
    assert plan(Standing(1, events, unknown), theirs) is expected


def test_a_short_history_is_cheaper_sent_again_than_compared() -> None:
    assert plan(Standing(1, 3, 1), Standing(1, 3, 1)) is Way.WALK


def test_who_went_on_apart_over_a_long_history_reconciles() -> None:
    ours, theirs = Standing(1, 100_000, 1), Standing(1, 100_000, 1)
    assert plan(ours, theirs) is Way.RECONCILE
    assert walk_bytes(ours, theirs) == 40_000_000
    assert 10_000 < reconcile_bytes(ours, theirs) < 30_000


def test_a_newcomer_walks_whatever_it_made_itself() -> None:
    """Nearly all is missing: to compare it first would only add to it."""
    assert plan(Standing(1, 1, 1), Standing(3, 100_000, 3)) is Way.WALK


def test_the_more_of_our_heads_they_know_the_cheaper_is_the_walk() -> None:
    theirs = Standing(4, 1_000, 1)
    costs = [walk_bytes(Standing(10, 1_000, unknown), theirs) for unknown in range(1, 11)]
    assert costs == sorted(costs)
    assert costs[-1] == 10 * costs[0]


@given(standings(), standings())
def test_neither_way_is_thought_cheaper_than_what_is_missing(ours: Standing, theirs: Standing) -> None:
    missing = 400 * max(0, theirs.events - ours.events)
    assert walk_bytes(ours, theirs) >= missing
    assert reconcile_bytes(ours, theirs) >= missing
