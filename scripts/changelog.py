"""Join the fragments of changes/ into CHANGELOG.md as one release, and remove them.

A fragment is ``changes/<slug>.<kind>.md``: one change, told to people who use Linnet. Parallel work
does not collide in a shared file that way. Usage: ``changelog.py VERSION DATE``; without arguments
it prints what is waiting and changes nothing.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

KINDS = {
    "incompatible": "Incompatible changes",
    "security": "Security",
    "feature": "New",
    "fix": "Fixed",
    "doc": "Documentation",
}
"""Kinds of change with their headings, in the order in which readers need them."""

INTRODUCTION = """\
# Changes

Newest first; within a release, what breaks comes first. Written by `make changelog` from the
fragments in `changes/`.
"""

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*\.(?P<kind>[a-z]+)\.md")
_VERSION = re.compile(r"\d+\.\d+\.\d+")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


class BadFragment(Exception):
    """A file in changes/ that is no fragment, or says nothing."""


def fragments(folder: Path) -> dict[Path, str]:
    """The fragments of a folder with their kinds, in the order of kinds and names."""
    found: dict[Path, str] = {}
    for path in folder.iterdir():
        if path.name == "README.md":
            continue
        match = _NAME.fullmatch(path.name)
        if match is None or match["kind"] not in KINDS:
            raise BadFragment(
                f"{path.name}: a fragment is <slug>.<kind>.md with a kind of {', '.join(KINDS)}"
            )
        if not path.read_text().strip():
            raise BadFragment(f"{path.name}: it is empty")
        found[path] = match["kind"]
    order = list(KINDS)
    return dict(sorted(found.items(), key=lambda item: (order.index(item[1]), item[0].name)))


def section(found: dict[Path, str], title: str) -> str:
    """The text of a release: a list for each kind that has fragments."""
    lines = [f"## {title}"]
    kind = None
    for path, its_kind in found.items():
        if its_kind != kind:
            kind = its_kind
            lines += ["", f"### {KINDS[kind]}", ""]
        first, *rest = path.read_text().strip().splitlines()
        lines += [f"- {first}", *(f"  {line}".rstrip() for line in rest)]
    return "\n".join(lines) + "\n"


def release(root: Path, version: str, date: str) -> None:
    """Put what is waiting at the top of CHANGELOG.md and remove the fragments."""
    if not _VERSION.fullmatch(version) or not _DATE.fullmatch(date):
        raise BadFragment(f"a release has a version and a date (0.1.0 2026-01-31), not {version!r} {date!r}")
    found = fragments(root / "changes")
    if not found:
        raise BadFragment("changes/ has no fragment: there is nothing to release")
    changelog = root / "CHANGELOG.md"
    before = changelog.read_text().removeprefix(INTRODUCTION) if changelog.exists() else ""
    if f"\n## {version} " in before:
        raise BadFragment(f"{version} is in the changelog already")
    changelog.write_text(f"{INTRODUCTION}\n{section(found, f'{version} ({date})')}{before}")
    for path in found:
        path.unlink()


def main(arguments: list[str]) -> int:
    """Run as a command; 0 if all is well, 1 with a message if not."""
    root = Path(__file__).resolve().parent.parent
    try:
        match arguments:
            case []:
                print(section(fragments(root / "changes"), "Unreleased"), end="")
            case [version, date]:
                release(root, version, date)
            case _:
                raise BadFragment("usage: changelog.py [VERSION DATE]")
    except BadFragment as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
