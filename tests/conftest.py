"""How much is tried: little by default, the heavy counts under LINNET_SOAK=1 (`make soak`)."""

from __future__ import annotations

import gc
import os
import subprocess
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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


# Most of what Java does in a short job is to compile for a long one, and to check Spark's own classes.
os.environ.setdefault(
    "LINNET_JAVA_OPTIONS",
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote",
)
SPARK_SECONDS = 600
"""Spark takes its time on a busy machine, and a test that is cut off takes everyone's session with it."""


JAVA: list[subprocess.Popen[bytes]] = []
"""Java of the session of Spark, while it is open."""

SLOW = ("cli", "examples", "lab", "node")
"""Folders whose tests start processes or Spark."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # What takes long comes first: at the end one worker would be left alone with it.
    items.sort(key=lambda item: not any(part in SLOW for part in item.path.parts))
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
        session.conf.set("spark.sql.shuffle.partitions", "4")
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
