"""The figures of names can be taken."""

from __future__ import annotations

from pathlib import Path

from bench.results import Plan

from bench import names


def test_passwords_and_records_are_measured(tmp_path: Path) -> None:
    found = {each.name: each for each in names.measure(Plan(1, 0.01, True, tmp_path))}
    assert list(found) == [names.STRETCHED, names.DERIVED, names.CLOSED, names.CHECKED, names.OPENED]
    assert all(each.median is not None and each.median > 0 for each in found.values())
    assert found[names.STRETCHED].note == "Argon2id, 2 passes, 32 MiB"
