"""Every published figure has a measured one beside it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from linnet.lab.studies.streams.figures import figures, printed_sizes
from linnet.lab.studies.streams.view import View


def test_a_whole_study_leaves_no_published_figure_out(view: View) -> None:
    found = {figure.id: figure for figure in figures(view)}
    assert view.published.unused() == []
    assert found["delay.counter.2048"].published == 288
    assert found["delay.counter.2048"].measured == pytest.approx(288.45)
    assert "3.39 %" in found["mape.naive"].note
    assert "differ by +4" in found["gap.64"].note
    assert found["p99.counter.2048"].measured == 400
    assert found["long.counter.2048"].measured == pytest.approx(334.0)
    assert found["paths.lattice.32"].published is None
    assert found["redundancy.4"].measured == pytest.approx((64 * 2 + 1) / 63)


def test_a_quick_look_has_only_its_own_sizes(cut: View) -> None:
    found = {figure.id for figure in figures(cut)}
    assert "delay.counter.64" in found
    assert not any("2048" in id or "naive.32" in id for id in found)


def test_another_set_up_is_not_compared(view: View) -> None:
    other = replace(view, parameters=replace(view.parameters, latency="constant:20"))
    assert all(figure.published is None for figure in figures(other))
    assert printed_sizes(other) == []
