"""What must hold does, and what does not is told."""

from __future__ import annotations

import pytest
from tests.lab.studies.retention.small_pools import SWEPT, pool_of

from linnet.lab.bins import NEVER
from linnet.lab.relays.outcomes import EVERY_MODE, FIRST_DELIVERY
from linnet.lab.report.parts import Check
from linnet.lab.studies.relays.metrics import Pool
from linnet.lab.studies.retention.checks import checks, no_later
from linnet.lab.studies.retention.metrics import ALL, trade_of


def found(pool: Pool) -> dict[str, Check]:
    return {check.id: check for check in checks(pool, [trade_of(pool, ALL, 3, SWEPT)])}


def failed(pool: Pool) -> dict[str, str]:
    return {id: check.detail for id, check in found(pool).items() if not check.ok}


def test_all_hold() -> None:
    assert failed(pool_of()) == {}
    assert len(found(pool_of())) == 8


@pytest.mark.parametrize(
    ("pool", "id", "detail"),
    [
        (
            pool_of(within=(10, 40, 39, 80)),
            "retention.pairs",
            "all rooms, margin 3: 30 d has 69, 1 h 70",
        ),
        (pool_of(within=(10, 40, 39, 80)), "retention.owed", "all rooms, margin 3: 30 d has 39, 1 h 40"),
        (pool_of(event_s=(0, 5, 9, 8)), "retention.events", "all rooms, margin 3: unlimited has 8, 30 d 9"),
        (pool_of(event_s=(0, 5, 9, 8)), "retention.bytes", "unlimited has 2,000, 30 d 2,250"),
        (
            pool_of(undelivered=(3, 4, 2, 2)),
            "retention.undelivered",
            "all rooms, margin 3: 1 h has 4, none 3",
        ),
        (pool_of(undelivered=(3, 4, 2, 2)), "retention.between", "all rooms, margin 3: 1 h"),
    ],
)
def test_what_grows_must_grow(pool: Pool, id: str, detail: str) -> None:
    assert failed(pool)[id].endswith(detail)


def test_unlimited_serves_all_who_ever_come() -> None:
    pool = pool_of()
    pool.cells[ALL, 3, EVERY_MODE, "pairs_ever"] = {0: 111}
    assert failed(pool) == {"retention.unlimited": "all rooms, margin 3: 110 served, 111 there"}
    pool = pool_of()
    pool.cells[ALL, 3, EVERY_MODE, "owed_ever"] = {0: 79}
    assert failed(pool) == {"retention.unlimited": "all rooms, margin 3: 80 served, 79 there"}


def test_no_delivery_is_earlier_than_with_relays_that_forget_nothing() -> None:
    pool = pool_of()
    pool.cells[ALL, 3, "unlimited", FIRST_DELIVERY] = {NEVER: 2, 7: 48}
    assert failed(pool) == {"retention.between": "all rooms, margin 3: none"}


def test_events_are_counted_once() -> None:
    pool = pool_of()
    pool.cells[ALL, 3, "3600000ms", FIRST_DELIVERY] = {NEVER: 5, 0: 44}
    assert failed(pool)["retention.counted"] == "all rooms, margin 3: 1 h"


def test_no_later_is_at_every_time() -> None:
    assert no_later({1: 1, 5: 1, NEVER: 1}, {1: 1, 5: 1, NEVER: 1})
    assert no_later({1: 2, NEVER: 1}, {2: 1, 9: 1, NEVER: 1})
    assert not no_later({1: 1, 9: 1}, {2: 2})
    assert not no_later({1: 1, NEVER: 1}, {1: 1, 400: 1})
