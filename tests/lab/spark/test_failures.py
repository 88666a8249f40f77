"""A machine with too little of something is told in one line."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from linnet.lab.spark.failures import said_by, shortage
from linnet.lab.spark.scratch import PREFIX

LINNET = (sys.executable, "-m", "linnet", "lab", "generate", "chats")
SMALL = ("--chats", "40", "--messages", "400000", "--master", "local[1]", "--memory", "600m")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """A file system of its own, of the size that is asked for."""
    where = tmp_path / "disk"
    where.mkdir()

    def mount(size: str) -> Path:
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(where)]
        mounted = subprocess.run(command, capture_output=True, text=True, check=False)
        if mounted.returncode:
            pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
        return where

    yield mount
    subprocess.run(["umount", str(where)], capture_output=True, check=False)


def ran(*arguments: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [*LINNET, *arguments], capture_output=True, text=True, check=False, env=os.environ, timeout=500
    )
    return done.returncode, done.stdout, done.stderr


def test_a_full_disk_of_tables_is_one_line(small_disk: Callable[[str], Path]) -> None:
    status, told, said = ran("--out", str(small_disk("128k") / "out"), *SMALL)
    assert (status, told) == (1, "")
    (line,) = said.splitlines()
    assert line.startswith("linnet: a disk is full: that of the tables (--out)")
    assert "Make room, or choose another." in line


SPILL = """
import sys
from linnet.core.errors import LinnetError
from linnet.lab.spark.session import open_session
try:
    with open_session('local[1]', '600m') as spark:
        print('it runs')
        drawn = spark.range(2_000_000).selectExpr('uuid() AS u').repartition(4)
        drawn.selectExpr('count(DISTINCT u)').collect()
except LinnetError as error:
    sys.exit(f'linnet: {error}')
"""


def test_a_full_disk_of_scratch_files_is_one_line(small_disk: Callable[[str], Path]) -> None:
    scratch = small_disk("3m")
    done = subprocess.run(
        [sys.executable, "-c", SPILL],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"TMPDIR": str(scratch)},
        timeout=500,
    )
    assert (done.returncode, done.stdout) == (1, "it runs\n")
    (line,) = done.stderr.splitlines()
    assert line.startswith("linnet: a disk is full")
    assert f"({scratch}" in line
    assert [path for path in scratch.iterdir() if path.name.startswith(PREFIX)] == [], "nothing stays behind"


OTHER = """
from linnet.lab.spark.session import open_session
with open_session('local[1]', '600m') as spark:
    spark._jvm.java.lang.Integer.parseInt("many")
"""


def test_what_java_says_is_told_though_java_is_gone_by_then() -> None:
    done = subprocess.run(
        [sys.executable, "-c", OTHER], capture_output=True, text=True, check=False, timeout=500
    )
    assert done.returncode == 1
    assert "java.lang.NumberFormatException" in done.stderr.splitlines()[-1]


def test_too_little_memory_to_start_is_one_line(tmp_path: Path) -> None:
    status, told, said = ran("--out", str(tmp_path / "out"), "--memory", "60m")
    assert (status, told) == (1, "")
    assert said.splitlines() == [
        "linnet: --memory 60m is too little for Spark, which needs 512m: give it that or more"
    ]


def test_an_error_of_java_is_known_by_its_causes(spark: SparkSession, tmp_path: Path) -> None:
    """However deep they lie."""
    java = spark.sparkContext._jvm.java  # type: ignore[union-attr]

    def thrown(cause: object) -> Exception:
        future = java.util.concurrent.CompletableFuture()
        future.completeExceptionally(java.lang.RuntimeException("Job aborted.", cause))
        with pytest.raises(Py4JError) as raised:
            future.get()
        error: Exception = raised.value
        return error

    full = shortage(thrown(java.io.IOException("No space left on device")), "2g", tmp_path / "x")
    assert "a disk is full" in str(full)
    short = shortage(thrown(java.lang.OutOfMemoryError("Java heap space")), "2g", tmp_path / "x")
    assert str(short).startswith("memory ran out, of which Java has 2g: give it more with --memory")
    gone = shortage(
        thrown(java.io.EOFException("Python worker exited unexpectedly (crashed)")), "2g", tmp_path / "x"
    )
    assert "a worker of Python was killed" in str(gone)
    other = thrown(java.io.IOException("of another kind"))
    assert shortage(other, "2g", tmp_path / "x") is None
    assert "of another kind" in list(said_by(other))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_errors_of_the_system_are_known_by_their_numbers(tmp_path: Path, number: int) -> None:
    assert "a disk is full" in str(shortage(OSError(number, "words of any language"), "2g", tmp_path / "x"))
    wrapped = RuntimeError("something broke")
    wrapped.__cause__ = OSError(number, os.strerror(number))
    assert shortage(wrapped, "2g", tmp_path / "x") is not None
    assert shortage(OSError(errno.EACCES, "no"), "2g", tmp_path / "x") is None
    assert "memory ran out" in str(shortage(MemoryError(), "2g", tmp_path / "x"))
