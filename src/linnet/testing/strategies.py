"""Hypothesis strategies made from the declared types of messages, so that a new field needs no line here."""

from __future__ import annotations

from typing import Any, get_args

from hypothesis import strategies as st
from msgspec import inspect

_LONGEST = 48
"""Elements of a drawn value at most, where its type allows more: what is tried is shape, not volume."""


def values(declared: Any) -> st.SearchStrategy[Any]:  # noqa: ANN401 - any type that msgspec can decode
    """Values of a type as its decoder lets them in: lengths and bounds of its `Meta` are kept."""
    return _of(inspect.type_info(declared))


def members(union: Any) -> tuple[type, ...]:  # noqa: ANN401 - a union is no type to mypy
    """The struct types of a union of messages, in its order."""
    return get_args(union) or (union,)


def _of(info: inspect.Type) -> st.SearchStrategy[Any]:
    match info:
        case inspect.StructType():
            return st.builds(info.cls, *(_of(field.type) for field in info.fields))
        case inspect.UnionType():
            return st.one_of(*(_of(member) for member in reversed(info.types)))
        case inspect.EnumType():
            return st.sampled_from(info.cls)
        case inspect.VarTupleType():
            least, most = _sizes(info, 4)
            return st.lists(_of(info.item_type), min_size=least, max_size=most).map(tuple)
        case inspect.TupleType():
            return st.tuples(*map(_of, info.item_types))
        case inspect.DictType():
            least, most = _sizes(info, 4)
            keys, items = _of(info.key_type), _of(info.value_type)
            return st.dictionaries(keys, items, min_size=least, max_size=most)
        case _:
            return _scalar(info)


def _scalar(info: inspect.Type) -> st.SearchStrategy[Any]:
    match info:
        case inspect.IntType():
            return st.integers(info.ge, info.le)
        case inspect.BytesType():
            least, most = _sizes(info, _LONGEST)
            return st.binary(min_size=least, max_size=most)
        case inspect.StrType():
            least, most = _sizes(info, _LONGEST)
            return st.text(st.characters(exclude_categories=["Cs"]), min_size=least, max_size=most)
        case inspect.BoolType():
            return st.booleans()
        case inspect.NoneType():
            return st.none()
        case _:
            raise TypeError(f"no message has had a {info!r} so far")


def _sizes(
    info: inspect.VarTupleType | inspect.DictType | inspect.BytesType | inspect.StrType, most: int
) -> tuple[int, int]:
    """The least and the most elements to draw."""
    least = info.min_length or 0
    longest = max(least, most)
    return least, longest if info.max_length is None else min(longest, info.max_length)
