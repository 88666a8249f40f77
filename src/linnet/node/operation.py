"""One thing that the node can be asked over the control API."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

Shape = object
"""A type that msgspec can describe."""


class Form(StrEnum):
    """How an answer is written."""

    JSON = "application/json"
    LINES = "application/x-ndjson"


class Operation(Struct, frozen=True):
    """One thing that the node can be asked."""

    name: str
    method: str
    path: str
    summary: str
    reply: Shape
    query: type[Struct] | None = None
    body: type[Struct] | None = None
    parameters: tuple[tuple[str, Shape, str], ...] = ()
    """Parts of the path: name, type, meaning."""
    form: Form = Form.JSON
    status: int = 200
    errors: tuple[int, ...] = ()
    """Statuses of errors beyond those that every operation may have."""
