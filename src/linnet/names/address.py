"""Addresses as people type them: `music.alice`, `music.alice.bob`, `lp1…`, `music.lp1….zkey`.

They are read from the right: the last part is a petname of the user, or a key; each part before it is a label
in the zone that was reached so far. `.gnu` and `.gads` at the end mean nothing and are dropped.
"""

from __future__ import annotations

import unicodedata

from msgspec import Struct

from linnet.core.errors import BadText
from linnet.core.ids import AuthorId
from linnet.identity.text import Sort, from_text, to_text
from linnet.names.records import CONTACT_LABEL, LABEL_BYTES

ADDRESS_CHARS = 2048
PARTS = 32
IGNORED = ("gnu", "gads")
KEY_END = "zkey"
RESERVED = (*IGNORED, KEY_END)

_SORTS = frozenset("LMN")
_SIGNS = frozenset("-_")
_KEY_CHARS = 59
_SHOWN = 80


class Address(Struct, frozen=True, gc=False):
    """A parsed address: the zone to begin at, and the labels to follow from there."""

    labels: tuple[str, ...]
    """The labels as written, so the last is followed first. Empty: the contact of the zone."""
    name: str | None
    """The petname of the zone to begin at; None if its key is given."""
    key: AuthorId | None
    """The key of the zone to begin at; None if its name is given."""

    def __str__(self) -> str:
        root = self.name if self.key is None else to_text(Sort.PERSON, self.key)
        return ".".join((*self.labels, root or ""))


def read_address(text: str) -> Address:
    """Parse an address; `BadText` names the part that is wrong."""
    if len(text) > ADDRESS_CHARS:
        raise BadText(f"an address has at most {ADDRESS_CHARS} characters, not {len(text)}")
    parts = text.strip().removesuffix(".").split(".")
    end = parts[-1].lower()
    if len(parts) > 1 and end in RESERVED:
        parts.pop()
    if len(parts) > PARTS:
        raise BadText(f"an address has at most {PARTS} parts, not {len(parts)}")
    for place, part in enumerate(parts, start=1):
        if not part:
            raise BadText(f"part {place} of the address {_shown(text)} is empty: there is a dot too many")
    *labels, root = parts
    read = tuple(read_label(label) for label in labels)
    if end == KEY_END or _is_key(root):
        return Address(read, None, AuthorId(from_text(Sort.PERSON, root)))
    return Address(read, read_name(root), None)


def read_label(text: str) -> str:
    """Return a label in its canonical form for comparison; `BadText` says what is wrong with it."""
    label = _folded(text)
    if label == CONTACT_LABEL:
        return label
    return _checked(label, text, "label")


def read_name(text: str) -> str:
    """Return a petname in its canonical form for comparison; `BadText` says what is wrong with it."""
    name = _checked(_folded(text), text, "name")
    if name in RESERVED:
        raise BadText(f"{_shown(text)} is no name for somebody: it means something else in addresses")
    return name


def _folded(text: str) -> str:
    """Apply Unicode's folding for identifiers (chapter 3.13, D147): folding twice changes nothing more."""
    once = unicodedata.normalize("NFKC", unicodedata.normalize("NFD", text).casefold())
    return unicodedata.normalize("NFKC", once.casefold())


def _checked(label: str, text: str, what: str) -> str:
    try:
        size = len(label.encode())
    except UnicodeEncodeError:
        raise BadText(f"this {what} has a character that is none") from None
    if not 0 < size <= LABEL_BYTES:
        raise BadText(f"the {what} {_shown(text)} has {size} bytes; a {what} has 1 to {LABEL_BYTES}")
    for sign in label:
        if unicodedata.category(sign)[0] not in _SORTS and sign not in _SIGNS:
            raise BadText(
                f"the {what} {_shown(text)} has {sign!r}: only letters, digits, '-' and '_' go into one"
            )
    if _is_key(label):
        raise BadText(f"the {what} {_shown(text)} looks like a key; only the last part can be one")
    return label


def _is_key(text: str) -> bool:
    return len(text) == _KEY_CHARS and text.lower().startswith(Sort.PERSON)


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")
