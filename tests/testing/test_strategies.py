from __future__ import annotations

from typing import Annotated

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct

from linnet.peer.messages import LinkMessage, Ping
from linnet.testing.strategies import members, values


class Sample(Struct, frozen=True, array_like=True):
    short: Annotated[bytes, Meta(min_length=3, max_length=3)]
    name: Annotated[str, Meta(min_length=1, max_length=2)] | None
    numbers: Annotated[tuple[Annotated[int, Meta(ge=5, le=6)], ...], Meta(min_length=1)]


@given(values(Sample))
def test_what_is_drawn_passes_the_decoder(sample: Sample) -> None:
    raw = msgspec.msgpack.encode(sample)
    assert msgspec.msgpack.decode(raw, type=Sample) == sample


def test_the_members_of_a_union_and_of_a_single_type() -> None:
    assert len(members(LinkMessage)) == 5
    assert members(Ping) == (Ping,)


def test_a_type_that_no_message_has_is_named() -> None:
    with pytest.raises(TypeError, match="no message"):
        values(float)


@given(st.data())
def test_optional_fields_are_drawn_present_and_absent(data: st.DataObject) -> None:
    drawn = data.draw(st.lists(values(Annotated[int, Meta(ge=0, le=1)] | None), min_size=60, max_size=60))
    assert set(drawn) <= {0, 1, None}
