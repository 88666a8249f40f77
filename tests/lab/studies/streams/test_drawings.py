"""Every plot can be drawn, of a whole study and of a quick look."""

from __future__ import annotations

from linnet.lab.studies.streams import drawings
from linnet.lab.studies.streams.view import View


def test_plots_show_their_series(view: View) -> None:
    delays = drawings.delays(view)
    for label in ("counters", "naive", "half near", "WebRTC, published", "WebSocket, published"):
        assert label in delays.svg
    assert "equal" in drawings.accuracy(view).svg
    assert "published" in drawings.penalty(view).svg
    assert "2048" in drawings.distribution(view).svg
    assert "most" in drawings.hops(view).svg
    assert "upper bound" in drawings.diameters(view).svg
    assert view.randomness is not None
    assert "graphs" in drawings.pairs(view.randomness).svg
    (duplicates,), (growth,) = drawings.duplicates(view), drawings.growth(view)
    assert "d - 2" in duplicates.svg
    assert "larger graphs" in growth.svg


def test_a_quick_look_is_drawn_too(cut: View) -> None:
    assert "naive" not in drawings.delays(cut).svg
    assert "64" in drawings.distribution(cut).svg
