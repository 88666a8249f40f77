"""The map in docs/architecture.md is that of the house: packages, their order, the files of walks."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "linnet"
PAGE = (ROOT / "docs" / "architecture.md").read_text()
AGAIN = "run: python scripts/house.py --write"


def picture() -> list[list[str]]:
    """The lines of the picture, each with its packages."""
    [block] = re.findall(r"^```\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    return [re.split(r" {2,}", line)[0].split(" | ") for line in block.splitlines()]


def test_the_picture_shows_every_package_once() -> None:
    shown = [package for line in picture() for package in line]
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert sorted(shown) == sorted(packages - {"testing"})


def test_the_picture_has_the_order_of_the_import_contract() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    [layers] = [
        each["layers"] for each in project["tool"]["importlinter"]["contracts"] if each["type"] == "layers"
    ]
    assert [" | ".join(line) for line in picture()] == layers


def test_every_file_of_a_walk_exists() -> None:
    walks = PAGE.partition("<!-- walks")[2].partition("<!-- end of walks -->")[0]
    assert walks.count("**") == 2 * 4, AGAIN
    for package, modules in re.findall(r"^- (\w+): (.*)$", walks, re.MULTILINE):
        for module in re.findall(r"`([^`]+)`", modules):
            assert (SOURCE / package / f"{module}.py").exists(), f"{package}/{module}.py; {AGAIN}"
