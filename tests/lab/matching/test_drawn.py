"""Records that are drawn: equal for equal seeds, of several kinds, some values more popular than others."""

from __future__ import annotations

from collections import Counter

from linnet.content.attribute_types.text import Words
from linnet.lab.matching.drawn import draw_records


def test_equal_seeds_draw_equal_records() -> None:
    assert draw_records(3, 50) == draw_records(3, 50)
    assert draw_records(3, 50) != draw_records(4, 50)


def test_values_have_a_falling_popularity() -> None:
    records = draw_records(1, 3000).records
    assert {stream for stream, _ in records} == {"stock", "sensor", "post"}
    symbols = Counter(
        condition.begins
        for _, found in records
        for name, condition in found.conditions
        if name == "symbol" and isinstance(condition, Words)
    )
    (_, most), *_, (_, least) = symbols.most_common()
    assert most > 10 * least
