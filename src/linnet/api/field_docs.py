"""Reads the docstrings below the fields of a class."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from functools import cache

_WITHOUT_FIELDS = ("builtins", "msgspec", "typing")
"""Packages whose classes are only bases, without fields to describe."""


def field_docs(kind: type) -> dict[str, str]:
    """Return the docstring below each field of a class and of its bases; empty where there is none."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        if each.__module__.partition(".")[0] not in _WITHOUT_FIELDS:
            found.update(_classes(each.__module__).get(each.__name__, {}))
    return found


@cache
def _classes(module: str) -> dict[str, dict[str, str]]:
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except OSError:  # It was typed in: a program that adds a protocol may be a session of Python.
        return {}
    return {each.name: dict(_fields(each)) for each in tree.body if isinstance(each, ast.ClassDef)}


def _fields(tree: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for node, following in zip(tree.body, [*tree.body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            match following:
                case ast.Expr(ast.Constant(str(text))):
                    yield node.target.id, " ".join(text.split())
                case _:
                    yield node.target.id, ""
