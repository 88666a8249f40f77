"""Every item of a checklist names tests that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CHECKLISTS = sorted((ROOT / "docs" / "checklist").glob("*.md"))


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
    letter = items[0][0][0]
    assert [number for number, _ in items] == [f"{letter}{n}" for n in range(1, len(items) + 1)]
    assert [number for number, shown_by in items if "::" not in shown_by] == []
