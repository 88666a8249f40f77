"""What a field of the configuration may hold: told in words, and checked with the same words.

Works on the types themselves (`msgspec.inspect`), so that words, checks and values cannot differ.
Numbers without a stated bound must be above zero: they are counts, bytes and durations.
"""

from __future__ import annotations

import difflib
import math
from enum import Enum

from msgspec import Struct, inspect

from linnet.node.toml_lines import Path

LARGEST = 2**63 - 1
_SHOWN_CHARS = 60
_KINDS: dict[type, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "a table",
}


class Problem(Struct, frozen=True):
    """One thing that is wrong with a configuration, and where."""

    path: Path
    what: str


def allowed(kind: inspect.Type) -> str:
    """What this type holds, in words."""
    match kind:
        case inspect.UnionType():
            return " or ".join(allowed(each) for each in kind.types if not isinstance(each, inspect.NoneType))
        case inspect.BoolType():
            return "true or false"
        case inspect.EnumType():
            return "one of " + ", ".join(f'"{value}"' for value in _values(kind.cls))
        case inspect.IntType():
            return "a whole number" + _range(kind)
        case inspect.FloatType():
            return "a number" + _range(kind)
        case inspect.StrType():
            return "text" + _length(kind.min_length, kind.max_length, "characters")
        case inspect.VarTupleType():
            if isinstance(kind.item_type, inspect.StructType):
                return "a list of tables"
            return f"a list of {allowed(kind.item_type)}, {kind.max_length} at most"
        case _:
            return "a table"


def problems(value: object, kind: inspect.Type, path: Path) -> list[Problem]:
    """All that is wrong with a value of this type, each with its place; empty if it is right."""
    match kind:
        case inspect.StructType():
            return _struct_problems(value, kind, path)
        case inspect.VarTupleType() if isinstance(value, list):
            if kind.max_length is not None and len(value) > kind.max_length:
                return [Problem(path, f"{len(value)} elements; at most {kind.max_length} are allowed")]
            return [
                problem
                for number, each in enumerate(value)
                for problem in problems(each, kind.item_type, (*path, number))
            ]
        case inspect.DictType() if isinstance(value, dict):
            return [
                problem
                for key, each in value.items()
                for problem in problems(key, kind.key_type, (*path, key))
                + problems(each, kind.value_type, (*path, key))
            ]
        case _:
            if _fits(value, kind):
                return []
            return [Problem(path, f"{_shown(value)} is wrong; allowed is {allowed(kind)}")]


def _struct_problems(value: object, kind: inspect.StructType, path: Path) -> list[Problem]:
    if not isinstance(value, dict):
        return [Problem(path, f"{_shown(value)} is wrong; allowed is a table of settings")]
    fields = {field.name: field for field in kind.fields}
    found: list[Problem] = []
    for key, each in value.items():
        if key in fields:
            found += problems(each, fields[key].type, (*path, key))
        else:
            found.append(Problem((*path, key), _unknown(key, list(fields))))
    found += [
        Problem(path, f"{name} is missing; it is {allowed(field.type)}")
        for name, field in fields.items()
        if field.required and name not in value
    ]
    return found


def _unknown(key: str, known: list[str]) -> str:
    close = difflib.get_close_matches(key[:_SHOWN_CHARS], known, n=1)
    if close:
        return f"there is no such setting; did you mean {close[0]}?"
    return f"there is no such setting; here are {', '.join(known)}"


def _fits(value: object, kind: inspect.Type) -> bool:
    match kind:
        case inspect.UnionType():
            return any(_fits(value, each) for each in kind.types)
        case inspect.BoolType():
            return isinstance(value, bool)
        case inspect.EnumType():
            return isinstance(value, str) and value in _values(kind.cls)
        case inspect.IntType():
            return isinstance(value, int) and not isinstance(value, bool) and _within(value, kind)
        case inspect.FloatType():
            return isinstance(value, int | float) and not isinstance(value, bool) and _within(value, kind)
        case inspect.StrType():
            shortest = 0 if kind.min_length is None else kind.min_length
            longest = LARGEST if kind.max_length is None else kind.max_length
            return isinstance(value, str) and shortest <= len(value) <= longest
        case _:
            return False


def _within(value: float, kind: inspect.IntType | inspect.FloatType) -> bool:
    if not math.isfinite(value) or abs(value) > LARGEST:
        return False
    if kind.le is not None and value > kind.le:
        return False
    return value >= kind.ge if kind.ge is not None else value > (kind.gt or 0)


def _range(kind: inspect.IntType | inspect.FloatType) -> str:
    if kind.ge is None:
        return f" above {kind.gt or 0}"
    return f" from {kind.ge} to {kind.le}" if kind.le is not None else f" from {kind.ge} on"


def _length(shortest: int | None, longest: int | None, of: str) -> str:
    if longest is None:
        return ""
    return f" of {shortest} to {longest} {of}" if shortest else f" of at most {longest} {of}"


def _values(cls: type[Enum]) -> list[str]:
    return [str(member.value) for member in cls]


def _shown(value: object) -> str:
    kind = next((words for each, words in _KINDS.items() if type(value) is each), "a date or time")
    text = (
        str(value).lower()
        if isinstance(value, bool)
        else repr(value)
        if isinstance(value, str | float)
        else ""
    )
    if isinstance(value, int) and not isinstance(value, bool):
        text = str(value) if abs(value) <= LARGEST else "so large a number"
    text = text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "…"
    return text or kind
