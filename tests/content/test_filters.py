"""The filters of a route stay few, and accept what they should."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from linnet.content.filter_table import Filters
from linnet.content.predicate import Predicate, read_attributes, read_predicate
from linnet.testing.predicates import events_of, near, predicates


def texts(filters: Filters) -> list[str]:
    return [each.text for each in filters]


def test_the_published_sequence() -> None:
    filters = Filters()
    for text in ("portugal", "soccer/goals[2,5]", "surf/bali/price[500,850]"):
        filters.add(read_predicate(text))
    steps = []
    for text in (
        "portugal/soccer",
        "soccer/goals[2,4]",
        "soccer/goals[2,7]",
        "soccer",
        "surf/bali/price[700,1000]",
        "surf/bali/price[400,600]",
        "Tesla/stock[10000,15000]",
    ):
        added = filters.add(read_predicate(text))
        steps.append((added.covered, added.stands.text, [gone.text for gone in added.removed]))
    assert steps == [
        (True, "portugal", []),
        (True, "goals[2,5]/soccer", []),
        (False, "goals[2,7]/soccer", ["goals[2,5]/soccer"]),
        (False, "soccer", ["goals[2,7]/soccer"]),
        (False, "bali/price[500,1000]/surf", ["bali/price[500,850]/surf"]),
        (False, "bali/price[400,1000]/surf", ["bali/price[500,1000]/surf"]),
        (False, "Tesla/stock[10000,15000]", []),
    ]
    assert texts(filters) == ["portugal", "soccer", "Tesla/stock[10000,15000]", "bali/price[400,1000]/surf"]


def test_a_merge_may_lead_to_another() -> None:
    filters = Filters()
    for text in ("p[0,10]", "p[20,30]", "p[40,50]"):
        filters.add(read_predicate(text))
    added = filters.add(read_predicate("p[10,40]"))
    assert (added.stands.text, added.covered, len(added.removed)) == ("p[0,50]", False, 3)
    assert texts(filters) == ["p[0,50]"]


def test_no_filter_of_the_events_own_size_is_left_out() -> None:
    filters = Filters()
    filters.add(read_predicate("a/b/c"))
    filters.add(read_predicate("d"))
    assert filters.interested(read_attributes("a/b/c"))
    assert filters.interested(read_attributes("d/x"))
    assert not filters.interested(read_attributes("a/b"))


def test_subtracting_takes_what_is_covered_and_nothing_else() -> None:
    filters = Filters()
    for text in ("a/p[0,5]", "p[0,10]/b", "c"):
        filters.add(read_predicate(text))
    assert [gone.text for gone in filters.subtract(read_predicate("p[0,7]"))] == ["a/p[0,5]"]
    assert texts(filters) == ["c", "b/p[0,10]"]
    assert filters.remove(read_predicate("c"))
    assert not filters.remove(read_predicate("c"))
    assert len(filters) == 1


@given(st.data())
def test_filters_accept_exactly_what_was_added(data: st.DataObject) -> None:
    added = data.draw(st.lists(predicates(), min_size=1, max_size=6))
    added += [data.draw(near(each)) for each in added]
    filters = Filters()
    for predicate in added:
        result = filters.add(predicate)
        assert result.stands.covers(predicate)
        assert result.stands in filters
        assert all(gone not in filters for gone in result.removed)
    for _ in range(3):
        event = data.draw(events_of(*added))
        assert filters.interested(event) == any(each.covers(event) for each in added)
        assert bool(filters.matching(dict(event.conditions))) == filters.interested(event)


@given(st.lists(predicates(), max_size=8))
def test_no_filter_covers_or_could_be_merged_with_another(added: list[Predicate]) -> None:
    filters = Filters()
    for predicate in added:
        filters.add(predicate)
    kept = list(filters)
    for one in kept:
        for other in kept:
            assert one is other or (not one.covers(other) and one.merged(other) is None)
