"""Recipes and manifests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from linnet.lab.manifest import FILE, FORMAT, Manifest, Origin, Recipe, read_manifest, write_manifest

RECIPE = Recipe("numbers", 1, (Origin("file", "ab"),), {"b": 2, "a": (1, 2)}, 7, "code")


def manifest(recipe: Recipe = RECIPE, **changes: int | str) -> Manifest:
    made = Manifest(FORMAT, recipe, recipe.digest(), 3, 0.5, 10)
    return msgspec.structs.replace(made, **changes)


def test_the_order_of_parameters_does_not_matter_and_everything_else_does() -> None:
    other = msgspec.structs.replace(RECIPE, parameters={"a": (1, 2), "b": 2})
    assert other.digest() == RECIPE.digest()
    changes: tuple[dict[str, Any], ...] = (
        {"table": "x"},
        {"version": 2},
        {"inputs": ()},
        {"parameters": {}},
        {"seed": None},
        {"code": "x"},
    )
    digests = {msgspec.structs.replace(RECIPE, **change).digest() for change in changes}
    assert len(digests) == len(changes)
    assert RECIPE.digest() not in digests


def test_what_is_written_is_read(tmp_path: Path) -> None:
    write_manifest(tmp_path, manifest())
    assert read_manifest(tmp_path) == manifest()
    assert FILE.startswith("_")


def test_what_cannot_be_trusted_is_not_there(tmp_path: Path) -> None:
    assert read_manifest(tmp_path) is None
    for wrong in (manifest(format=FORMAT + 1), manifest(digest="00")):
        write_manifest(tmp_path, wrong)
        assert read_manifest(tmp_path) is None
    (tmp_path / FILE).write_text('{"format": ')
    assert read_manifest(tmp_path) is None
