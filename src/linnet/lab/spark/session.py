"""One session of Spark, set up the same way for every job of the lab.

Embedded by default (``local[*]``, no server); ``spark://host:port`` for a cluster, to which the
library is shipped. Whatever Spark leaves on disk lies in one scratch folder that goes with the session.
"""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from linnet.lab.errors import CheckFailed, LabError
from linnet.lab.spark.failures import GOES_ON, TROUBLES, note_words, said_by, shortage
from linnet.lab.spark.java import java_home, java_version
from linnet.lab.spark.scratch import scratch_folder
from linnet.lab.spark.shipping import write_library

MASTER = "local[*]"
JAVA_OPTIONS = "LINNET_JAVA_OPTIONS"
"""More options for Java. Short jobs take a third less with -XX:TieredStopAtLevel=1 -XX:+UseSerialGC; many of
them in one session also need -XX:ReservedCodeCacheSize=256m, since the quick compiler reserves 48 MiB."""
OUT_OF_MEMORY = 52
"""Status with which Spark ends a Java that has no memory left (`SparkExitCode.OOM`)."""
LEAST_MB = 512
"""Spark sets 300 MiB aside and wants half as much again; Java counts a part of its heap as not usable."""
_GIB = 1 << 30
_LOCAL = re.compile(r"local(\[(\*|[1-9][0-9]*)\])?")
_CLUSTER = re.compile(r"spark://[^\s/]+:[0-9]+")
_OURS = re.compile(r"^linnet\.lab\.errors\.(?P<kind>\w+): (?P<words>.+)$", re.MULTILINE)
"""An error of the lab, at the end of the traceback of a task."""
_MEMORY = re.compile(r"[1-9][0-9]*[mg]")


def default_memory() -> str:
    """Java's heap: a quarter of the machine, from 1 to 3 GiB; Python's workers need theirs too."""
    return f"{min(3, max(1, psutil.virtual_memory().total // (4 * _GIB)))}g"


def _megabytes(heap: str) -> int:
    return int(heap[:-1]) * (1024 if heap[-1] == "g" else 1)


def _why_ended(status: int | None, heap: str) -> str:
    if status == OUT_OF_MEMORY:
        return f"memory ran out, of which Java has {heap}, and Java ended: give it more with --memory."
    end = f"Java ended with status {status} in the middle of the job"
    return f"{end}: was it killed, or short of memory (--memory)?"


def check_master(master: str) -> None:
    """`LabError` unless this names a place where Spark can run."""
    if not _LOCAL.fullmatch(master) and not _CLUSTER.fullmatch(master):
        raise LabError(f"--master {master!r}: write local[*], local[4], or spark://HOST:PORT")


@contextmanager
def open_session(
    master: str = MASTER, memory: str | None = None, name: str = "linnet lab"
) -> Generator[SparkSession]:
    """A session, stopped at the end however that comes; `LabError` if it cannot start.

    Inside another one, it is that one, as it was opened: there is one Java in a process.
    """
    check_master(master)
    heap = memory or default_memory()
    if not _MEMORY.fullmatch(heap):
        raise LabError(f"--memory {heap!r}: write megabytes or gigabytes, such as 800m or 2g")
    if _megabytes(heap) < LEAST_MB:
        raise LabError(
            f"--memory {heap} is too little for Spark, which needs {LEAST_MB}m: give it that or more"
        )
    if (outer := _open_already()) is not None:
        with _tasks_told():
            yield outer
        return
    with ExitStack() as kept:
        scratch = _scratch(kept)
        kept.enter_context(_shortages_told(heap, scratch))
        kept.enter_context(_environment_kept())
        os.environ.update(_environment(scratch))
        session = _start(master, heap, name, scratch)
        java = session.sparkContext._gateway.proc  # type: ignore[union-attr]
        try:
            # While Java is there to be asked.
            with _shortages_told(heap, scratch), _tasks_told():
                yield session
        except (Py4JError, ConnectionError, EOFError) as error:
            if _ended(java) is None:
                raise
            raise LabError(f"{_why_ended(_ended(java), heap)} {GOES_ON}") from error
        finally:
            _stop(session, java)


def _open_already() -> SparkSession | None:
    """The session of this process, if there is one. Java knows it for each thread apart, so it is not asked:
    who speaks to it over a new connection would be told that there is none, and would stop it at the end."""
    session = SparkSession._instantiatedSession
    is_over = session is None or session.sparkContext._jsc is None
    return None if is_over else session


