"""Names of methods and variables: keywords from the general to the specific, each behind an underscore.

``_message_public_shout`` is a ``_message_public``, and that is a ``_message``. Whoever does not know the
specific name can still make sense of the general one (Toth 2013, section 6.5: try and slice).
"""

from __future__ import annotations

import re

NAME_CHARS = 256
"""Longest name; what is tried for one name is bounded by it too."""

_NAME = re.compile(r"[0-9A-Za-z_]{1,256}", re.ASCII)


def is_name(text: str) -> bool:
    """Whether this may name a method or a variable (the PSYC specification: `kwchar`)."""
    return _NAME.fullmatch(text) is not None


def slices(name: str) -> tuple[str, ...]:
    """The name, and what is left when its last keyword goes, down to the empty name that covers all."""
    found = [name]
    while name:
        name = name[: max(name.rfind("_"), 0)]
        found.append(name)
    return tuple(found)


def covers(prefix: str, name: str) -> bool:
    """Whether `prefix` is among the slices of `name`: whole keywords, so `_a_b` does not cover `_a_bc`."""
    return not prefix or name == prefix or name.startswith(prefix + "_")
