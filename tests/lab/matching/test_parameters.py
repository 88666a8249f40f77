"""What can be chosen, and what cannot."""

from __future__ import annotations

import pytest

from linnet.lab.errors import LabError
from linnet.lab.matching.parameters import MatchParameters


def test_defaults_can_be_run() -> None:
    assert MatchParameters().checked() == MatchParameters()


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (MatchParameters(events=0), "--events"),
        (MatchParameters(subscriptions=10**9), "--subscriptions"),
        (MatchParameters(data="/no/such/folder"), "--data"),
        (MatchParameters(plain=10**6), "--plain"),
        (MatchParameters(sample=0), "--sample"),
        (MatchParameters(capacity=1), "--capacity"),
    ],
)
def test_what_cannot_be_run_is_told(wrong: MatchParameters, told: str) -> None:
    with pytest.raises(LabError, match=told):
        wrong.checked()
