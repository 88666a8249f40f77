"""What must hold: nothing missing anywhere, and less twice than is published."""

from __future__ import annotations

from msgspec.structs import replace

from linnet.lab.studies.content.run import FILTERS
from linnet.lab.studies.content.targets import checks
from linnet.lab.studies.content.view import Counts, View

KEY = ("fault", "redirect-reliable", 60, 2, 0)


def failing(view: View, counts: Counts) -> list[str]:
    changed = replace(view, counts=dict(view.counts) | {KEY: counts})
    return [check.id for check in checks(changed) if not check.ok]


def test_a_study_without_a_loss_holds(view: View) -> None:
    found = list(checks(view))
    assert all(check.ok for check in found)
    assert sum(check.id.startswith("whole.") for check in found) == len(view.counts)
    assert sum(check.id.startswith("duplicated.") for check in found) == 16


def test_what_is_missing_unasked_or_not_expected_at_all_does_not_hold(view: View) -> None:
    whole = "whole.fault.redirect-reliable.60"
    assert failing(view, Counts(108, 1, 0, 0, 0.0, 99.07)) == [whole]
    assert failing(view, Counts(108, 0, 0, 1, 0.0, 100.0)) == [whole]
    assert failing(view, Counts(0, 0, 0, 0, None, None)) == [whole, "duplicated.fault.redirect-reliable"]


def test_as_much_twice_as_is_published_does_not_hold(view: View) -> None:
    cell = "duplicated.fault.redirect-reliable"
    assert failing(view, Counts(108, 0, 9, 0, 8.33, 100.0)) == []
    assert failing(view, Counts(108, 0, 9, 0, 8.334, 100.0)) == [cell]


def test_filters_that_stay_after_somebody_left_do_not_hold(view: View) -> None:
    before, after = (("long-run", "base-reliable", 30, 2, stage) for stage in (1, 2))
    stayed = dict(view.spreads) | {(after, FILTERS): view.spreads[before, FILTERS]}
    changed = replace(view, spreads=stayed)
    assert [check.id for check in checks(changed) if not check.ok] == ["forgotten.base-reliable"]
