from __future__ import annotations

import io
import lzma
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from scripts.previous_version import packed

ROOT = Path(__file__).parents[2]
VECTOR = ROOT / "tests" / "vectors" / "linnet-0.1.0.tar.xz"
COMMIT = "eaae3b3"


def _names(archive: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(lzma.decompress(archive))) as tar:
        files = [member for member in tar if member.isfile()]
        return {member.name: (tar.extractfile(member) or io.BytesIO()).read() for member in files}


def test_the_packed_version_is_the_commit_that_was_released() -> None:
    known = (
        shutil.which("git") is not None
        and not subprocess.run(
            ["git", "-C", str(ROOT), "cat-file", "-e", COMMIT], capture_output=True, check=False
        ).returncode
    )
    if not known:
        pytest.skip(f"the history does not reach back to {COMMIT}: a shallow clone, or an archive")
    files = _names(VECTOR.read_bytes())
    assert files == _names(packed(COMMIT))
    assert "src/linnet/node/library.py" in files
    assert not any(name.startswith("src/linnet/lab") for name in files)
