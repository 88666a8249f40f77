"""What a watcher of a place is handed."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from linnet.core.ids import AuthorId, TopicId
from linnet.core.reasons import Reason
from linnet.places.channel.packet import Modifier


class Said(Struct, frozen=True, gc=False):
    """A message began: its method and variables, after its changes of state were applied."""

    place: TopicId
    message: int
    nym: AuthorId | None
    """Whose request it is, at the host; None: the host said it to all."""
    author: AuthorId
    """The person whose device signed it."""
    method: str
    modifiers: tuple[Modifier, ...]
    historic: bool


class Body(Struct, frozen=True, gc=False):
    """A piece of the body of a message."""

    place: TopicId
    message: int
    nym: AuthorId | None
    offset: int
    data: bytes
    last: bool


class Knocked(Struct, frozen=True, gc=False):
    """Somebody waits at the door: answer with `Admit` or `Reject`."""

    place: TopicId
    nym: AuthorId
    method: str
    modifiers: tuple[Modifier, ...]
    text: bytes


class Changed(Struct, frozen=True, gc=False):
    """An object of the place has another value now; None: it is gone."""

    place: TopicId
    message: int
    name: str
    value: bytes | None


class Lost(Struct, frozen=True, gc=False):
    """Messages of a range that could not be had, and why: closed to us, or nobody keeps them."""

    place: TopicId
    first: int
    last: int
    reason: Reason


class TakenBack(Struct, frozen=True, gc=False):
    """Messages that were handed over do not count: another term was opened before they were said.

    Their numbers are given anew. Whoever said them says them again, under new numbers and with `AGAIN`.
    """

    place: TopicId
    messages: tuple[int, ...]


AGAIN = "_said_before"
"""The variable of a message that is said again: the event that began it when it was said first."""

PlaceItem: TypeAlias = Said | Body | Knocked | Changed | Lost | TakenBack
