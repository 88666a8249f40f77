"""Subtypes of Slack."""

from __future__ import annotations

import pytest

from linnet.lab.sources.rows import KINDS
from linnet.lab.sources.slack_kinds import UNKNOWN, granularity_of, kind_of, reason_of


@pytest.mark.parametrize(
    ("subtype", "kind"),
    [
        ("", "text"),
        ("me_message", "text"),
        ("thread_broadcast", "text"),
        ("file_share", "file"),
        ("channel_join", "notice"),
        ("group_leave", "notice"),
        ("message_changed", None),
        ("nobody_knows", None),
    ],
)
def test_kinds(subtype: str, kind: str | None) -> None:
    assert kind_of(subtype) == kind
    assert kind is None or kind in KINDS


def test_what_is_not_used_has_a_reason() -> None:
    assert reason_of("message_changed").startswith("left out: ")
    assert reason_of("nobody_knows") == UNKNOWN


def test_fractions_that_count_are_no_time() -> None:
    assert granularity_of(["1517436010.000936", "1517436011.001003", "1517436012"]) == "s"
    assert granularity_of(["1517436010.000936", "1717436011.431003"]) == "ms"
    assert granularity_of([]) == "s"
