"""Subscriptions around records: they accept them, and not much else."""

from __future__ import annotations

from linnet.lab.matching.drawn import draw_records
from linnet.lab.matching.subscribing import draw_predicate, widths_of
from linnet.sim.seeded_random import named_luck

RECORDS = draw_records(1, 400).records
WIDTHS = widths_of(RECORDS)


def test_a_subscription_accepts_the_record_that_it_is_drawn_around() -> None:
    for number, (stream, attributes) in enumerate(RECORDS):
        predicate = draw_predicate(stream, attributes, WIDTHS, named_luck(1, str(number)))
        assert predicate.covers(attributes), (predicate.text, attributes.text)


def test_a_subscription_accepts_little_else() -> None:
    accepted = 0
    for number, (stream, attributes) in enumerate(RECORDS):
        predicate = draw_predicate(stream, attributes, WIDTHS, named_luck(1, str(number)))
        accepted += sum(predicate.covers(other) for _, other in RECORDS)
    assert len(RECORDS) <= accepted < 2 * len(RECORDS)


def test_equal_luck_draws_equal_subscriptions() -> None:
    stream, attributes = RECORDS[0]
    texts = {draw_predicate(stream, attributes, WIDTHS, named_luck(1, "same")).text for _ in range(3)}
    assert len(texts) == 1


def test_widths_leave_out_what_lies_far_away() -> None:
    assert 0 < WIDTHS["sensor", "humidity"] < 80
    assert ("sensor", "city") not in WIDTHS
