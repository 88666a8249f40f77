"""What must hold, and that it is seen when it does not."""

from __future__ import annotations

from typing import Any

import pytest

from linnet.lab.bins import NEVER
from linnet.lab.studies.relays.checks import checks
from linnet.lab.studies.relays.metrics import Pool

GOOD: dict[tuple[str, int, str, str], dict[int, int]] = {
    ("all", 1, "all", "events"): {0: 10},
    ("all", 1, "all", "periods"): {0: 6},
    ("all", 1, "p2p", "first_delivery"): {NEVER: 4, 0: 6},
    ("all", 1, "relays", "first_delivery"): {NEVER: 1, 0: 9},
    ("all", 1, "p2p", "return_reception"): {NEVER: 3, 0: 3},
    ("all", 1, "relays", "return_reception"): {NEVER: 3, 5: 3},
    ("all", 1, "relays", "later_than_p2p"): {0: 0},
    ("all", 1, "relays", "undelivered_though_online"): {0: 0},
}


def failing(**changes: Any) -> list[str]:  # noqa: ANN401
    cells = GOOD | {("all", 1, "relays", measure): bins for measure, bins in changes.items()}
    return [check.id for check in checks(Pool(cells)) if not check.ok]


def test_what_is_right_passes() -> None:
    assert failing() == []


@pytest.mark.parametrize(
    ("changes", "broken"),
    [
        ({"later_than_p2p": {0: 1}}, "relays.never-later"),
        ({"undelivered_though_online": {0: 2}}, "relays.reach"),
        ({"first_delivery": {NEVER: 5, 0: 5}}, "relays.undelivered"),
        ({"return_reception": {NEVER: 4, 0: 2}}, "relays.empty"),
        ({"first_delivery": {NEVER: 1, 0: 8}}, "relays.counted"),
    ],
)
def test_what_is_wrong_is_named(changes: dict[str, dict[int, int]], broken: str) -> None:
    assert failing(**changes) == [broken]
