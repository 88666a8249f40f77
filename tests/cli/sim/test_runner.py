from __future__ import annotations

from pathlib import Path

import pytest
import typer
from msgspec import Struct

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.sim.runner import Progress, RunOptions, show_outcome, simulation
from linnet.trace.columns import ColumnTrace


class Report(Struct, frozen=True):
    found: int


def test_a_missing_extra_is_named() -> None:
    with pytest.raises(Failure, match=r"needs scipy.sparse.*pip install 'linnet\[sim\]'"), simulation():
        raise ModuleNotFoundError("No module named 'scipy.sparse'", name="scipy.sparse")


def test_another_missing_module_is_a_bug() -> None:
    with pytest.raises(ModuleNotFoundError), simulation():
        raise ModuleNotFoundError("No module named 'linnet.nothing'", name="linnet.nothing")


def test_a_trace_is_written_where_it_was_wished_for_or_it_is_said_why_not(tmp_path: Path) -> None:
    def run(scenario: str, trace: ColumnTrace, progress: Progress) -> str:
        progress(0.5, "half of it")
        return f"{scenario} ran"

    assert RunOptions(as_json=True).run_scenario(run, "it") == "it ran"
    assert RunOptions(trace=tmp_path / "run.parquet", as_json=True).run_scenario(run, "it") == "it ran"
    assert (tmp_path / "run.parquet").exists()
    with pytest.raises(Failure, match="cannot be written"):
        RunOptions(trace=tmp_path / "nowhere" / "run.parquet", as_json=True).run_scenario(run, "it")


def test_an_outcome_is_shown_and_a_bad_one_ends_with_its_complaints(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_outcome(Report(3), [("found", 3)], True, True, ["never said"])
    assert capsys.readouterr() == ('{"found":3}\n', "")
    with pytest.raises(typer.Exit) as ended:
        show_outcome(Report(3), [("found", 3)], False, False, ["one is missing"])
    assert ended.value.exit_code == ExitCode.FAILED
    said = capsys.readouterr()
    assert "found" in said.out
    assert "one is missing" in said.err
