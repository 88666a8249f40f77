"""The plain loop says what the shipped voice says, to the byte."""

from __future__ import annotations

import pytest

from linnet.lab.studies.places import made, script
from linnet.lab.studies.places.voice import Spoken


def rows(said: list[Spoken]) -> list[made.Made]:
    found: list[made.Made] = []
    for verified, head in said:
        change = head.change
        told = (None, None, None) if change is None else (change.nym, change.joins, change.effective_since)
        numbers = (head.fragment, head.message, head.offset, head.generation, head.flags)
        found.append((*numbers, *told, verified.events[0].body))
    return found


@pytest.mark.parametrize(("seed", "place", "messages"), [(1, 0, 500), (1, 7, 500), (9, 3, 60), (2, 0, 1)])
def test_a_made_log_is_a_spoken_one(seed: int, place: int, messages: int) -> None:
    assert list(made.said_plainly(seed, place, messages)) == rows(script.spoken(seed, place, messages))


def test_a_log_comes_in_no_order_with_copies_and_losses() -> None:
    said = {row[0]: row for row in made.said_plainly(1, 0, 20_000)}
    batch = made.log_batch(1, 0, 20_000)
    columns = ("fragment", "message", "offset", "generation", "flags", "nym", "joins", "since", "body")
    came = list(zip(*(batch.column(name).to_pylist() for name in columns), strict=True))
    assert all(said[row[0]] == row for row in came)
    numbers = [row[0] for row in came]
    assert numbers != sorted(numbers)
    assert 0 < len(said) - len(set(numbers)) < 20
    assert 0.005 < 1 - len(set(numbers)) / len(numbers) < 0.015
    assert batch.column("arrival").to_pylist() == list(range(len(came)))
    assert batch.column("fault").null_count == len(came)
