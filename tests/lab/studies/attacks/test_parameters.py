"""What cannot be run is told before anything is."""

from __future__ import annotations

import pytest

from linnet.lab.errors import LabError
from linnet.lab.studies.attacks.parameters import NAMES, AttacksParameters


def test_all_attacks_and_some_of_them_can_be_asked_for() -> None:
    assert AttacksParameters().checked() == AttacksParameters()
    assert AttacksParameters(names=NAMES).checked().names == NAMES


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        (AttacksParameters(names=("silent", "bombs")), "--attacks bombs: one of silent, mute"),
        (AttacksParameters(repeats=0), "--repeats"),
        (AttacksParameters(repeats=1001), "--repeats"),
    ],
)
def test_what_cannot_be_run_is_told(parameters: AttacksParameters, told: str) -> None:
    with pytest.raises(LabError, match=told):
        parameters.checked()
