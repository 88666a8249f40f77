"""Names of streams: a plain one is open to all, one that begins with a person's id belongs to that person."""

from __future__ import annotations

import hashlib

from linnet.core.errors import BadText
from linnet.core.ids import AuthorId, TopicId
from linnet.core.limits import STREAM_NAME_CHARS
from linnet.identity.text import Sort, from_text, to_text

_TAG = b"linnet/stream/1"
_WILD = ("#", "+", "*", "**", ">")
"""Name parts that are wildcards in MQTT, NATS and shells."""


def topic_of(name: str) -> TopicId:
    """Return the topic of a stream. Raises `BadText` if the name is invalid."""
    check_name(name)
    return TopicId(hashlib.sha256(_TAG + name.encode()).digest())


def owner_of(name: str) -> AuthorId | None:
    """Return the person who owns the stream, whose id stands before the first slash; None if it is open."""
    owner, slash, _ = name.partition("/")
    if slash and owner.startswith(Sort.PERSON) and len(owner) > len(Sort.PERSON) + 40:
        return AuthorId(from_text(Sort.PERSON, owner))
    return None


def own_name(name: str, person: AuthorId) -> str:
    """Expand ``me/x`` to the stream ``x`` of the person whose node this is."""
    return f"{to_text(Sort.PERSON, person)}/{name[3:]}" if name.startswith("me/") else name


def check_typed(name: str) -> None:
    """Raise `BadText` if a name that a user typed begins with a broken id.

    Checks typed names only: open streams that already have such a name go on.
    """
    owner, slash, _ = name.partition("/")
    if name == "me":
        raise BadText("'me' is no stream: say me/NAME for a stream of yours")
    for sort in Sort:
        if owner.startswith(sort):
            try:
                from_text(Sort.PERSON, owner)
                if not slash:
                    raise BadText("say which stream of this person: lp1…/NAME")
            except BadText as error:
                raise BadText(f"{name!r} is no stream: what begins with {sort} is an id; {error}") from error


def wildcards(name: str) -> str | None:
    """Return the part of a name that would be a wildcard in other systems; Linnet has no wildcards."""
    return next((part for part in name.split("/") if part in _WILD or part.endswith("*")), None)


def check_name(name: str) -> None:
    """Raise `BadText` unless this is a valid name for a stream."""
    if not name:
        raise BadText("a stream needs a name")
    if len(name) > STREAM_NAME_CHARS:
        raise BadText(f"a stream's name has at most {STREAM_NAME_CHARS} characters, this one has {len(name)}")
    if not name.isprintable() or name != name.strip():
        raise BadText(f"{name!r} cannot name a stream: no line breaks, control characters or outer blanks")
    owner_of(name)
