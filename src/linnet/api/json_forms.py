"""Values of commands and results as JSON: by their annotations, ids become text and structs their twins.

An id is bytes, so the value does not show its kind; its type does. For every struct a twin is made once, in
which each field has its JSON form. Twins are what msgspec reads, writes and describes. Limits
(`msgspec.Meta`) stay with them.
"""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, NamedTuple, NewType, Union, cast, get_args, get_origin, get_type_hints

import msgspec
from msgspec import NODEFAULT, Meta, Struct

from linnet.api.items import EventView, event_of
from linnet.api.places import (
    ObjectView,
    VariableView,
    modifier_of,
    object_of,
    object_view,
    variable_view,
)
from linnet.api.rooms import room_event_view
from linnet.content.commands import Ended as Gone
from linnet.core.errors import BadText
from linnet.core.ids import AuthorId, Contact, DeviceId, EventId, PeerId, TopicId
from linnet.event.event import Event
from linnet.identity.addresses import contact_text, parse_contact
from linnet.identity.text import Sort, from_text, to_text
from linnet.machine.commands import Command, Done
from linnet.places.address import PlaceAddress, parse_address
from linnet.places.channel.packet import Modifier
from linnet.places.commands import PlaceObject
from linnet.rooms.invitations import Invitation, parse_invitation

Convert = Callable[[Any], Any]
_encode = msgspec.json.Encoder().encode
_ID_CHARS = 128
_CONTACT_CHARS = 2048
_HEX_BYTES = 64
_ADDRESS_CHARS = 16_384
_LIST_CHARS = 4096


class Form(NamedTuple):
    """The JSON form of the values of one type."""

    shape: Any
    """The type that msgspec reads, writes and describes."""
    write: Convert | None = None
    """Converts a value to its shape; None: it is the same."""
    read: Convert | None = None
    """Converts a shape back to the value."""


def _text(sort: Sort, what: str) -> Form:
    meta = Meta(min_length=1, max_length=_ID_CHARS, description=f"{what}, `{sort.value}…`")
    return Form(Annotated[str, meta], lambda value: to_text(sort, value), lambda text: from_text(sort, text))


def _hex(least: int, most: int, what: str) -> Form:
    meta = Meta(pattern="^[0-9a-f]*$", min_length=least, max_length=most, description=what)
    return Form(Annotated[str, meta], bytes.hex, _from_hex)