@contextmanager
def _environment_kept() -> Generator[None]:
    before = dict(os.environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _scratch(kept: ExitStack) -> Path:
    try:
        return kept.enter_context(scratch_folder())
    except OSError as error:
        raise LabError(
            f"there is no room for scratch files in {tempfile.gettempdir()}: {error.strerror}. Make room, or "
            "set TMPDIR to a folder on another disk"
        ) from error


@contextmanager
def _shortages_told(heap: str, scratch: Path) -> Generator[None]:
    """A full disk and too little memory are told as such, and not as what Java makes of them."""
    try:
        yield
    except TROUBLES as error:
        told = shortage(error, heap, scratch)
        if told is None:
            note_words(error)
            raise
        raise told from error


def _environment(scratch: Path) -> dict[str, str]:
    home = java_home(os.environ, scratch)
    java_version(home)
    return {
        "JAVA_HOME": str(home),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": os.environ.get("SPARK_LOCAL_IP", "127.0.0.1"),
        # A line of configuration that Spark reads before its own talkative default.
        "SPARK_CONF_DIR": str(_configuration(scratch)),
    }


def _configuration(scratch: Path) -> Path:
    folder = scratch / "conf"
    folder.mkdir(exist_ok=True)
    (folder / "log4j2.properties").write_text(
        # What goes wrong reaches us as an exception, once; of a full disk everyone who meets it would tell.
        "rootLogger.level = off\n"
        "rootLogger.appenderRef.stderr.ref = stderr\n"
        "appender.stderr.type = Console\n"
        "appender.stderr.name = stderr\n"
        "appender.stderr.target = SYSTEM_ERR\n"
        "appender.stderr.layout.type = PatternLayout\n"
        "appender.stderr.layout.pattern = spark: %m%n%ex{0}\n"
        # Otherwise the gateway announces a level of its own.
        "logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer\n"
        "logger.gateway.level = off\n"
    )
    return folder


def _start(master: str, heap: str, name: str, scratch: Path) -> SparkSession:
    builder = SparkSession.builder.master(master).appName(name)
    for key, value in _settings(master, heap, scratch).items():
        builder = builder.config(key, value)
    try:
        session = builder.getOrCreate()
    except Exception as error:  # Spark raises whatever its Java side did
        told = shortage(error, heap, scratch)
        last = [words for words in said_by(error) if words not in ("", "None")][-1]
        raise told or LabError(f"Spark does not start on {master}: {last.splitlines()[0]}") from error
    if not _LOCAL.fullmatch(master):
        session.sparkContext.addPyFile(str(write_library(scratch)))
    logging.getLogger("py4j").setLevel(logging.ERROR)
    return session


def _settings(master: str, heap: str, scratch: Path) -> dict[str, str]:
    host, options = os.environ["SPARK_LOCAL_IP"], os.environ.get(JAVA_OPTIONS)
    return {
        **({f"spark.{each}.extraJavaOptions": options for each in ("driver", "executor")} if options else {}),
        "spark.driver.memory": heap,
        "spark.executor.memory": heap,
        "spark.driver.host": host,
        "spark.driver.bindAddress": host,
        "spark.local.dir": str(scratch / "spark"),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Spark would note the line of the program for every expression, with several calls to Java for each.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.sql.dataFrameQueryContext.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
        # Enough pieces that one large chat does not hold a task up, few enough for a small machine.
        "spark.sql.shuffle.partitions": "32",
        "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        # Threads inside numpy would fight with the tasks beside them.
        **{f"spark.executorEnv.{name}": "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")},
        **({"spark.driver.maxResultSize": "512m"} if _LOCAL.fullmatch(master) else {}),
    }


@contextmanager
def _tasks_told() -> Generator[None]:
    """What a task of ours raised on purpose is raised here as what it was."""
    try:
        yield
    except PythonException as error:
        found = _OURS.search(str(error))
        if found is None:
            raise
        kind = CheckFailed if found["kind"] == CheckFailed.__name__ else LabError
        raise kind(found["words"].strip()) from error


def _ended(java: subprocess.Popen[bytes]) -> int | None:
    """The status of the Java process, if it is over or about to be."""
    try:
        return java.wait(timeout=2)
    except subprocess.TimeoutExpired:
        return None


def _stop(session: SparkSession, java: subprocess.Popen[bytes]) -> None:
    """Stop Spark and its Java process, unless that is gone already."""
    try:
        if java.poll() is None:
            session.stop()
    except (Py4JError, ConnectionError, EOFError):
        java.kill()  # a signal to all processes of the job ended it first, or it hangs
    finally:
        gateway = session.sparkContext._gateway
        if gateway is not None:
            gateway.shutdown()
        if java.stdin is not None:
            java.stdin.close()
        java.wait(timeout=30)
        _forget_gateway()


def _forget_gateway() -> None:
    """Let the next session start a Java of its own: PySpark keeps the first for ever."""
    from pyspark import SparkContext

    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None
