"""Asking a study for its numbers."""

from __future__ import annotations

from linnet.lab.studies.content.run import LATENCY, MEMORY
from linnet.lab.studies.content.view import View

KEY = ("normal", "base-reliable", 60, 2, 0)


def test_numbers_are_in_the_unit_asked_for(view: View) -> None:
    assert view.mean(KEY, LATENCY, 1000.0) == 70.0
    assert view.most(KEY, LATENCY, 1000.0) == 140.0
    assert view.mean(KEY, MEMORY, 1024.0 * 1024.0) == 3.0


def test_what_was_not_measured_is_nothing(view: View) -> None:
    assert view.mean(KEY, "no such metric") is None
    assert view.most(("none", "none", 1, 0, 0), LATENCY) is None


def test_published_numbers(view: View) -> None:
    assert view.printed("duplicated.normal.base-unreliable") == 16.97
    assert view.printed("duplicated.normal.no-such-variant") is None
