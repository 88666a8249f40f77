"""libsodium, loaded without leaving a file behind.

The package that brings it writes its shared object to the temporary folder and loads it from there, once in
each process, and never removes it. What is loaded is mapped: on POSIX a mapping outlives the name of its
file (unlink(2)), so the name is taken away at once. Windows keeps the file of a library that is in use; there
it stays. Machines know nothing of files, so they are told from here how the library is loaded.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

from linnet.overlay.trackerless import oblivious


def load() -> ModuleType:
    """The functions of libsodium that `rbcl` has."""
    loaded = import_module("rbcl")
    if sys.platform != "win32":
        Path(import_module("rbcl._sodium").lib_path).unlink(missing_ok=True)
    return loaded


def tidy() -> None:
    """Let machines of this process load the library in this way, when they first need it."""
    oblivious.load_by(load)
