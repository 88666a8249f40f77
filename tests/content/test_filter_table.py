"""The filter table: attributes apart, three generations."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.content.predicates import events_of, near, predicates

from linnet.content.filter_table import GENERATIONS, Filters, FilterTable
from linnet.content.predicate import Predicate, read_attributes, read_predicate
from linnet.core.ids import PeerId

A, B = PeerId(b"a" * 32), PeerId(b"b" * 32)
EVENT = read_attributes("apple/price=12/stock")


def test_an_event_follows_only_what_went_to_its_rendezvous() -> None:
    table = FilterTable()
    table.add(A, "stock", read_predicate("stock"))
    table.add(B, "apple", read_predicate("apple/stock"))
    assert table.interested("stock", EVENT) == [A]
    assert table.interested("apple", EVENT) == [B]
    assert table.interested("price", EVENT) == []
    assert table.attributes == ["stock", "apple"]


def test_a_filter_lives_two_periods_after_it_was_told_and_not_three() -> None:
    table = FilterTable()
    table.add(A, "stock", read_predicate("stock"))
    table.turn()
    table.turn()
    assert table.interested("stock", EVENT) == [A]
    table.turn()
    assert (table.interested("stock", EVENT), len(table), table.attributes) == ([], 0, [])


def test_who_tells_once_a_period_is_never_forgotten_whatever_its_clock() -> None:
    table = FilterTable()
    for told_early in (True, False, True, False, False, True):
        if told_early:
            table.add(A, "stock", read_predicate("stock"))
        table.turn()
        if not told_early:
            table.add(A, "stock", read_predicate("stock"))
        assert table.interested("stock", EVENT) == [A]


def test_what_is_told_again_in_a_new_period_is_not_covered_by_the_old() -> None:
    table = FilterTable()
    assert not table.add(A, "stock", read_predicate("stock")).covered
    assert table.add(A, "stock", read_predicate("stock/apple")).covered
    table.turn()
    assert not table.add(A, "stock", read_predicate("stock")).covered


def test_replacing_forgets_all_that_a_route_asked_for_before() -> None:
    table = FilterTable()
    table.add(A, "stock", read_predicate("stock"))
    table.turn()
    table.add(A, "stock", read_predicate("stock/apple"))
    table.add(B, "stock", read_predicate("stock"))
    assert table.replace(A, "stock", (read_predicate("stock/pear"),))
    assert table.interested("stock", EVENT) == [B]
    assert [each.text for each in table.asked("stock", but=B)] == ["pear/stock"]
    assert not table.replace(A, "apple", ())
    assert table.drop(B) == ["stock"]
    assert (table.pairs(), table.count(A, "stock"), table.routes("stock")) == (1, 1, [A])


@given(st.data())
def test_who_is_interested_is_what_a_scan_of_all_that_was_told_says(data: st.DataObject) -> None:
    table = FilterTable()
    told: list[tuple[int, PeerId, Predicate]] = []
    period = 0
    for _ in range(data.draw(st.integers(1, 12))):
        if data.draw(st.booleans()):
            route, predicate = data.draw(st.sampled_from((A, B))), data.draw(predicates())
            table.add(route, "x", predicate)
            told.append((period, route, predicate))
        else:
            table.turn()
            period += 1
    live = [(route, predicate) for at, route, predicate in told if period - at < GENERATIONS]
    event = data.draw(events_of(*(predicate for _, _, predicate in told))) if told else EVENT
    wanted = {route for route, predicate in live if predicate.covers(event)}
    assert set(table.interested("x", event)) == wanted
    assert (table.asked("x").covering(event) is not None) == bool(wanted)


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
    assert filters.covering(read_attributes("a/b/c"))
    assert filters.covering(read_attributes("d/x"))
    assert not filters.covering(read_attributes("a/b"))


def test_subtracting_takes_what_is_covered_and_nothing_else() -> None:
    filters = Filters()
    for text in ("a/p[0,5]", "p[0,10]/b", "c"):
        filters.add(read_predicate(text))
    assert [gone.text for gone in filters.subtract(read_predicate("p[0,7]"))] == ["a/p[0,5]"]
    assert texts(filters) == ["c", "b/p[0,10]"]


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
        assert (filters.covering(event) is not None) == any(each.covers(event) for each in added)


@given(st.lists(predicates(), max_size=8))
def test_no_filter_covers_or_could_be_merged_with_another(added: list[Predicate]) -> None:
    filters = Filters()
    for predicate in added:
        filters.add(predicate)
    kept = list(filters)
    for one in kept:
        for other in kept:
            assert one is other or (not one.covers(other) and one.merged(other) is None)
