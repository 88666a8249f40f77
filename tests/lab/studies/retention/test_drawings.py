"""Plots of pools made by hand."""

from __future__ import annotations

from tests.lab.studies.retention.small_pools import SWEPT, pool_of

from linnet.lab.report.parts import Plot
from linnet.lab.studies.retention.drawings import classes_plot, held_plot, presences_plot
from linnet.lab.studies.retention.metrics import ALL, trade_of
from linnet.lab.studies.retention.recommending import recommend

CLASSES = (ALL, "dyads-lively", "large-slow")
POOL = pool_of(within=(10, 40, 80, 80), event_s=(0, 9, 99, 999), classes=CLASSES, margins=(1, 2))
TRADES = [trade_of(POOL, name, margin, SWEPT) for margin in (1, 2) for name in CLASSES]
ADVISED = {(trade.population, trade.margin): recommend(trade, 0.99) for trade in TRADES}


def words(plot: Plot | None) -> str:
    assert plot is not None
    return plot.svg


def test_presences_have_a_curve_each_and_retentions_are_named_once() -> None:
    svg = words(presences_plot(TRADES))
    assert [svg.count(f">{name}<") for name in ("margin 1", "margin 2", "1 h", "30 d", "unlimited")] == [
        1
    ] * 5
    assert ">none<" not in svg


def test_names_that_would_stand_on_each_other_give_way_to_the_longest() -> None:
    pool = pool_of(event_s=(0, 36_000, 72_100, 144_000))
    svg = words(presences_plot([trade_of(pool, ALL, 3, SWEPT)]))
    assert [svg.count(f">{name}<") for name in ("1 h", "30 d", "unlimited")] == [1, 0, 1]


def test_classes_have_a_curve_each_with_what_is_recommended() -> None:
    svg = words(classes_plot(TRADES[3:], ADVISED))
    assert "2 members, lively" in svg
    assert "more than 30 members, slow" in svg
    assert "all rooms" not in svg
    assert (svg.count(">30 d<"), svg.count(">1 h<")) == (2, 0)


def test_what_is_held_stands_beside_our_default() -> None:
    svg = held_plot([ADVISED[name, 1] for name in CLASSES]).svg
    assert "our default, 30 d" in svg
    assert "recommended" in svg
