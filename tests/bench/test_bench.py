"""The measurements run, and tell what they promise; their figures are nobody's business here."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bench.__main__ import keep
from bench.crew import Crew, WorkerFailed, failure
from bench.results import Comparison, Measure, Plan
from bench.runs import SECTIONS, run_all
from bench.targets import compare
from bench.workers.bare_receiver import BareReceiverRole
from bench.workers.talk import Ready

ROOT = Path(__file__).parent.parent.parent


def run_bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bench", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    file = tmp_path_factory.mktemp("bench") / "bench.json"
    done = run_bench("--quick", "--only", "encoding", "--only", "events", "--json", str(file))
    assert done.returncode == 0, done.stderr
    assert "check a signature" in done.stdout
    assert "measuring: events" in done.stderr
    written: dict[str, Any] = json.loads(file.read_text())
    return written


def test_json_tells_the_machine_and_its_load(written: dict[str, Any]) -> None:
    assert set(written) == {
        "machine", "load_before", "load_after", "runs", "quick", "seconds", "to_come", "measures", "targets",
    }  # fmt: skip
    assert {"cpu", "python", "loop", "stores"} <= set(written["machine"])
    assert len(written["load_before"]) == len(written["load_after"]) == 3
    assert written["quick"] is True
    assert written["to_come"] == []


def test_what_is_measured_is_told_and_kept_section_by_section(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "bench.json"
    seen: list[tuple[list[str], list[str]]] = []

    def measured(section: str) -> Callable[[Plan], list[Measure]]:
        def measure(plan: Plan) -> list[Measure]:
            if file.exists():
                so_far = json.loads(file.read_text())
                seen.append(([each["section"] for each in so_far["measures"]], so_far["to_come"]))
            return [Measure(section, "speed", "1/s", (1.0,))]

        return measure

    for name in ("encoding", "events", "store"):
        monkeypatch.setitem(SECTIONS, name, measured(name))
    names = ["encoding", "events", "store"]
    run_all(names, True, 1, tmp_path, lambda name: None, lambda run: keep(run, file))
    assert seen == [(["encoding"], ["events", "store"]), (["encoding", "events"], ["store"])]
    assert json.loads(file.read_text())["to_come"] == []
    told = capsys.readouterr().err
    assert told.index("ENCODING") < told.index("EVENTS") < told.index("STORE")


def test_json_tells_every_run_of_every_measure(written: dict[str, Any]) -> None:
    for measure in written["measures"]:
        assert set(measure) == {"section", "name", "unit", "median", "runs", "note", "failed"}
        assert len(measure["runs"]) == written["runs"] == 1
        assert measure["median"] > 0
    names = {(measure["section"], measure["name"]) for measure in written["measures"]}
    assert {("events", f"verified, bursts of {count}") for count in (1, 4, 16, 64, 256)} <= names
    assert ("encoding", "encode, msgpack array, typed (ours)") in names


def test_nothing_is_compared_that_was_not_measured(written: dict[str, Any]) -> None:
    assert written["targets"] == []


def test_a_star_over_real_links_is_measured(tmp_path: Path) -> None:
    """The cheapest of the sections that start processes: links, workers and their end."""
    done = run_bench("--quick", "--only", "memory", "--json", "-", "--dir", str(tmp_path))
    assert done.returncode == 0, done.stderr
    measures = json.loads(done.stdout)["measures"]
    assert {measure["unit"] for measure in measures} == {"MiB"}
    assert all(measure["median"] > 1 for measure in measures)
    assert list(tmp_path.iterdir()) == []


async def test_a_worker_that_dies_is_told_with_its_last_words() -> None:
    async with Crew() as crew:
        worker = await crew.start("tracker", BareReceiverRole(1))
        with pytest.raises(WorkerFailed, match="missing required field `star`") as caught:
            await worker.hear(Ready)
    told = failure("network", "1→1", caught.value)
    assert (told.median, told.failed) == (None, True)
    assert told.note.startswith("failed: ")


def test_unknown_sections_are_refused() -> None:
    done = run_bench("--only", "everything")
    assert done.returncode == 2
    assert all(name in done.stderr for name in SECTIONS)


def test_targets_follow_from_medians() -> None:
    measures = [
        Measure("simulator", "messages handled, per core", "1/s", (90_000.0, 120_000.0, 110_000.0)),
        Measure("network", "1→1, in bursts, no store", "deliveries/s", (50.0,)),
        Measure("network", "1→1, bare TLS, coalesced", "deliveries/s", (400.0,)),
        Measure("latency", "p50, SQLite", "ms", (1.5,)),
        Measure("latency", "fdatasync p50 beside", "ms", (0.25,)),
    ]
    found = compare(measures)
    assert found == [
        Comparison("simulator: messages handled a second and core", 110_000.0, 100_000.0, "1/s", True),
        Comparison("1→1, bursts / coalesced TLS", 12.5, 25.0, "%", True),
        Comparison("latency p50, SQLite", 1.5, 1.75, "ms", False),
    ]
    assert [each.reached for each in found] == [True, False, True]
