"""Whether there is room where a home lies: a node that cannot write its store ends."""

from __future__ import annotations

import os
from pathlib import Path

from linnet.node.control_types import Check

NEEDED_BYTES = 1024 * 1024
"""With less a write is taken to fail: the largest unit, and its pages in the log before the store."""

LITTLE_BYTES = 64 * 1024 * 1024
"""With less there is little: the log before the store may grow to this, beside the trace."""

NEEDED_FILES = 8
"""Files that a start makes: store, its two logs, marks, locks, socket and trace."""

LITTLE_FILES = 1000
"""With room for fewer files it is said that there is little."""

ADVICE = "free space there, or move the home to a larger disk; then start the node again: linnet up"


def disk_check(path: Path) -> Check:
    """How much can still be written where this directory lies, in bytes and in files."""
    try:
        found = os.statvfs(path)
    except OSError as error:
        return Check("disk", False, f"{path}: {error.strerror or error}", "see that the disk is there")
    # Some file systems make inodes as they are needed, and say that they have none.
    files = found.f_favail if found.f_files else None
    return judge(path, found.f_bavail * found.f_frsize, files)


def judge(path: Path, free: int, files: int | None) -> Check:
    """What so many free bytes and files mean; None where files are not counted."""
    told = f"{free / 1e6:,.1f} MB free where {path} lies"
    if free < NEEDED_BYTES:
        return Check("disk", False, f"is full: {told}", ADVICE)
    if files is not None and files < NEEDED_FILES:
        return Check("disk", False, f"takes no more files: room for {files} (inodes), {told}", ADVICE)
    if free < LITTLE_BYTES:
        return Check("disk", True, f"warning, little room: {told}; a node ends when there is none")
    if files is not None and files < LITTLE_FILES:
        return Check("disk", True, f"warning, room for {files} more files (inodes) alone: {told}")
    return Check("disk", True, told)
