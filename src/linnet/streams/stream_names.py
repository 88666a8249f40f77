"""Names of streams: plain ones are open to all, those behind a person's id belong to that person."""

from __future__ import annotations

import hashlib

from linnet.core.errors import BadText
from linnet.core.ids import AuthorId, TopicId
from linnet.core.limits import STREAM_NAME_CHARS
from linnet.identity.text import Sort, from_text, to_text

_TAG = b"linnet/stream/1"
_WILD = ("#", "+", "*", "**", ">")
"""Parts of names that stand for many in MQTT, NATS and shells."""


def topic_of(name: str) -> TopicId:
    """The topic of a stream. `BadText` if the name cannot be one."""
    check_name(name)
    return TopicId(hashlib.sha256(_TAG + name.encode()).digest())


def owner_of(name: str) -> AuthorId | None:
    """The person whose stream it is: their id stands before the first slash."""
    owner, slash, _ = name.partition("/")
    if slash and owner.startswith(Sort.PERSON) and len(owner) > len(Sort.PERSON) + 40:
        return AuthorId(from_text(Sort.PERSON, owner))
    return None


def own_name(name: str, person: AuthorId) -> str:
    """``me/x`` is the stream ``x`` of the person whose node this is."""
    return f"{to_text(Sort.PERSON, person)}/{name[3:]}" if name.startswith("me/") else name


def check_typed(name: str) -> None:
    """Raise `BadText` if what somebody typed as a name begins with an id that is broken.

    Only of what is typed: an open stream that was named so before goes on.
    """
    owner, slash, _ = name.partition("/")
    for sort in Sort:
        if slash and owner.startswith(sort):
            try:
                from_text(Sort.PERSON, owner)
            except BadText as error:
                raise BadText(f"{name!r} is no stream: what begins with {sort} is an id; {error}") from error


def wildcards(name: str) -> str | None:
    """The part of a name that looks as if it stood for many names, as in other systems; here none does."""
    return next((part for part in name.split("/") if part in _WILD or part.endswith("*")), None)


def check_name(name: str) -> None:
    """Raise `BadText` unless this can be the name of a stream."""
    if not name:
        raise BadText("a stream needs a name")
    if len(name) > STREAM_NAME_CHARS:
        raise BadText(f"a stream's name has at most {STREAM_NAME_CHARS} characters, this one has {len(name)}")
    if not name.isprintable() or name != name.strip():
        raise BadText(f"{name!r} cannot name a stream: no line breaks, control characters or outer blanks")
    owner_of(name)
