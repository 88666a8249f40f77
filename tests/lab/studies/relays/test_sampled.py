"""The verdict on a sample."""

from __future__ import annotations

from linnet.lab.relays.agreement import Verdict
from linnet.lab.studies.relays.sampled import agreement_check

AGREED = Verdict(
    runs=20,
    chats=2,
    events=100,
    receptions=300,
    backfilled=5,
    unforeseen=0,
    held=0,
    differences=0,
    first=None,
)


def test_agreement_tells_what_was_compared() -> None:
    check = agreement_check(AGREED)
    assert check.ok
    assert check.detail == "2 chats, 20 runs, 100 first deliveries and 300 receptions compared"


def test_one_difference_fails_the_study_and_is_shown() -> None:
    differing = Verdict(20, 2, 100, 300, 5, 0, 0, 1, "chat c1, margin 2 (50 ms), p2p: event 3 …")
    check = agreement_check(differing)
    assert not check.ok
    assert check.detail == "1 differ; chat c1, margin 2 (50 ms), p2p: event 3 …"


def test_a_sample_of_nothing_shows_nothing() -> None:
    assert not agreement_check(Verdict(0, 0, 0, 0, 0, 0, 0, 0, None)).ok
