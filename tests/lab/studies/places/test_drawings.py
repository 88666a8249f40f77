"""The plots are drawn of what was measured."""

from __future__ import annotations

from msgspec.structs import replace
from tests.lab.studies.places.views import SCALE

from linnet.lab.studies.places.drawings import large


def test_both_plots_or_none() -> None:
    drawn = list(large(SCALE))
    assert [each.title for each in drawn] == ["Seconds of each stage", "Variables behind a message"]
    assert "1,000 fragments" in drawn[0].caption
    assert list(large(replace(SCALE, costs=(), growth=()))) == []
