"""Values in JSON: whatever is asked and answered comes back as it was, with ids as text."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Struct, field
from tests.api.drawing import drawn

from linnet.api.json_forms import Form, form_of, to_json
from linnet.api.operations import OPERATIONS, Operation, answer_type
from linnet.core.errors import BadText
from linnet.core.ids import AuthorId, Contact, DeviceId, EventId, PeerId, TopicId
from linnet.identity.text import Sort, device_text, to_text
from linnet.machine.commands import Hex

PEER = PeerId(b"p" * 32)


class Pair(NamedTuple):
    device: PeerId
    many: int


class One(Struct, frozen=True):
    peer: PeerId = field(name="device")
    is_up: bool
    contact: Contact
    raw: Hex
    pairs: tuple[Pair, ...] = ()
    topic: TopicId | None = None


class Two(Struct, frozen=True):
    author: AuthorId


def through(form: Form, value: Any) -> Any:  # noqa: ANN401 - any value
    """A value as it arrives at the other end."""
    raw = msgspec.json.encode(value if form.write is None else form.write(value))
    read = msgspec.json.decode(raw, type=form.shape)
    return read if form.read is None else form.read(read)


def test_a_struct_as_json() -> None:
    one = One(PEER, True, Contact(PEER, ("tls://h:1",)), b"\xab", (Pair(PEER, 2),))
    text = device_text(PEER)
    assert msgspec.json.decode(to_json(one)) == {
        "device": text,
        "up": True,
        "contact": f"{text}@tls://h:1",
        "raw": "ab",
        "pairs": [{"device": text, "many": 2}],
        "topic": None,
    }
    assert through(form_of(One), one) == one


def test_one_of_several_structs_is_told_apart_by_its_type() -> None:
    form = form_of(One | Two | None)
    two = Two(AuthorId(b"a" * 32))
    assert through(form, two) == two
    assert through(form, None) is None
    assert msgspec.json.decode(to_json(two, One | Two))["type"] == "two"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (PeerId, to_text(Sort.TOPIC, b"p" * 32)),
        (EventId, "le1"),
        (Contact, "ld1@h:1"),
        (Hex, "abc"),
    ],
)
def test_what_is_no_id_is_told_so(kind: Any, text: str) -> None:  # noqa: ANN401 - any type
    form = form_of(kind)
    assert form.read is not None
    with pytest.raises(BadText):
        form.read(msgspec.convert(text, form.shape))


@pytest.mark.parametrize("text", ["", "00", "00112233AABBCCDD", "00112233aabbccdd\n", "0x112233aabbccdd"])
def test_the_short_name_of_a_device_has_sixteen_digits(text: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(text, form_of(DeviceId).shape)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.name)
@settings(max_examples=5, suppress_health_check=list(HealthCheck), deadline=None)
@given(data=st.data())
def test_every_command_and_every_answer_comes_through(operation: Operation, data: st.DataObject) -> None:
    command = data.draw(drawn(operation.command))
    path, rest = operation.write(command)
    words = {name: str(value) for name, value in path.items()}
    given_path = msgspec.convert(words, operation.path_shape, strict=False)
    given_rest = msgspec.json.decode(msgspec.json.encode(rest), type=operation.shape)
    asked = operation.read(given_path, given_rest)
    if operation.item is None:
        assert asked == command
        answer = data.draw(drawn(answer_type(operation.command)))
        assert through(operation.answer, answer) == answer
