"""Every predicate is found by every event that it accepts, in one piece and no more."""

from __future__ import annotations

import pytest

from linnet.content.predicate import Predicate, read_attributes, read_predicate
from linnet.lab.matching.drawn import draw_records
from linnet.lab.matching.homes import Home, Plan, Rarity, Settlement, keys_of, make_plan, place_of
from linnet.lab.matching.subscribing import draw_predicate, widths_of
from linnet.sim.seeded_random import named_luck

RECORDS = draw_records(5, 300).records


@pytest.mark.parametrize(
    ("wide", "value"),
    [
        ("price[10,20)", "price=12.5"),
        ("price(,20)", "price=-7"),
        ("day[2026-11-01,2026-12-01)", "day=2026-11-16T08:30Z"),
        ('symbol="AA"*', 'symbol="AAPL"'),
        ('symbol="long enough"*', 'symbol="long enough to be cut"'),
        ('symbol=""*', 'symbol="é"'),
        ("at{36.9,-9.6,42.2,-6.1}", "at={38.7,-9.1}"),
        ("topic", "topic"),
    ],
)
def test_what_a_condition_accepts_lies_between_its_keys(wide: str, value: str) -> None:
    [(_, condition)] = read_predicate(wide).conditions
    [(_, exact)] = read_attributes(value).conditions
    low, high = keys_of(condition)
    assert low <= keys_of(exact)[0] <= high
    assert keys_of(exact)[0] == keys_of(exact)[1]


def test_a_home_is_the_condition_that_fewest_events_satisfy() -> None:
    said = [read_attributes(f'price={each}/stock/symbol="S{each % 2}"') for each in range(10)]
    rarity = Rarity(said)
    assert rarity.share(*read_predicate("price[2,4]").conditions[0]) == 0.3
    assert rarity.share(*read_predicate("stock").conditions[0]) == 1.0
    assert rarity.share(*read_predicate("stock[1,2]").conditions[0]) == 0.0
    assert rarity.home(read_predicate('price[2,4]/stock/symbol="S1"'))[0] == "price"
    assert rarity.home(read_predicate('price[0,8]/stock/symbol="S1"'))[0] == "symbol"
    assert rarity.home(read_predicate("stock/unheard"))[0] == "unheard"


def plan_of(predicates: list[Predicate], rarity: Rarity, capacity: int) -> Plan:
    living: dict[tuple[str, str], list[float]] = {}
    for predicate in predicates:
        name, condition = rarity.home(predicate)
        living.setdefault(place_of(name, condition), []).append(keys_of(condition)[0])
    return make_plan(
        [Settlement(*place, len(begins), tuple(sorted(begins))) for place, begins in living.items()], capacity
    )


def drawn(count: int) -> list[Predicate]:
    widths, luck = widths_of(RECORDS), named_luck(5, "predicates")
    found = [draw_predicate(*luck.choice(RECORDS), widths, luck) for _ in range(count)]
    topics = [read_predicate(text) for text in ("stock", "post", "sensor")]
    return [*found, *(topics[number % 3] for number in range(count // 5))]


@pytest.mark.parametrize("capacity", [10, 40, 10_000])
def test_events_meet_what_accepts_them_exactly_once(capacity: int) -> None:
    predicates = drawn(500)
    rarity = Rarity([found for _, found in RECORDS[::2]])
    plan = plan_of(predicates, rarity, capacity)
    pieces: dict[int, list[int]] = {}
    for number, predicate in enumerate(predicates):
        name, condition = rarity.home(predicate)
        for piece in plan.homes[place_of(name, condition)].of_range(*keys_of(condition), number):
            pieces.setdefault(piece, []).append(number)
    assert set(pieces) <= set(range(plan.pieces))
    for _, event in RECORDS:
        went = plan.of_event(event)
        assert len(set(went)) == len(went)
        met = [
            number for piece in went for number in pieces.get(piece, ()) if predicates[number].covers(event)
        ]
        assert sorted(met) == [number for number, each in enumerate(predicates) if each.covers(event)]


def test_pieces_are_of_about_the_capacity_and_small_homes_share() -> None:
    begins = tuple(float(each) for each in range(256))
    plan = make_plan(
        [
            Settlement("price", "NumberRange", 1000, begins),
            Settlement("stock", "Topic", 250, (0.0,) * 256),
            Settlement("a", "Words", 30, begins),
            Settlement("b", "Words", 40, begins),
            Settlement("c", "Words", 50, begins),
        ],
        100,
    )
    assert len(plan.homes["price", "NumberRange"].cuts) == 9
    assert plan.homes["stock", "Topic"] == Home(10, 3, ())
    assert plan.homes["c", "Words"].first == plan.homes["b", "Words"].first
    assert plan.homes["a", "Words"].first != plan.homes["b", "Words"].first
    assert plan.pieces == 15


def test_what_cannot_be_cut_stays_in_one_piece() -> None:
    plan = make_plan([Settlement("price", "NumberRange", 1000, (5.0,) * 256)], 100)
    assert plan.homes["price", "NumberRange"] == Home(0, 1, ())
