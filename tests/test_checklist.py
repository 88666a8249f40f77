"""Every item of a checklist names tests that exist, or why it is not built."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from string import ascii_lowercase

import pytest

ROOT = Path(__file__).parent.parent
NOT_BUILT = re.compile(r"not built: \w.{20,}")
"""What stands in place of a test where there is nothing to test: the reason why."""
CHECKLISTS = sorted((ROOT / "docs" / "checklist").glob("*.md"))
ROW = re.compile(r"^\| ([A-Z]\d\w*) \|(.*)$", re.MULTILINE)
NUMBER = re.compile(r"([A-Z])(\d+)([a-z]?)")
"""A letter behind a number is that of a row that was put in later."""
LETTERS = ("", *ascii_lowercase)


@cache
def names_in(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {node.name for node in functions if node.name.startswith("test_")}


def faults_of(text: str) -> Iterator[str]:
    """What is wrong with the rows of a checklist: one that cannot be read, is out of turn or is not shown."""
    last: dict[str, tuple[int, int]] = {}
    for row, rest in ROW.findall(text):
        number, shown = NUMBER.fullmatch(row), re.fullmatch(r" .+ \| (.*) \|", rest)
        if number is None or shown is None:
            yield f"{row} cannot be read"
            continue
        place = int(number[2]), LETTERS.index(number[3])
        before = last.get(number[1], (0, 0))
        if place not in ((before[0] + 1, 0), (before[0], before[1] + 1)):
            yield f"{row} is out of turn"
        if "::" not in shown[1] and not NOT_BUILT.match(shown[1]):
            yield f"{row} is shown by nothing"
        last[number[1]] = place


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
    text = checklist.read_text()
    assert ROW.search(text)
    assert list(faults_of(text)) == []


@pytest.mark.parametrize(
    ("numbers", "fault"),
    [
        (("R1", "R2", "R2a", "R2b", "S1", "R3"), None),
        (("R1", "R3"), "R3 is out of turn"),
        (("R1", "R2a"), "R2a is out of turn"),
        (("R1", "R1b"), "R1b is out of turn"),
        (("R1", "R1"), "R1 is out of turn"),
        (("R1", "R1A"), "R1A cannot be read"),
    ],
)
def test_a_number_may_have_a_letter_and_is_in_turn(numbers: tuple[str, ...], fault: str | None) -> None:
    rows = [f"| {number} | It holds. | `tests/test_it.py::test_it` |" for number in numbers]
    assert list(faults_of("\n".join(rows))) == ([] if fault is None else [fault])


def test_a_number_with_a_letter_is_shown_by_something() -> None:
    rows = "| R1 | It holds. | `tests/test_it.py::test_it` |\n| R1a | It holds. | soon |\n"
    assert list(faults_of(rows)) == ["R1a is shown by nothing"]


def test_content_has_every_item_of_its_source() -> None:
    items = re.findall(r"^\| C(\d+) \|", (ROOT / "docs/checklist/content.md").read_text(), re.MULTILINE)
    assert len(items) >= 60
