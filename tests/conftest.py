"""How much is tried: little by default, the heavy counts under LINNET_SOAK=1 (`make soak`)."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from tests.work_units import UnitScheduling, import_share, rank_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from xdist.remote import Producer  # type: ignore[import-untyped]

# Tests start hundreds of processes. Each would compile Linnet anew, and each worker all the tests.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

SOAK = os.environ.get("LINNET_SOAK") == "1"

# Without a deadline: a busy machine is no bug. Derandomised by default, so that a red test is
# red for everyone; a soak draws new examples each time and prints how to repeat a failure.
settings.register_profile("default", deadline=None, derandomize=True, max_examples=100)
settings.register_profile(
    "soak",
    deadline=None,
    max_examples=1_000,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("soak" if SOAK else "default")


# Most of what Java does in a short job is to compile for a long one, and to check Spark's own classes. The
# quick compiler reserves 48 MiB for its code, which a session of many tests fills; then Java ends with status
# 50 ("Out of space in CodeCache for method handle intrinsic").
os.environ.setdefault(
    "LINNET_JAVA_OPTIONS",
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote "
    "-XX:ReservedCodeCacheSize=256m",
)
SPARK_SECONDS = 600
"""Spark takes its time on a busy machine, and a test that is cut off takes everyone's session with it."""


JAVA: list[subprocess.Popen[bytes]] = []
"""Java of the session of Spark, while it is open."""

SMALL_QUERIES = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""For tables of a few rows, compiling a query or planning it anew in between takes longer than to run it.
A soak has Spark as users have it."""


@pytest.hookimpl(optionalhook=True)  # without xdist there is nobody who asks
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> UnitScheduling | None:
    """Keep together what shares Spark or nodes."""
    return UnitScheduling(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_sessionstart(session: pytest.Session) -> None:
    """Let each worker compile a part of the tests: all are about to import all of them."""
    given: dict[str, Any] | None = getattr(session.config, "workerinput", None)
    if given is not None:
        import_share(session.config.args, int(given["workerid"].removeprefix("gw")), given["workercount"])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # What takes long comes first: at the end one worker would be left alone with it.
    items.sort(key=lambda item: rank_of(item.nodeid))
    for item in items:
        is_lab = "lab" in item.path.parts
        if is_lab and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SPARK_SECONDS))
    if SOAK:
        return
    skip = pytest.mark.skip(reason="a heavy count; `make soak` runs it")
    for item in items:
        if item.get_closest_marker("soak"):
            item.add_marker(skip)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One session of Spark for all tests of the lab: it takes ten seconds to start."""
    from linnet.lab.spark.session import open_session

    with open_session("local[2]", "1g", "tests") as session:
        if not SOAK:
            for name, value in SMALL_QUERIES.items():
                session.conf.set(name, value)
        JAVA.append(session.sparkContext._gateway.proc)  # type: ignore[union-attr]
        try:
            yield session
        finally:
            JAVA.clear()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Open another session if Java was killed: the test that ran may fail for that, and not all behind it."""
    if not JAVA or JAVA[0].poll() is None or not isinstance(item, pytest.Function):
        return
    item.add_report_section(
        "setup", "Spark", f"Java had ended with status {JAVA[0].poll()}: there is another now"
    )
    for definition in item._fixtureinfo.name2fixturedefs.get("spark", ()):
        definition.finish(item._request)  # type: ignore[arg-type] # any request will do to clear it


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What fails for want of Java says how Java ended."""
    report = yield
    if report.failed and JAVA and (status := JAVA[0].poll()) is not None:
        report.sections.append(("Spark", f"Java ended with status {status} in this test or before it"))
    return report


def pytest_collection_finish() -> None:
    """What was collected stays to the end: without it, every pass of the collector is short."""
    gc.collect()
    gc.freeze()
