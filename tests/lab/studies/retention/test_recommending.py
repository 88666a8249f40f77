"""The rule and its reasons."""

from __future__ import annotations

import pytest
from tests.lab.studies.retention.small_pools import SWEPT, pool_of

from linnet.lab.studies.retention.metrics import ALL, trade_of
from linnet.lab.studies.retention.recommending import Recommendation, deciding, percent, recommend


def advice(within: tuple[int, ...], share: float = 0.99) -> Recommendation:
    return recommend(trade_of(pool_of(within=within), ALL, 3, SWEPT), share)


def test_the_shortest_that_serves_enough() -> None:
    assert advice((10, 40, 79, 80), share=0.5).name == "1 h"
    assert advice((10, 39, 79, 80), share=0.5).name == "30 d"
    assert advice((10, 99, 100, 100)).name == "1 h"
    assert advice((10, 98, 99, 100)).name == "30 d"


def test_the_reason_is_what_it_serves_and_holds_and_what_less_would() -> None:
    found = advice((10, 60, 99, 100))
    assert found.reason == (
        "serves 99.0 % of what unlimited retention serves, and holds 50.0 % of its event-hours; "
        "1 h would serve 60.0 %"
    )


def test_where_nothing_shorter_is_enough() -> None:
    found = advice((10, 40, 79, 80))
    assert found.name == "unlimited"
    assert found.reason == (
        "nothing shorter serves 99.0 % of what unlimited retention serves: 30 d would serve 98.8 %"
    )


@pytest.mark.parametrize(("within", "share"), [((80, 80, 80, 80), "100 %"), ((0, 0, 0, 0), "100 %")])
def test_where_nothing_need_be_held(within: tuple[int, ...], share: str) -> None:
    found = advice(within)
    assert found.name == "none"
    assert found.reason.startswith(f"{share} of what relays can serve at all is served at the sending")


def test_phones_decide_or_else_the_middle_margin() -> None:
    assert deciding([1, 2, 3, 4, 5]) == 3
    assert deciding([0, 1, 2, 3, 4, 5]) == deciding([0]) == 0


@pytest.mark.parametrize(
    ("share", "words"),
    [(0, "0 %"), (1, "100 %"), (0.5, "50.0 %"), (0.9999, "99.99 %"), (0.00001, "0.001 %"), (1e-9, "0.0 %")],
)
def test_nearly_all_is_not_all(share: float, words: str) -> None:
    assert percent(share) == words
