"""What can be asked for."""

from __future__ import annotations

import pytest

from linnet.lab.errors import LabError
from linnet.lab.studies.places.parameters import PlacesParameters


@pytest.mark.parametrize(("fragments", "places"), [(10_000_000, 1905), (1_000_000, 190), (1000, 1), (1, 1)])
def test_a_log_is_cut_into_places(fragments: int, places: int) -> None:
    parameters = PlacesParameters(fragments=fragments).checked()
    assert parameters.places == places
    assert parameters.messages <= 5000
    if fragments >= 1000:
        assert abs(places * parameters.messages * 1.05 - fragments) < fragments / 50


@pytest.mark.parametrize(
    ("given", "told"),
    [({"logs": 0}, "--logs"), ({"fragments": -1}, "--fragments"), ({"ids": 0}, "--ids")],
)
def test_wrong_parameters_are_told(given: dict[str, int], told: str) -> None:
    with pytest.raises(LabError, match=told):
        PlacesParameters(**given).checked()
