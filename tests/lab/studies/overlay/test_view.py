"""What is read off a small study."""

from __future__ import annotations

import pytest

from linnet.lab.studies.overlay.view import View


def test_shares_hops_and_degrees(view: View) -> None:
    peak, end = view.peak("cyclon|hub|0.3"), view.end("cyclon|hub|0.3")
    assert peak is not None
    assert end is not None
    assert 0.3 < end <= peak <= 1.0
    assert view.peak("nothing") is None
    assert view.end("nothing") is None
    hops = view.hops(100, 3)
    assert hops is not None
    assert 2.0 < hops < 6.0
    assert view.hops(7, 3) is None
    assert (view.degree("id", 4), view.degree("hash", 4)) == (6.0, 7.6)
    assert view.degree_power("id") == pytest.approx(0.2075, abs=0.001)
    assert view.degree_power("nothing") is None
