"""No two uses share a label, and no two lists of fields make the same bytes."""

from __future__ import annotations

import ast
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from linnet.groups import labels
from linnet.groups.labels import ALL, Purpose, fields, u32

PARTS = st.lists(st.binary(max_size=6), max_size=5)


def test_all_labels_are_listed_and_differ() -> None:
    named = [
        value
        for name, value in vars(labels).items()
        if name.isupper() and isinstance(value, bytes) and not name.startswith(("_", "STEP_"))
    ]
    assert sorted(named) == sorted(ALL)
    assert len(set(ALL)) == len(ALL)
    assert all(label.startswith(b"dcgka/v1/") and len(label) > len(b"dcgka/v1/") for label in ALL)


def test_every_label_is_used_and_in_one_module_alone() -> None:
    """What another module separates by the same label is not separated from it."""
    names = {value: name for name, value in vars(labels).items() if value in ALL}
    users: dict[str, list[str]] = {name: [] for name in names.values()}
    for path in Path(labels.__file__).parent.glob("*.py"):
        if path.stem == "labels":
            continue
        nodes = list(ast.walk(ast.parse(path.read_text())))
        read = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        for name in read & users.keys():
            users[name].append(path.stem)
        written = [node.value for node in nodes if isinstance(node, ast.Constant)]
        assert not [value for value in written if isinstance(value, bytes) and value.startswith(b"dcgka")]
    assert {name: len(found) for name, found in users.items()} == dict.fromkeys(users, 1), users


def test_purposes_and_steps_differ() -> None:
    assert len({purpose.value for purpose in Purpose}) == len(Purpose) == 4
    assert len({labels.STEP_SECRET, labels.STEP_WELCOME, labels.STEP_ADD}) == 3


def test_fields_have_their_length_before_them() -> None:
    assert fields(b"ab", b"", b"c") == bytes.fromhex("00000002 6162 00000000 00000001 63")
    assert fields() == b""
    assert u32(0x01020304) == bytes((1, 2, 3, 4))


@given(PARTS, PARTS)
def test_other_lists_make_other_bytes(one: list[bytes], other: list[bytes]) -> None:
    assert (fields(*one) == fields(*other)) == (one == other)


@given(PARTS)
def test_where_a_field_ends_matters(parts: list[bytes]) -> None:
    joined = b"".join(parts)
    assert fields(joined) != fields(*parts) or parts == [joined]
