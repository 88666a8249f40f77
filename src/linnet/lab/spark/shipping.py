"""The library as one file, for executors that have none, and the name of its version.

Executors on other machines need the third-party packages (`pip install 'linnet[lab]'` brings them); the
library itself comes with the job, so that what they run is what the driver has.
"""

from __future__ import annotations

import hashlib
import zipfile
from functools import cache
from pathlib import Path

import linnet

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The same sources make the same file."""


def library_files() -> list[tuple[str, Path]]:
    """Every file of the library with its place in the archive, in order."""
    root = Path(next(iter(linnet.__path__)))
    return sorted(
        (f"linnet/{path.relative_to(root).as_posix()}", path)
        for path in root.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    )


@cache
def code_version() -> str:
    """A hash of the library's sources: a table that other code made is made again."""
    digest = hashlib.sha256()
    for name, path in library_files():
        digest.update(name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def write_library(folder: Path) -> Path:
    """Write the library as a zip file that Python can import from."""
    path = folder / f"linnet-{code_version()}.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, source in library_files():
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), source.read_bytes(), zipfile.ZIP_DEFLATED)
    return path
