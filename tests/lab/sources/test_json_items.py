"""Lists in JSON, item by item."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.lab.sources import json_items as reading
from linnet.lab.sources.json_items import BROKEN, json_items
from linnet.lab.sources.rows import Bad

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(VALUES, max_size=8), st.integers(1, 40), st.sampled_from([None, 1]))
def test_items_are_those_of_the_whole(values: list[object], block: int, indent: int | None) -> None:
    whole = {"first": {"messages": [1]}, "number": 1234567, "messages": values, "last": "x"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "_BLOCK", block)
        for value, key in ((whole, "messages"), (values, None)):
            text = json.dumps(value, indent=indent)
            found = list(json_items(io.StringIO(text), key))
            assert [item[1] for item in found if not isinstance(item, Bad)] == values
            assert len(found) == len(values)


def test_items_know_their_line() -> None:
    text = '{"a": "x",\n"messages": [\n {"n":\n 1},\n\n 2, 3]}'
    assert list(json_items(io.StringIO(text), "messages")) == [(3, {"n": 1}), (6, 2), (6, 3)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[1,\n{2", [(1, 1), Bad(2, BROKEN, "")]),
        ("[1 2]", [(1, 1), Bad(1, BROKEN, "")]),
        ("", [Bad(1, BROKEN, "")]),
        ("{}", [Bad(1, BROKEN, "")]),
        ("[]", []),
        ('[{"a":\n', [Bad(1, BROKEN, "")]),
    ],
)
def test_broken_files_say_so(text: str, found: list[object]) -> None:
    assert list(json_items(io.StringIO(text))) == found


def test_an_object_without_the_key_has_no_items() -> None:
    assert list(json_items(io.StringIO('{"a": [1]}'), "messages")) == []
    assert list(json_items(io.StringIO("{}"), "messages")) == []


def test_an_item_without_end_is_not_read_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LARGEST_ITEM", 100_000)
    text = '["' + "x" * 1_000_000 + '"]'
    file = io.StringIO(text)
    assert list(json_items(file)) == [Bad(1, BROKEN, "")]
    assert file.tell() < 500_000
