"""What the commands of the lab share."""

from __future__ import annotations

import signal
import sys
from io import StringIO
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.lab.options import lab_extra, screen, workshop
from linnet.core.errors import ConfigError
from linnet.lab.spark.progress import stage_bars


def test_a_missing_package_names_the_extra() -> None:
    with pytest.raises(Failure, match=r"the lab needs pyspark.*pip install 'linnet\[lab\]'"), lab_extra():
        raise ModuleNotFoundError("No module named 'pyspark'", name="pyspark")


def test_any_other_missing_module_is_our_bug() -> None:
    with pytest.raises(ModuleNotFoundError), lab_extra():
        raise ModuleNotFoundError("No module named 'linnet.x'", name="linnet.x")


def test_what_is_configured_wrongly_was_typed() -> None:
    with pytest.raises(Failure) as failure, lab_extra():
        raise ConfigError("no such table")
    assert failure.value.code == ExitCode.USAGE


def test_a_signal_to_end_is_an_interrupt(spark: SparkSession, tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), workshop(tmp_path / "out", "local[2]", None, True):
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == before


def test_bars_have_the_names_of_stages(spark: SparkSession, tmp_path: Path) -> None:
    screen = StringIO()
    console = Console(file=screen, force_terminal=True, width=100)
    with stage_bars(spark, console) as tell:
        tell("first stage")
        assert spark.range(100).repartition(3).count() == 100
        tell("second stage")
    assert "first stage" in screen.getvalue()
    assert "second stage" in screen.getvalue()


def test_nobody_watching_sees_nothing(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    with stage_bars(spark, None) as tell:
        tell("a stage")
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("is_terminal", "quiet", "drawn"), [(True, False, True), (True, True, False), (False, False, False)]
)
def test_bars_are_drawn_on_a_terminal_unless_it_shall_be_quiet(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool, quiet: bool, drawn: bool
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    assert (screen(quiet) is not None) is drawn
