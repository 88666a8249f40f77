"""Every item of a checklist names tests that exist, or why it is not built."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NOT_BUILT = re.compile(r"not built: \w.{20,}")
"""What stands in place of a test where there is nothing to test: the reason why."""
CHECKLISTS = sorted((ROOT / "docs" / "checklist").glob("*.md"))


@cache
def names_in(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {node.name for node in functions if node.name.startswith("test_")}


def test_there_are_checklists() -> None:
    assert [path.name for path in CHECKLISTS] != []


@pytest.mark.parametrize("checklist", CHECKLISTS, ids=lambda path: path.stem)
def test_every_named_test_exists(checklist: Path) -> None:
    missing = []
    for file, name in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", checklist.read_text()):
        path = ROOT / file
        if not path.exists() or name not in names_in(path):
            missing.append(f"{file}::{name}")
    assert missing == []


@pytest.mark.parametrize("checklist", CHECKLISTS, ids=lambda path: path.stem)
def test_items_are_numbered_and_each_is_shown_by_something(checklist: Path) -> None:
    items = re.findall(r"^\| ([A-Z]\d+) \| .+ \| (.*) \|$", checklist.read_text(), re.MULTILINE)
    numbers: dict[str, list[int]] = {}
    for number, _ in items:
        numbers.setdefault(number[0], []).append(int(number[1:]))
    assert numbers
    assert all(each == list(range(1, len(each) + 1)) for each in numbers.values())
    unshown = [number for number, shown_by in items if "::" not in shown_by and not NOT_BUILT.match(shown_by)]
    assert unshown == []
    rows = re.findall(r"^\| [A-Z]\d+ \|", checklist.read_text(), re.MULTILINE)
    assert len(rows) == len(items), "a row that cannot be read"


def test_content_has_every_item_of_its_source() -> None:
    items = re.findall(r"^\| C(\d+) \|", (ROOT / "docs/checklist/content.md").read_text(), re.MULTILINE)
    assert len(items) >= 60
