"""Loads libsodium without leaving a file behind.

The package that contains it writes its shared object to the temporary folder and loads it from there, once in
each process, and never removes it. The loaded library is mapped, and on POSIX a mapping outlives the name of
its file (unlink(2)), so the name is removed at once. Windows keeps the file of a library that is in use;
there it stays. Machines know nothing of files, so this module sets how they load the library.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

from linnet.overlay.gossip import private_set_intersection


def load() -> ModuleType:
    """Return the functions of libsodium that `rbcl` has."""
    loaded = import_module("rbcl")
    if sys.platform != "win32":
        Path(import_module("rbcl._sodium").lib_path).unlink(missing_ok=True)
    return loaded


def tidy() -> None:
    """Make machines of this process load the library in this way, when they first need it."""
    private_set_intersection.load_by(load)
