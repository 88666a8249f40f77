from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.core.errors import MalformedMessage
from linnet.core.hello import WIRE_VERSION, Hello
from linnet.wire.codec import Codec

CODEC: Codec[Hello] = Codec(Hello)


versions = st.integers(1, 255)


@given(versions, versions, versions, versions)
def test_both_sides_judge_alike(a: int, b: int, c: int, d: int) -> None:
    one, two = Hello(min(a, b), max(a, b), {}), Hello(min(c, d), max(c, d), {})
    shared = set(range(one.oldest, one.newest + 1)) & set(range(two.oldest, two.newest + 1))
    assert one.speaks(two) is two.speaks(one) is bool(shared)


def test_the_first_version_of_hello_stays_readable() -> None:
    """Later versions add fields at the end; these bytes are what every node will always understand."""
    raw = bytes.fromhex("9400010181a46c696e6b01")
    assert CODEC.decode(raw) == Hello(WIRE_VERSION, 1, {"link": 1})


@pytest.mark.parametrize(
    "wrong",
    [
        Hello(0, 1, {}),
        Hello(1, 256, {}),
        Hello(1, 1, {"": 1}),
        Hello(1, 1, {"p": 0}),
        Hello(1, 1, {str(n): 1 for n in range(65)}),
        Hello(1, 1, {}, ("role",) * 17),
        Hello(1, 1, {}, (), 65_535),
        Hello(1, 1, {}, agent="a" * 65),
    ],
)
def test_the_limits_of_hello(wrong: Hello) -> None:
    with pytest.raises(MalformedMessage):
        CODEC.decode(CODEC.encode(wrong))
