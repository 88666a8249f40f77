"""What the parts of the report look at."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from linnet.lab.studies.streams.view import View


def test_means_errors_and_penalties(view: View) -> None:
    assert view.delay("counter", 32) == pytest.approx(2 + 26 * 5 + 0.45)
    assert view.estimate("counter", 32) == pytest.approx(view.delay("counter", 32) + 2)
    assert view.error("counter", 32) == pytest.approx(100 * 2 / view.estimate("counter", 32))
    assert view.rdp("counter", 32) == pytest.approx(view.delay("counter", 32) / 68.64)
    assert view.mape("counter", 64) == pytest.approx(
        sum(view.error("counter", n) for n in view.sizes("counter")[1:]) / 6
    )
    assert view.mape("counter", 10_000) is None
    assert (view.largest, view.sizes("naive")[:2]) == (2048, [32, 64])


def test_growth_is_a_line_on_the_logarithm(view: View, cut: View) -> None:
    fit = view.growth("counter")
    assert fit is not None
    assert fit.slope == pytest.approx(26)
    assert fit.at(4096) == pytest.approx(2.45 + 26 * 12)
    assert view.growth("nobody") is None
    assert list(view.sampled()) == [6400]
    assert view.is_whole()
    assert not cut.is_whole()


def test_what_was_not_run_is_no_mode(whole: Callable[..., View], cut: View) -> None:
    assert whole().modes == ["counter", "naive", "aware"]
    assert cut.modes == ["counter"]