def _from_hex(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError as error:
        raise BadText(f"{text!r} has half a byte: an even number of digits is wanted") from error


class DoneReply(Struct, frozen=True):
    """The command was carried out."""

    done: bool = True


class InvitationText(Struct, frozen=True):
    """An invitation; hand over its `text`, which the other fields only describe."""

    text: str
    room: str
    name: str | None
    person: str | None
    expires_at: float
    contacts: tuple[str, ...]


def _invitation_text(invitation: Invitation) -> InvitationText:
    ticket = invitation.ticket
    return InvitationText(
        invitation.text,
        to_text(Sort.TOPIC, invitation.room),
        invitation.name,
        None if ticket.person is None else to_text(Sort.PERSON, ticket.person),
        ticket.expires_ms / 1000,
        tuple(map(contact_text, invitation.contacts)),
    )


_FORMS: dict[Any, Form] = {
    Event: Form(EventView, room_event_view, event_of),
    Invitation: Form(InvitationText, _invitation_text, lambda told: parse_invitation(told.text, 0.0)),
    Modifier: Form(VariableView, variable_view, modifier_of),
    PlaceObject: Form(ObjectView, object_view, object_of),
    PlaceAddress: Form(
        Annotated[str, Meta(min_length=1, max_length=_ADDRESS_CHARS, description="an address, `la1…`")],
        lambda address: address.text,
        parse_address,
    ),
    Done: Form(DoneReply, lambda _: DoneReply(), lambda _: Done()),
    Gone: Form(DoneReply, lambda _: DoneReply(), lambda _: Gone()),
    PeerId: _text(Sort.DEVICE, "a device id"),
    AuthorId: _text(Sort.PERSON, "a person id"),
    TopicId: _text(Sort.TOPIC, "a topic id"),
    EventId: _text(Sort.EVENT, "an event id"),
    DeviceId: _hex(16, 16, "the short name of a device, hexadecimal"),
    Contact: Form(
        Annotated[str, Meta(min_length=1, max_length=_CONTACT_CHARS, description="`KEY@HOST:PORT`")],
        contact_text,
        lambda text: parse_contact(text) if "@" in text else Contact(PeerId(from_text(Sort.DEVICE, text))),
    ),
}


def to_json(value: object, kind: object = None) -> bytes:
    """Encode a value as JSON, by the given type or its own."""
    if kind is None:
        return _encode(_shaped(value))
    write = form_of(kind).write
    return _encode(value if write is None else write(value))


def _shaped(value: object) -> object:
    """Return the JSON shape of a value, by its own type or by those of its items."""
    match value:
        case Struct():
            try:
                write = form_of(type(value)).write
            except NameError:
                return value  # A report of a command, whose types are imported for type checkers alone.
            return value if write is None else write(value)
        case dict():
            return {name: _shaped(each) for name, each in value.items()}
        case list() | tuple():
            return [_shaped(each) for each in value]
        case _:
            return value


@cache
def form_of(kind: Any) -> Form:  # noqa: ANN401 - any type
    """Return the form of a type: an id is text, a struct its twin, a tuple or option has its items' form."""
    if kind in _FORMS:
        return _FORMS[kind]
    if isinstance(kind, NewType):
        return form_of(kind.__supertype__)
    if isinstance(kind, type) and (issubclass(kind, Struct) or _is_record(kind)):
        return _struct(kind, None)
    origin, items = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _annotated(kind, items[0])
    if origin in (Union, types.UnionType):
        return _union(items)
    if origin is tuple and items[-1] is not ...:
        return _pair(items)
    if origin in (tuple, list, frozenset, set):
        return _many(origin, items)
    if origin in (dict, Mapping):
        return _mapping(items)
    return Form(kind)


def _annotated(kind: Any, bare: Any) -> Form:  # noqa: ANN401 - any type
    match next((meta.extra["told"] for meta in kind.__metadata__ if meta.extra), None):
        case "hex":
            sizes = [meta.max_length for meta in kind.__metadata__ if meta.max_length is not None]
            least = [meta.min_length for meta in kind.__metadata__ if meta.min_length is not None]
            return _hex(2 * min(least, default=0), 2 * min(sizes, default=_HEX_BYTES), "hexadecimal")
        case "text":
            return Form(str, lambda raw: raw.decode("utf-8", "replace"), str.encode)
        case "commas":
            meta = Meta(max_length=_LIST_CHARS, description="names with commas between")
            return Form(Annotated[str, meta], ",".join, lambda text: tuple(text.split(",")))
        case _:
            pass
    form = form_of(bare)
    if form.shape is bare:
        return Form(kind)
    if get_origin(form.shape) is Annotated:
        return form  # The lengths of an id in bytes are not those of its text.
    return Form(Annotated[form.shape, *kind.__metadata__], form.write, form.read)


def _many(origin: Any, items: tuple[Any, ...]) -> Form:  # noqa: ANN401 - any type
    form = form_of(items[0])
    shape: Any = types.GenericAlias(origin, (form.shape, ...) if origin is tuple else (form.shape,))
    write, read = form.write, form.read
    return Form(
        shape,
        None if write is None else lambda values: origin(map(write, values)),
        None if read is None else lambda values: origin(map(read, values)),
    )


def _pair(items: tuple[Any, ...]) -> Form:
    forms = [form_of(item) for item in items]
    if all(form.write is None for form in forms):
        return Form(tuple[tuple(form.shape for form in forms)])  # type: ignore[misc] # made at run time
    writes, reads = [form.write or _same for form in forms], [form.read or _same for form in forms]
    return Form(
        tuple[tuple(form.shape for form in forms)],  # type: ignore[misc] # made at run time
        lambda values: tuple(write(each) for write, each in zip(writes, values, strict=True)),
        lambda values: tuple(read(each) for read, each in zip(reads, values, strict=True)),
    )


def _mapping(items: tuple[Any, ...]) -> Form:
    key, value = map(form_of, items)
    if key.write is None and value.write is None:
        return Form(dict[key.shape, value.shape])  # type: ignore[name-defined] # made at run time
    write_key, write = key.write or _same, value.write or _same
    read_key, read = key.read or _same, value.read or _same
    return Form(
        dict[key.shape, value.shape],  # type: ignore[name-defined] # made at run time
        lambda values: {write_key(name): write(each) for name, each in values.items()},
        lambda values: {read_key(name): read(each) for name, each in values.items()},
    )


def _union(items: tuple[Any, ...]) -> Form:
    """Return the form of an option, or of a union of structs, which a tag tells apart."""
    structs = [item for item in items if isinstance(item, type) and issubclass(item, Struct)]
    others = [item for item in items if item not in structs]
    if len(structs) > 1:
        named = {kind: _struct(kind, tag_of(kind)) for kind in structs}
        writes = {kind: form.write or _same for kind, form in named.items()}
        reads = {form.shape: form.read or _same for form in named.values()}
        return Form(
            _joined([*(form.shape for form in named.values()), *others]),
            lambda value: writes.get(type(value), _same)(value),
            lambda value: reads.get(type(value), _same)(value),
        )
    forms = [form_of(item) for item in items]
    shape = _joined([form.shape for form in forms])
    changed = [form for form in forms if form.write is not None]
    if not changed:
        return Form(shape)
    if len(changed) > 1 or any(item not in (types.NoneType, _changed_of(items)) for item in items):
        raise TypeError(f"JSON does not tell {items} apart")
    [form] = changed
    return Form(shape, _unless_none(form.write), _unless_none(form.read))


def _changed_of(items: tuple[Any, ...]) -> Any:  # noqa: ANN401 - any type
    """Return the one of these types that has another form in JSON."""
    return next(item for item in items if form_of(item).write is not None)


def _unless_none(convert: Convert | None) -> Convert | None:
    return None if convert is None else lambda value: None if value is None else convert(value)


def _joined(shapes: list[Any]) -> Any:  # noqa: ANN401 - any type
    return Union[tuple(shapes)]  # noqa: UP007 - made at run time


def _same(value: Any) -> Any:  # noqa: ANN401 - any value
    return value


def _is_record(kind: type) -> bool:
    """Return whether a type is a named tuple, which is an object in JSON."""
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


def tag_of(kind: type) -> str:
    """Return the tag of a struct in a union: ``caught_up``."""
    return snake(kind.__name__)


def snake(name: str) -> str:
    """Return a class name in the style of a field name."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


@cache
def _struct(kind: type, tag: str | None) -> Form:
    """Return the form of a struct with its twin. Renamed fields keep their JSON name, flags lose ``is_``."""
    fields = fields_of(kind)
    if (
        tag is None
        and issubclass(kind, Struct)
        and not kind.__struct_config__.array_like
        and all(field.is_plain for field in fields)
    ):
        return Form(kind)
    own = getattr(kind, "__struct_config__", None)
    return _twin(kind, tag or (None if own is None else own.tag), fields)


class Field(NamedTuple):
    """One field of a struct and of its twin."""

    name: str
    told: str
    """Its name in JSON."""
    form: Form
    default: Any

    @property
    def is_plain(self) -> bool:
        """Whether it has the same form and name in JSON."""
        return self.form.write is None and self.name == self.told


def told_name(field: msgspec.structs.FieldInfo) -> str:
    """Return the name of a field in JSON."""
    return field.encode_name if field.encode_name != field.name else field.name.removeprefix("is_")


@cache
def fields_of(kind: type) -> tuple[Field, ...]:
    """Return the fields of a struct as its twin has them."""
    hints = get_type_hints(kind, include_extras=True)
    if not issubclass(kind, Struct):
        names: tuple[str, ...] = getattr(kind, "_fields", ())
        return tuple(Field(name, name, form_of(hints[name]), NODEFAULT) for name in names)
    found = []
    for each in msgspec.structs.fields(kind):
        form = form_of(hints[each.name])
        default: Any = NODEFAULT
        if each.default is not NODEFAULT:
            default = form.write(each.default) if form.write else each.default
        elif each.default_factory is not NODEFAULT:
            made = cast("Convert", each.default_factory)()  # type: ignore[call-arg]
            default = form.write(made) if form.write else made
        found.append(Field(each.name, told_name(each), form, default))
    return tuple(found)


def define_twin(kind: type, fields: tuple[Field, ...], tag: str | None = None) -> type[Struct]:
    """Define the twin of a struct, or of some of its fields. A command's twin forbids unknown fields."""
    is_asked = issubclass(kind, Command)
    specs: list[Any] = [
        (each.told, each.form.shape, *(() if each.default is NODEFAULT else (each.default,)))
        for each in fields
    ]
    return msgspec.defstruct(
        # msgspec describes no two types of one name; a struct may be in a union here, and alone elsewhere.
        kind.__name__ if tag is None else f"{kind.__name__}Variant",
        specs,
        module=kind.__module__,
        namespace={"__doc__": kind.__doc__, "twin_of": kind},
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=is_asked,
        omit_defaults=is_asked,
        tag=tag,
        tag_field=None if tag is None else "type",
    )


def _twin(kind: type, tag: str | None, fields: tuple[Field, ...]) -> Form:
    shape = define_twin(kind, fields, tag)
    writes = [(each.name, each.told, each.form.write or _same) for each in fields]
    reads = [(each.name, each.told, each.form.read or _same) for each in fields]

    def write(value: Any) -> Any:  # noqa: ANN401 - of this kind
        return shape(**{told: convert(getattr(value, name)) for name, told, convert in writes})

    def read(twin: Any) -> Any:  # noqa: ANN401 - of its shape
        return kind(**{name: convert(getattr(twin, told)) for name, told, convert in reads})

    return Form(shape, write, read)
