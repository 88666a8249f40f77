from __future__ import annotations

import pytest
from msgspec.structs import replace

from linnet.sim.rooms_report import RoomsReport

GOOD = RoomsReport(
    peers=2,
    relays=1,
    events=9,
    messages=3,
    declined=0,
    banned=0,
    demoted=0,
    offline_share=0.5,
    pairs=3,
    delivered_share=1.0,
    undelivered=(),
    first_return_share=1.0,
    return_pairs=2,
    unauthorised_delivered=0,
    endangered=1,
    soft_failed=1,
    distinct_states=1,
    states_wrong=0,
    causal_violations=0,
    duplicate_deliveries=0,
    ledger_lines=3,
    ledger_wrong=0,
    ledger_wrong_lines=(),
    ledger_pending=1,
    virtual_seconds=100.0,
    trace_sha256="00",
    wall_seconds=1.0,
)


def test_real_time_does_not_matter() -> None:
    again = replace(GOOD, wall_seconds=7.0)
    assert again == GOOD
    assert hash(again) == hash(GOOD)
    assert replace(GOOD, messages=4) != GOOD
    assert GOOD != "report"


@pytest.mark.parametrize(
    "wrong",
    [
        {"delivered_share": 0.99},
        {"unauthorised_delivered": 1},
        {"distinct_states": 2},
        {"states_wrong": 1},
        {"causal_violations": 1},
        {"duplicate_deliveries": 1},
        {"ledger_wrong": 1},
    ],
)
def test_one_wrong_number_is_enough(wrong: dict[str, float]) -> None:
    assert GOOD.ok
    assert not replace(GOOD, **wrong).ok
