from __future__ import annotations

from collections import Counter
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from linnet.overlay.pool import Pool


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 20))))
def test_it_holds_what_a_set_would_hold(steps: list[tuple[bool, int]]) -> None:
    pool: Pool[int] = Pool()
    model: set[int] = set()
    for is_added, element in steps:
        if is_added:
            pool.add(element)
            model.add(element)
        else:
            pool.discard(element)
            model.discard(element)
        assert sorted(pool) == sorted(model)
        assert all((number in pool) == (number in model) for number in range(21))


def test_all_suitable_elements_are_equally_likely() -> None:
    pool: Pool[int] = Pool()
    for element in range(100):
        pool.add(element)
    rng = Random(7)
    drawn = Counter(pool.draw(rng, lambda element: element % 10 == 3) for _ in range(5000))
    assert set(drawn) == set(range(3, 100, 10))
    assert all(400 < count < 600 for count in drawn.values())


def test_nothing_suitable_is_drawn_as_none() -> None:
    pool: Pool[int] = Pool()
    assert pool.draw(Random(1), lambda element: True) is None
    for element in range(100):
        pool.add(element)
    assert pool.draw(Random(1), lambda element: element == 100) is None
    assert pool.draw(Random(1), lambda element: element == 99) == 99
