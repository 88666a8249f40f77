"""What a source comes to: things that were said, rows of other tables, and rows that cannot be used."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

LEFT_OUT = "left out: "
"""A reason that begins so is a choice and no fault of the row."""

UNKNOWN_USER = "-"
"""Who said it, where a notice names nobody; never the hash of a name."""

MOST_CHARS = 2**31 - 1

KINDS = ("text", "image", "audio", "video", "file", "notice")


def storable(text: str) -> str:
    """The text without halves of characters, which JSON can have and no table."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def kind_of_media(mime: str) -> str:
    """The kind of an attachment by its media type."""
    family = mime.partition("/")[0].lower()
    return family if family in ("image", "audio", "video") else "file"


class Said(NamedTuple):
    """One message, with names as the source has them; `chars` is 0 where the length is not known."""

    line: int
    chat: tuple[str, ...]
    ts: int
    """Unix milliseconds."""
    user: str
    """Empty if the source does not say who."""
    chars: int
    kind: str
    granularity: str
    text: str = ""


class Bad(NamedTuple):
    """A row that is not used: where it stands, why, and what it says."""

    line: int
    reason: str
    content: str


class Entry(NamedTuple):
    """A row of a table, as it is written."""

    line: int
    values: tuple[str | int, ...]


Found: TypeAlias = Said | Bad
Numbered: TypeAlias = tuple[int, str]
"""A line with its number, from 1, without its end."""
