"""The measurements of groups run, and what is compared follows from them."""

from __future__ import annotations

from pathlib import Path

from bench.results import Comparison, Measure, Plan
from bench.targets import compare

from bench import groups


def test_updates_sender_keys_and_messages_are_measured(tmp_path: Path) -> None:
    found = groups.measure(Plan(1, 0.01, True, tmp_path))
    figures = {each.name: each.median for each in found}
    assert all(median is not None and median > 0 for median in figures.values())
    assert figures[groups.UPDATE_BYTES] == 60 + 5 * (149 + 63) + 26 + 86 + 16 * 36
    # To each after its own message came: the index of the key is told too.
    assert figures[groups.REKEY_BYTES] == 6 * 5 * 153


def test_all_renewals_after_the_first_are_of_one_size() -> None:
    pairs = groups.Pairs(4)
    assert pairs.renew()[1] == pairs.renew()[1] == 4 * 3 * 153


def test_who_hears_little_does_little() -> None:
    circle, _ = groups.update(5, listeners=0)
    assert circle.parties[0].events["follow"] == 4
    assert circle.parties[1].events["follow"] == 0
    assert 0 < groups.spent(circle, 0) < groups.spent(circle)


def test_what_is_to_be_reached() -> None:
    measures = [
        Measure(groups.SECTION, groups.UPDATE, "ms", (30.0,)),
        Measure(groups.SECTION, groups.REKEY, "ms", (60.0,)),
        Measure(groups.SECTION, groups.SEAL, "1/s", (10.0,)),
        Measure(groups.SECTION, groups.BARE_SEAL, "1/s", (200.0,)),
    ]
    found = compare(measures)
    assert found == [
        Comparison("groups: update / sender keys renewed, time", 0.5, 1.0, "x", False),
        Comparison("groups: bare cipher / sealing", 20.0, 15.0, "x", False),
    ]
    assert [each.reached for each in found] == [True, False]
