"""A real standalone cluster of Spark on loopback: one master and some workers, each a process of its own."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pyspark

from linnet.lab.spark.java import java_home
from linnet.lab.spark.session import JAVA_OPTIONS

_HOST = "127.0.0.1"
_START_SECONDS = 90.0


@contextmanager
def spark_cluster(folder: Path, workers: int = 2, cores: int = 1, memory: str = "1g") -> Generator[str]:
    """The address of a cluster that runs from the pip package; its logs and work lie in the folder."""
    environment = _environment(folder)
    port = _free_port()
    address = f"spark://{_HOST}:{port}"
    with ExitStack() as running:
        place = ["--host", _HOST, "--webui-port", "0"]
        running.enter_context(_daemon("master", "Master", [*place, "--port", str(port)], folder, environment))
        _wait_for(folder / "master.log", "I have been elected leader", 1)
        for number in range(workers):
            size = ["--cores", str(cores), "--memory", memory]
            work = ["--work-dir", str(folder / f"work{number}")]
            arguments = [*place, *size, *work, address]
            running.enter_context(_daemon(f"worker{number}", "Worker", arguments, folder, environment))
        _wait_for(folder / "master.log", "Registering worker", workers)
        yield address


def _environment(folder: Path) -> dict[str, str]:
    return os.environ | {
        "JAVA_HOME": str(java_home({}, folder)),
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LOCAL_IP": _HOST,
        "SPARK_CONF_DIR": str(folder),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": os.environ.get(JAVA_OPTIONS, ""),
        "PYSPARK_PYTHON": sys.executable,
    }


@contextmanager
def _daemon(
    name: str, role: str, arguments: list[str], folder: Path, environment: dict[str, str]
) -> Generator[None]:
    program = Path(environment["SPARK_HOME"]) / "bin" / "spark-class"
    command = [str(program), f"org.apache.spark.deploy.{role.lower()}.{role}", *arguments]
    with (folder / f"{name}.log").open("wb") as log:
        process = psutil.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment)
    try:
        yield
    finally:
        below = [process, *process.children(recursive=True)]
        for each in below:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
        psutil.wait_procs(below, timeout=10)


def _wait_for(log: Path, words: str, times: int) -> None:
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until:
        if log.exists() and log.read_text(errors="replace").count(words) >= times:
            return
        time.sleep(0.1)
    raise TimeoutError(
        f"{log}: {words!r} did not come {times} times:\n{log.read_text(errors='replace')[-2000:]}"
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        return int(probe.getsockname()[1])
