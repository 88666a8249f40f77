"""What a table was made from. Two manifests with the same digest stand for the same rows."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TypeAlias

import msgspec
from msgspec import Struct

from linnet.lab.contents import Part
from linnet.lab.errors import LabError

FILE = "_manifest.json"
"""Its name begins so that Spark does not take it for data."""

FORMAT = 1

Value: TypeAlias = str | int | float | bool | None
Parameter: TypeAlias = Value | tuple[Value, ...]


class Origin(Struct, frozen=True, order=True):
    """Something that a table was made from: a file of the world, or another table."""

    name: str
    digest: str
    """SHA-256 of a file's content, or the digest of a table's manifest."""


class Recipe(Struct, frozen=True):
    """All that decides what is in a table."""

    table: str
    version: int
    """Of the table's columns."""
    inputs: tuple[Origin, ...]
    parameters: dict[str, Parameter]
    seed: int | None
    code: str
    """Version of the library."""

    def digest(self) -> str:
        """The name of what this recipe makes."""
        encoded = msgspec.json.encode(self, order="sorted")
        return hashlib.sha256(encoded).hexdigest()


class Manifest(Struct, frozen=True):
    """A recipe, and what it came to."""

    format: int
    recipe: Recipe
    digest: str
    rows: int
    seconds: float
    peak_bytes: int
    parts: tuple[Part, ...] = ()
    """The files that hold its rows. Manifests of version 0.1.0 do not name them."""


def file_input(path: Path) -> Origin:
    """A file as an input, known by its content and not by where it lies."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    except OSError as error:
        raise LabError(f"{path} cannot be read: {error.strerror}") from error
    return Origin(path.name, digest.hexdigest())


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a table; None if there is none that can be trusted."""
    try:
        manifest = msgspec.json.decode((folder / FILE).read_bytes(), type=Manifest)
    except (OSError, msgspec.DecodeError):
        return None
    return manifest if manifest.format == FORMAT and manifest.digest == manifest.recipe.digest() else None


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write it; the table is whole once its folder gets its name."""
    encoded = msgspec.json.format(msgspec.json.encode(manifest, order="deterministic"), indent=1)
    (folder / FILE).write_bytes(encoded + b"\n")
