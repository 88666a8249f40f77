"""A test that cannot fail lets every mutant pass, and one that can does not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = Path(__file__).parent.parent.parent / "scripts"
SOURCE = '''\
"""A till."""


class Till:
    """Holds coins."""

    def __init__(self) -> None:
        """Begin with none."""
        self.coins = 0
        """How many there are."""

    def put(self, coins: int) -> bool:
        """Put in coins, at least one."""
        if coins < 1:
            raise ValueError("no coins: " + str(coins))
        self.coins += coins
        return True


def read_label(text: str = "till") -> str:
    """Nobody tests this one."""
    return text if text else "a till"
'''
TESTS = """\
import subprocess
import sys

import pytest

from shop import Till

TILL_OF_IMPORT = Till()


def test_good():
    till = Till()
    assert till.put(1)
    assert till.coins == 1
    with pytest.raises(ValueError):
        till.put(0)


@pytest.mark.parametrize("coins", [1, 2])
def test_vacuous(coins):
    till = Till()
    till.put(coins)
    assert till.coins >= 0 or till.coins < 0


def test_other_process():
    program = "from shop import Till; till = Till(); till.put(3); assert till.coins == 3"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
    assert Till().put(4)


def test_import():
    assert TILL_OF_IMPORT.coins == 0
    assert Till().coins <= 1


def test_red():
    assert Till().coins == 7
"""
CHECKLIST = """\
# Till

| | What holds | Shown by |
|---|---|---|
| T1 | Coins are counted. | `tests/test_shop.py::test_good` |
| T2 | Coins are there. | `tests/test_shop.py::test_vacuous` |
| T3 | Coins are counted elsewhere. | `tests/test_shop.py::test_other_process` |
| T4 | Red. | `tests/test_shop.py::test_red` |
| T5 | Paper money. | not built: nobody has any of it here |
| T5a | Coins are counted once more. | `tests/test_shop.py::test_good` |
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in {
        "src/shop/__init__.py": SOURCE,
        "tests/test_shop.py": TESTS,
        "docs/checklist/till.md": CHECKLIST,
    }.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def run(root: Path, *arguments: str) -> Any:  # noqa: ANN401 # it is JSON
    command = [sys.executable, str(SCRIPTS / "mutants.py"), *arguments, "--root", str(root), "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert ended.returncode == 0, ended.stderr
    assert (root / "src/shop/__init__.py").read_text() == SOURCE
    return json.loads(ended.stdout)


def test_a_row_whose_test_cannot_fail_is_found(root: Path) -> None:
    report = run(root, "claims")
    assert report["left_out"] == {"tests/test_shop.py::test_red": "failed"}
    rows = {row["number"]: row for row in report["rows"]}
    assert [number for number, row in rows.items() if row["caught"]] == ["T1", "T3", "T5a"]
    assert {each["outcome"] for each in rows["T2"]["mutants"]} == {"passed", "crashed"}
    assert rows["T4"]["mutants"] == []
    assert report["caught"] == 3


def test_the_share_of_mutants_that_tests_catch(root: Path) -> None:
    report = run(root, "packages", "shop", "--tests", "tests/test_shop.py::test_good")
    assert report["possible"] == len(report["mutants"])
    outcomes: dict[str, list[str]] = {}
    for each in report["mutants"]:
        outcomes.setdefault(each["outcome"], []).append(each["function"])
    assert set(outcomes.pop("not covered")) == {"read_label"}
    assert set(outcomes) == {"failed", "crashed"}
    assert report["caught"] == sum(map(len, outcomes.values())) > 5


def test_the_same_seed_draws_the_same_mutants(root: Path) -> None:
    drawn = [
        run(
            root,
            "packages",
            "shop",
            "--tests",
            "tests/test_shop.py::test_vacuous",
            "--count",
            "3",
            "--seed",
            seed,
        )
        for seed in ("2", "2", "3")
    ]
    assert len(drawn[0]["mutants"]) == 3
    assert drawn[0] == drawn[1] != drawn[2]


def test_what_survives_in_memory_is_tried_in_a_new_process(root: Path) -> None:
    report = run(root, "packages", "shop", "--tests", "tests/test_shop.py::test_import")
    found = {each["diff"]: each["outcome"] for each in report["mutants"]}
    assert found["-        self.coins = 0\n+        self.coins = (1)"] == "failed"
