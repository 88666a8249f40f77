"""What one worker of the tests takes at a time: tests that share something which takes long to start."""

from __future__ import annotations

import contextlib
import importlib
import warnings
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

LAB = "lab"
LIVE = ("open_world", "crashes", "budget", "upgrade", "previous_version", "restarts")
"""Words in the names of files whose tests wait for processes rather than compute."""


def unit_of(nodeid: str) -> str:
    """The unit that a test belongs to.

    All that needs Spark is one: Java computes for a minute before it is quick. A folder of commands is
    one too, because its tests share their nodes. Any other file is a unit of its own.
    """
    path = _path(nodeid)
    if LAB in path.parts:
        return LAB
    return str(path.parent if "cli" in path.parts else path)


def rank_of(nodeid: str) -> int:
    """The place of a test in the order of work: long units first, so that all workers end together."""
    path = _path(nodeid)
    if LAB in path.parts:
        return 0
    if any(word in path.name for word in LIVE):
        return 1
    return 2 if {"cli", "examples", "node"} & set(path.parts) else 3


def _path(nodeid: str) -> PurePosixPath:
    return PurePosixPath(nodeid.partition("::")[0])


def import_share(given: Iterable[str], number: int, count: int) -> None:
    """Import every so many-th module of the given folders of tests, which leaves its bytecode for the others.

    To rewrite the assertions of all tests takes half a minute. What cannot be imported is told when pytest
    collects it, as it is imported again then.
    """
    root = Path(__file__).parents[1]
    found = sorted(path for each in given for path in (root / each).rglob("test_*.py"))
    for path in found[number::count]:
        with warnings.catch_warnings(action="error"), contextlib.suppress(Exception):
            importlib.import_module(".".join(path.relative_to(root).with_suffix("").parts))


class UnitScheduling(LoadFileScheduling):  # type: ignore[misc] # it comes without types
    """Gives units to workers in the order in which they were collected."""

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)
