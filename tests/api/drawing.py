"""Values of any command and result, drawn by their annotations: ids are whole, limits are kept."""

from __future__ import annotations

import types
from enum import Enum
from typing import Annotated, Any, Literal, NewType, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st
from msgspec import Meta, Struct

from linnet.core.ids import AuthorId, Contact, DeviceId, EventId, PeerId, TopicId
from linnet.event.event import Event, Tail
from linnet.identity.cards import issue_card
from linnet.identity.keys import SigningKey
from linnet.places.address import PlaceAddress
from linnet.places.channel.packet import OPERATORS, Modifier
from linnet.rooms.invitations import Invitation, Ticket, issue_ticket

_KEYS = st.binary(min_size=32, max_size=32)
_HINTS = st.lists(st.sampled_from(["tls://h:1", "wss://h:2"]), max_size=2).map(tuple)
_WHOLE: dict[Any, st.SearchStrategy[Any]] = {
    PeerId: _KEYS,
    AuthorId: _KEYS,
    TopicId: _KEYS,
    EventId: _KEYS,
    DeviceId: st.binary(min_size=8, max_size=8),
    Contact: st.builds(Contact, _KEYS, _HINTS),
}
_DEVICE = SigningKey(b"d" * 32)
_CARD = issue_card(SigningKey(b"p" * 32), _DEVICE.public, 0, 2**31, "")


def _ticket(room: TopicId, person: AuthorId | None, expires_ms: int) -> Ticket:
    return issue_ticket(_DEVICE, _CARD, room, person, expires_ms, b"n" * 8)


def _event(ids: tuple[EventId, TopicId, AuthorId], device: DeviceId, words: tuple[str, int, bytes]) -> Event:
    """An event with what its lines tell of it."""
    key, time, body = words
    return Event(*ids, device, 3, None, Tail(None, None, 4, None, "message", key, time, None, body))


_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_MODIFIERS = st.builds(
    Modifier, st.sampled_from(OPERATORS), st.text("_ab", min_size=1, max_size=9), st.binary(max_size=9)
)
_PLACE_ADDRESSES = st.builds(
    PlaceAddress,
    _KEYS,
    # An address names only those who can be dialled.
    st.lists(st.builds(Contact, _KEYS, st.just(("tls://h:1",))), max_size=3).map(tuple),
    st.none() | st.text("abc", min_size=1, max_size=9),
)


# What is no sum of its fields: signed, or nested where its lines are flat.
_WHOLE |= {
    Modifier: _MODIFIERS,
    PlaceAddress: _PLACE_ADDRESSES,
    Event: st.builds(
        _event,
        st.tuples(_KEYS, _KEYS, _KEYS),
        st.binary(min_size=8, max_size=8),
        st.tuples(
            st.text(st.characters(exclude_categories=["Cs"]), max_size=9),
            st.integers(0, 2**40),
            st.binary(max_size=9),
        ),
    ),
    Invitation: st.builds(
        Invitation,
        st.builds(_ticket, _KEYS, st.none() | _KEYS, st.integers(1, 2**40)),
        # An invitation names only those who can be dialled.
        st.lists(st.builds(Contact, _KEYS, st.just(("tls://h:1",))), max_size=3).map(tuple),
        st.none() | st.text("abc", min_size=1, max_size=9),
    ),
}


def drawn(kind: Any, meta: Meta | None = None) -> st.SearchStrategy[Any]:  # noqa: ANN401, C901 - any type
    """Values of a type."""
    origin, items = get_origin(kind), get_args(kind)
    if kind in _WHOLE:
        return _WHOLE[kind]
    if isinstance(kind, NewType):
        return drawn(kind.__supertype__)
    if origin is Annotated:
        if items[0] in _WHOLE:
            return _WHOLE[items[0]]
        metas = [each for each in kind.__metadata__ if isinstance(each, Meta)]
        if any((each.extra or {}).get("told") == "text" for each in metas):
            return _TEXT.map(str.encode)
        return drawn(items[0], metas[-1] if metas else None)
    if origin in (Union, types.UnionType):
        return st.one_of(*map(drawn, items))
    if origin is Literal:
        return st.sampled_from(items)
    if origin is tuple:
        if items[-1] is ...:
            least = 0 if meta is None else meta.min_length or 0
            return st.lists(drawn(items[0]), min_size=least, max_size=3).map(tuple)
        return st.tuples(*map(drawn, items))
    if origin is dict:
        return st.dictionaries(drawn(items[0]), drawn(items[1]), max_size=3)
    if issubclass(kind, Struct) or hasattr(kind, "_fields"):
        hints = get_type_hints(kind, include_extras=True)
        names = kind.__struct_fields__ if issubclass(kind, Struct) else kind._fields
        return st.builds(kind, **{name: drawn(hints[name]) for name in names})
    if issubclass(kind, Enum):
        return st.sampled_from(kind)
    return _scalar(kind, meta or Meta())


def _scalar(kind: type, meta: Meta) -> st.SearchStrategy[Any]:
    if kind is bool:
        return st.booleans()
    if kind is int:
        most = 10**6 if meta.le is None else min(int(meta.le), 10**6)
        return st.integers(-5 if meta.ge is None else int(meta.ge), most)
    if kind is float:
        least = meta.ge if meta.gt is None else meta.gt
        highest = 1e6 if meta.le is None else min(meta.le, 1e6)
        return st.floats(0.0 if least is None else least, highest, exclude_min=meta.gt is not None)
    least_length = meta.min_length or 0
    most_length = max(least_length, min(meta.max_length or 20, 20))
    if kind is bytes:
        return st.binary(min_size=least_length, max_size=most_length)
    if kind is str:
        if meta.pattern is not None:
            return st.from_regex(meta.pattern, fullmatch=True).filter(
                lambda text: least_length <= len(text) <= most_length
            )
        letters = st.characters(exclude_categories=["Cs"])
        return st.text(letters, min_size=least_length, max_size=most_length)
    return st.none()
