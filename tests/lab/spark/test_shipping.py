"""The library as one file."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from linnet.lab.spark.shipping import code_version, library_files, write_library


def test_the_file_holds_the_library_with_its_data(tmp_path: Path) -> None:
    path = write_library(tmp_path)
    names = set(zipfile.ZipFile(path).namelist())
    assert {"linnet/__init__.py", "linnet/py.typed", "linnet/sim/streams/world.py"} <= names
    assert not [name for name in names if name.endswith(".pyc")]
    assert code_version() in path.name


def test_the_same_sources_make_the_same_file(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert write_library(tmp_path / "a").read_bytes() == write_library(tmp_path / "b").read_bytes()


def test_a_simulation_runs_from_it(tmp_path: Path) -> None:
    """Package data included: the table of latencies is read out of the file."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import linnet.sim.streams.course as s; from linnet.sim.streams.world import StreamScenario\n"
        "assert s.__file__.startswith(sys.argv[1]), s.__file__\n"
        "print(s.run_streams(StreamScenario(nodes=8, messages=2)).completeness)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, write_library(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert ran.stdout.strip() == "1.0"


def test_files_are_in_order() -> None:
    names = [name for name, _ in library_files()]
    assert names == sorted(names)
