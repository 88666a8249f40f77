"""The tables of the study of attacks come into the page between their marks, and nothing else changes."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

PATH = Path(__file__).parents[2] / "scripts" / "attack_table.py"


def loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("attack_table", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SCRIPT: Any = loaded()
SUMMARY = {
    "study": "attacks",
    "parameters": {"repeats": 2, "seed": 7, "attacks": "all"},
    "tables": [{"columns": ["attack", "s"], "rows": [["`a`", 1.5], ["`b`", None]], "note": "A note."}],
}


def test_a_table_is_written_in_markdown() -> None:
    assert SCRIPT.tables_of(SUMMARY) == (
        "Measured over 2 seeds from 7 on, attacks: all.\n\n"
        "| attack | s |\n|---|---|\n| `a` | 1.5 |\n| `b` |  |\n\nA note."
    )


def test_only_what_is_between_the_marks_changes() -> None:
    page = f"before\n{SCRIPT.BEGIN}\nold\n{SCRIPT.END}\nafter\n"
    told = SCRIPT.put_in(page, "new")
    assert told == f"before\n{SCRIPT.BEGIN}\n\nnew\n\n{SCRIPT.END}\nafter\n"
    assert SCRIPT.put_in(told, "new") == told


def test_the_page_has_the_marks_and_another_study_is_refused() -> None:
    assert "new" in SCRIPT.put_in(SCRIPT.PAGE.read_text(), "new")
    with pytest.raises(SystemExit, match="lacks the marks"):
        SCRIPT.put_in("no marks", "new")
    with pytest.raises(SystemExit, match="not of attacks"):
        SCRIPT.tables_of(SUMMARY | {"study": "groups"})
