"""Numbers as people read them."""

from __future__ import annotations

import numpy as np
import pytest

from linnet.lab.report.parts import Cell
from linnet.lab.report.words import bytes_text, cell_text, percent, seconds_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "\N{EN DASH}"),
        (True, "yes"),
        (76_000_000, "76,000,000"),
        ("words", "words"),
        (0.0, "0"),
        (68.64, "68.64"),
        (0.123456, "0.1235"),
        (1234.5678, "1,235"),
        (2.0, "2"),
        (100.0, "100"),
        (-0.5, "-0.5"),
        (0.0000123456, "1.23e-05"),
    ],
)
def test_cells(value: Cell, text: str) -> None:
    assert cell_text(value) == text


def test_numbers_of_numpy_read_the_same() -> None:
    assert cell_text(np.int64(2048)) == "2,048"  # type: ignore[arg-type]
    assert cell_text(np.float64(0.25)) == "0.25"


def test_differences_have_a_sign() -> None:
    assert [percent(value) for value in (5.25, -0.04, 12_345.6)] == ["+5.2 %", "-0.0 %", "+12,346 %"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (9.96, "10.0 s"), (59.7, "1 min 00 s"), (72.4, "1 min 12 s"), (3725, "1 h 02 min")],
)
def test_times(seconds: float, text: str) -> None:
    assert seconds_text(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"), [(12, "12 B"), (2048, "2 KiB"), (700 << 20, "700 MiB"), (3 << 29, "1.50 GiB")]
)
def test_memory(count: int, text: str) -> None:
    assert bytes_text(count) == text
