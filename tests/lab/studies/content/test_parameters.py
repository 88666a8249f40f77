"""What can be chosen, and what cannot."""

from __future__ import annotations

import pytest

from linnet.lab.errors import LabError
from linnet.lab.studies.content.parameters import ContentParameters


def test_what_is_published_is_run_unless_told_otherwise() -> None:
    assert ContentParameters().checked() == ContentParameters(
        nodes=(60,), staged=75, backups=(1, 2, 3, 5), long=30, repeats=1, seed=1
    )


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (ContentParameters(nodes=()), "--nodes"),
        (ContentParameters(nodes=(60, 3)), "--nodes"),
        (ContentParameters(nodes=(60, 60)), "each once"),
        (ContentParameters(staged=3), "--staged"),
        (ContentParameters(long=1), "--long"),
        (ContentParameters(backups=(9,)), "--backups"),
        (ContentParameters(repeats=0), "--repeats"),
    ],
)
def test_what_cannot_be_run_is_told(wrong: ContentParameters, told: str) -> None:
    with pytest.raises(LabError, match=told):
        wrong.checked()
