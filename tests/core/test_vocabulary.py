"""Inputs and effects are values: frozen, comparable, hashable, and cheap for the garbage collector."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from msgspec import Struct

from linnet.core import effects, inputs

VOCABULARY = [
    kind
    for module in (inputs, effects)
    for _, kind in inspect.getmembers(module, inspect.isclass)
    if issubclass(kind, Struct) and kind.__module__ == module.__name__
]


@pytest.mark.parametrize("kind", VOCABULARY, ids=lambda kind: str(kind.__name__))
def test_each_is_a_frozen_value(kind: Any) -> None:  # noqa: ANN401 - any struct type
    config = kind.__struct_config__
    assert config.frozen
    assert not config.gc
    assert not kind.__struct_defaults__, "whoever makes one says everything"
    fields = dict.fromkeys(kind.__struct_fields__, b"x")
    one, two = kind(**fields), kind(**fields)
    assert one == two
    assert hash(one) == hash(two)
    with pytest.raises(AttributeError):
        setattr(one, kind.__struct_fields__[0], b"y")


def test_the_vocabulary_is_not_empty() -> None:
    assert len(VOCABULARY) > 15
