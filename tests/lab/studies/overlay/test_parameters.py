"""Parameters that cannot be run are refused before anything is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from linnet.lab.errors import LabError
from linnet.lab.studies.overlay.parameters import OverlayParameters


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"nodes": 3}, "--nodes"),
        ({"topics": 1}, "--topics"),
        ({"subscriptions": 61}, "--subscriptions"),
        ({"attack_nodes": 9}, "--attack-nodes"),
        ({"filter_users": 2}, "--filter-users"),
        ({"ring_sizes": ()}, "--ring-sizes"),
        ({"growing": (0,)}, "--growing"),
        ({"scale": 7}, "--scale"),
        ({"data": "nowhere"}, "--data"),
    ],
)
def test_what_cannot_be_run(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(LabError, match=told):
        OverlayParameters(**wrong).checked()


def test_what_can(tmp_path: Path) -> None:
    assert OverlayParameters().checked() == OverlayParameters()
    assert OverlayParameters(data=str(tmp_path)).checked().data == str(tmp_path)
