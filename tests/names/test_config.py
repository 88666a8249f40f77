"""A configuration that makes no sense is not taken."""

from __future__ import annotations

import msgspec
import pytest

from linnet.names.config import NamesConfig


def test_what_is_not_said_has_a_default() -> None:
    assert msgspec.convert({}, NamesConfig) == NamesConfig()


@pytest.mark.parametrize(
    "wrong", [{"depth": 0}, {"candidates": 9}, {"patience": 0.0}, {"lifetime": 1e9}, {"deep": 8}]
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(wrong, NamesConfig)
