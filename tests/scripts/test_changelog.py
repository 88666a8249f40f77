from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parent.parent.parent / "scripts" / "changelog.py"


@pytest.fixture(scope="module")
def changelog() -> ModuleType:
    spec = importlib.util.spec_from_file_location("changelog", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def root(tmp_path: Path) -> Path:
    changes = tmp_path / "changes"
    changes.mkdir()
    (changes / "README.md").write_text("How to write one.\n")
    (changes / "sing-louder.feature.md").write_text("Louder singing.\nOn two lines.\n")
    (changes / "off-key.fix.md").write_text("No more false notes.\n")
    (changes / "new-tune.incompatible.md").write_text("The tune is another.\n")
    (changes / "also-new.feature.md").write_text("A second voice.\n")
    return tmp_path


FIRST = """\
## 0.1.0 (2026-01-31)

### Incompatible changes

- The tune is another.

### New

- A second voice.
- Louder singing.
  On two lines.

### Fixed

- No more false notes.
"""


def test_fragments_become_a_release_and_go(changelog: ModuleType, root: Path) -> None:
    changelog.release(root, "0.1.0", "2026-01-31")
    assert (root / "CHANGELOG.md").read_text() == f"{changelog.INTRODUCTION}\n{FIRST}"
    assert [path.name for path in (root / "changes").iterdir()] == ["README.md"]


def test_a_later_release_stands_above(changelog: ModuleType, root: Path) -> None:
    changelog.release(root, "0.1.0", "2026-01-31")
    (root / "changes" / "nest.doc.md").write_text("How to build a nest.\n")
    changelog.release(root, "0.2.0", "2026-02-28")
    second = "## 0.2.0 (2026-02-28)\n\n### Documentation\n\n- How to build a nest.\n"
    assert (root / "CHANGELOG.md").read_text() == f"{changelog.INTRODUCTION}\n{second}\n{FIRST}"


def test_the_same_version_is_not_released_twice(changelog: ModuleType, root: Path) -> None:
    changelog.release(root, "0.1.0", "2026-01-31")
    (root / "changes" / "nest.doc.md").write_text("How to build a nest.\n")
    with pytest.raises(changelog.BadFragment, match=r"0\.1\.0 is in the changelog already"):
        changelog.release(root, "0.1.0", "2026-02-28")
    assert (root / "changes" / "nest.doc.md").exists()


def test_nothing_to_release(changelog: ModuleType, root: Path) -> None:
    for path in (root / "changes").glob("*.*.md"):
        path.unlink()
    with pytest.raises(changelog.BadFragment, match="nothing to release"):
        changelog.release(root, "0.1.0", "2026-01-31")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("noise.md", "x"),
        ("noise.gossip.md", "x"),
        ("Noise.fix.md", "x"),
        ("noise.fix.txt", "x"),
        ("noise.fix.md", "\n"),
    ],
)
def test_a_file_that_is_no_fragment_is_named(changelog: ModuleType, root: Path, name: str, text: str) -> None:
    (root / "changes" / name).write_text(text)
    with pytest.raises(changelog.BadFragment, match=name):
        changelog.release(root, "0.1.0", "2026-01-31")
    assert not (root / "CHANGELOG.md").exists()


@pytest.mark.parametrize(("version", "date"), [("1", "2026-01-31"), ("0.1.0", "31 January"), ("", "")])
def test_a_release_needs_a_version_and_a_date(
    changelog: ModuleType, root: Path, version: str, date: str
) -> None:
    with pytest.raises(changelog.BadFragment, match="a version and a date"):
        changelog.release(root, version, date)


def test_the_fragments_of_this_project_are_good() -> None:
    """Without arguments the command shows what is waiting; it exits 1 if a file is no fragment."""
    shown = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, check=False, timeout=60)
    assert shown.stderr == ""
    assert shown.returncode == 0
    assert shown.stdout.startswith("## Unreleased\n")


def test_wrong_usage_is_an_exit_status() -> None:
    shown = subprocess.run(
        [sys.executable, SCRIPT, "one"], capture_output=True, text=True, check=False, timeout=60
    )
    assert (shown.returncode, shown.stdout) == (1, "")
    assert shown.stderr == "usage: changelog.py [VERSION DATE]\n"
