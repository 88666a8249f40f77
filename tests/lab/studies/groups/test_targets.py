"""The ten targets: which are judged, and how."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from linnet.lab.studies.groups.metrics import Outcomes, Time
from linnet.lab.studies.groups.targets import Target, followed, targets
from linnet.lab.studies.groups.view import View


def test_a_limit_is_kept_or_missed() -> None:
    most = Target(id="x", says="", unit="ms", limit=5, measured=5)
    assert most.met
    assert not replace(most, measured=5.1).met
    least = replace(most, at_least=True)
    assert least.met
    assert not replace(least, measured=4.9).met


def test_small_groups_are_not_judged_by_targets_of_large_ones(view: View) -> None:
    found = {each.id: each for each in targets(view)}
    assert {id.partition(".")[0] for id in found} == {"T5", "T6", "T7", "T8", "T9", "T10"}
    assert all(each.met for each in found.values() if each.is_bytes)
    assert found["T5.overhead"].measured == 29 + 64 + 16 - 32
    assert "387 bytes as a whole event" in found["T5.overhead"].detail
    assert all("µs" in found[id].detail for id in ("T6.each", "T10.recipient"))


def test_what_was_missed_is_told_for_a_thousand_updates(view: View) -> None:
    heard = {("recipient", part): Time(1, 3, 24, 30_000_000) for part in ("check", "take", "follow")}
    times = {**view.outcomes.times, ("catch-up", "single", 8): [heard], ("catch-up", "multi", 8): [heard]}
    found = {each.id: each for each in targets(replace(view, outcomes=Outcomes({}, times)))}
    assert found["T6.single"].measured == pytest.approx(30)  # Three parts of 30 ms for 3 updates.
    assert not found["T6.single"].met
    assert found["T6.multi"].measured == pytest.approx(30)
    assert found["T6.each"].measured == pytest.approx(3_750)
    assert found["T6.each"].detail == "a signature 1250 µs, an update 1250 µs, acknowledgements 1250 µs"


def test_the_group_of_the_targets_is_judged(view: View) -> None:
    counts = dict(view.outcomes.counts)
    for operation, body in (("update", 40_554), ("create", 45_000), ("add", 60_000)):
        counts[operation, "single", 1, 128] = [{("all", "body_bytes"): body, ("all", "wire_bytes"): 70_000}]
    spent = {
        (role, part): Time(1, 1, 1, 25_000_000)
        for role in ("sender", "recipient", "newcomer")
        for part in ("make", "check")
    }
    times = {**view.outcomes.times, ("update", "single", 128): [spent], ("add", "single", 128): [spent]}
    found = {each.id: each for each in targets(replace(view, outcomes=Outcomes(counts, times)))}
    assert [each.id for each in found.values() if each.id[:3] in ("T1.", "T2.", "T3.", "T4.")] == [
        "T1.update.sender",
        "T1.update.recipient",
        "T2.update.128.bytes",
        "T3.create.128.bytes",
        "T4.add.sender",
        "T4.add.newcomer",
        "T4.add.128.bytes",
    ]
    assert found["T1.update.sender"].measured == 50
    assert found["T1.update.sender"].met
    assert not found["T1.update.recipient"].met
    assert found["T1.update.recipient"].detail == "making 25.00 ms, signatures of others 25.00 ms"
    assert not found["T2.update.128.bytes"].met
    assert found["T3.create.128.bytes"].met


def test_what_was_not_run_is_not_judged(view: View) -> None:
    assert targets(replace(view, outcomes=Outcomes({}, {}))) == []
    assert followed(view, 1000) is None
