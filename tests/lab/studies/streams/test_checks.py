"""What must hold, and that it is seen when it does not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from linnet.lab.studies.streams.checks import checks, is_throttled, live_losses
from linnet.lab.studies.streams.view import View


def test_a_good_study_passes_all(view: View) -> None:
    assert {check.id: check.ok for check in checks(view)} == {
        "complete": True,
        "shortest_paths": True,
        "regular": True,
        "counter.estimates": True,
        "counter.rdp": True,
        "naive.below": True,
        "aware.below": True,
    }
    assert live_losses(view) == {128: 1.0}
    assert is_throttled("naive", 1024)
    assert not is_throttled("counter", 1024)


@pytest.mark.parametrize(
    ("mode", "size", "change", "broken"),
    [
        ("aware", 64, {"reached": -1}, "complete"),
        ("redundancy-held", 64, {"reached": -1}, "complete"),
        ("naive", 512, {"source_path_delay": 10**7}, "shortest_paths"),
        ("counter", 32, {"source_paths": 1}, "shortest_paths"),
        ("counter", 128, {"regular": -1}, "regular"),
        ("counter", 128, {"one_sided": 1}, "regular"),
        ("naive", 512, {"delay": 10**12, "source_path_delay": 10**12}, "naive.below"),
        ("aware", 256, {"delay": 10**12, "source_path_delay": 10**12}, "aware.below"),
    ],
)
def test_a_broken_study_fails_what_it_breaks(
    whole: Callable[..., View], mode: str, size: int, change: dict[str, int], broken: str
) -> None:
    def spoil(ran: str, nodes: int, run: dict[str, int]) -> None:
        if (ran, nodes) == (mode, size):
            for name, by in change.items():
                run[name] += by

    failed = [check for check in checks(whole(spoil)) if not check.ok]
    assert [check.id for check in failed] == [broken]
    assert str(size) in failed[0].detail


def test_slow_counters_are_off_the_published_ones(whole: Callable[..., View]) -> None:
    def slow(mode: str, size: int, run: dict[str, int]) -> None:
        if (mode, size) == ("counter", 2048):
            for name in ("delay", "source_path_delay"):
                run[name] *= 2

    failed = {check.id: check.detail for check in checks(whole(slow)) if not check.ok}
    assert set(failed) == {"counter.estimates", "counter.rdp"}
    assert "2048: +10.5 %" in failed["counter.estimates"]


def test_few_repeats_are_not_held_against_published_means(cut: View) -> None:
    assert {check.id for check in checks(cut)} == {"complete", "shortest_paths", "regular"}


def test_losses_while_the_tracker_goes_on_are_told_and_no_failure(whole: Callable[..., View]) -> None:
    def lose(mode: str, size: int, run: dict[str, int]) -> None:
        if mode == "naive-live":
            run["reached"] -= 127

    view = whole(lose)
    assert all(check.ok for check in checks(view))
    assert live_losses(view)[128] == pytest.approx(0.99)
