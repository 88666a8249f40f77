"""The filter table: attributes apart, three generations."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from linnet.content.filter_table import GENERATIONS, FilterTable
from linnet.content.predicate import Predicate, read_attributes, read_predicate
from linnet.core.ids import PeerId
from linnet.testing.predicates import events_of, predicates

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
    assert table.asked("x").interested(event) == bool(wanted)
