"""Scratch folders go with their processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from linnet.lab.spark.scratch import LOCK, PREFIX, scratch_folder, sweep

HOLD = (
    "import sys\nfrom linnet.lab.spark.scratch import scratch_folder\n"
    "with scratch_folder() as folder:\n"
    "    (folder / 'spilled').mkdir()\n"
    "    (folder / 'spilled' / 'block').write_bytes(bytes(1000))\n"
    "    print(folder, flush=True)\n"
    "    sys.stdin.read()\n"
)


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)


def holder() -> tuple[subprocess.Popen[str], Path]:
    job = subprocess.Popen(
        [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert job.stdout is not None
    return job, Path(job.stdout.readline().strip())


def ended(job: subprocess.Popen[str]) -> None:
    for pipe in (job.stdin, job.stdout):
        assert pipe is not None
        pipe.close()
    job.wait(timeout=30)


def test_a_folder_is_there_and_gone(tmp_path: Path) -> None:
    with scratch_folder() as folder:
        assert folder.parent == tmp_path
        assert (folder / LOCK).exists()
    assert list(tmp_path.iterdir()) == []


def test_the_folder_of_a_killed_process_goes_with_the_next_one(tmp_path: Path) -> None:
    killed, left = holder()
    living, kept = holder()
    assert left != kept
    killed.kill()
    ended(killed)
    assert (left / "spilled" / "block").exists()
    with scratch_folder() as own:
        assert sorted(tmp_path.iterdir()) == sorted((kept, own))
        assert (kept / "spilled" / "block").exists()
    ended(living)
    assert list(tmp_path.iterdir()) == []


def test_what_nobody_ever_locked_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / f"{PREFIX}mine").mkdir()
    (tmp_path / f"{PREFIX}notes").write_text("")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / LOCK).write_text("")
    assert sweep(tmp_path) == []
    assert len(list(tmp_path.iterdir())) == 3
