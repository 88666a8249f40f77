"""Names of files as strangers give them, made fit to be shown and to be saved under on any system."""

from __future__ import annotations

import unicodedata

NAME_CHARS = 255
"""Characters of a name, as foreign bytes may have it."""

NAME_BYTES = 200
"""Bytes of a name that is saved: file systems take 255, and whoever saves it may add to it."""

_NAMELESS = "unnamed"
_FORBIDDEN = frozenset('/\\<>:"|?*')
"""Separators, and what Windows takes in no name."""
_UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Categories of characters that cannot be seen, or that turn others around: a name must be what it shows."""
_DEVICES = frozenset(
    ["con", "prn", "aux", "nul", *(f"{port}{number}" for port in ("com", "lpt") for number in range(10))]
)
"""Names that are no files on Windows, whatever follows the first dot."""


def safe_name(name: str) -> str:
    """The name without anything that could lead elsewhere, hide something or be no file.

    Separators and the like become ``_``; what cannot be seen, and dots, blanks and dashes at the front,
    go; an empty one is ``unnamed``. What is safe stays as it is.
    """
    shown = "".join(map(_shown, name))
    plain = _shortened(unicodedata.normalize("NFC", shown).lstrip(" .-").rstrip(" ."))
    if plain.split(".")[0].rstrip(" ").lower() in _DEVICES:
        plain = _shortened(f"_{plain}")
    return plain or _NAMELESS


def _shown(letter: str) -> str:
    category = unicodedata.category(letter)
    if category in _UNSEEN:
        return ""
    if category == "Zs":
        return " "
    return "_" if letter in _FORBIDDEN else letter


def _shortened(name: str) -> str:
    """No more than `NAME_BYTES`, with its ending, if that is short."""
    if len(name.encode()) <= NAME_BYTES:
        return name
    stem, dot, ending = name.rpartition(".")
    if not dot or len(ending.encode()) > 16:
        stem, dot, ending = name, "", ""
    room = NAME_BYTES - len((dot + ending).encode())
    return stem.encode()[:room].decode(errors="ignore").rstrip(" .") + dot + ending
