"""Which room somebody means: its id, an unambiguous beginning of it, or its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from linnet.core.errors import BadText
from linnet.identity.text import Sort, from_text

SHOWN = 8
"""Candidates that an error lists."""

_WHOLE = 59
"""Letters of a whole id."""


class Named(Protocol):
    """A room as it is listed."""

    @property
    def room(self) -> str:
        """Its id."""

    @property
    def name(self) -> str | None:
        """What it is called."""


R = TypeVar("R", bound=Named)


def choose_room(text: str, rooms: Sequence[R]) -> R:
    """The one room that is meant; `BadText` lists the candidates if there are none or several.

    A name counts before a beginning: who calls a room ``lt1`` means that one.
    """
    wanted = text.strip()
    found = [room for room in rooms if room.room == wanted.lower()]
    found = found or [room for room in rooms if room.name == wanted]
    found = found or [room for room in rooms if (room.name or "").casefold() == wanted.casefold() != ""]
    if not found and wanted.lower().startswith(Sort.TOPIC) and len(wanted) > len(Sort.TOPIC):
        found = [room for room in rooms if room.room.startswith(wanted.lower())]
    if len(found) == 1:
        return found[0]
    if found:
        raise BadText(f"{_shown(wanted)} can be {len(found)} rooms; say which by its id: {_listed(found)}")
    if wanted.lower().startswith(Sort.TOPIC) and len(wanted) >= _WHOLE:
        from_text(Sort.TOPIC, wanted)  # Says what is wrong with it, if something is.
    if not rooms:
        raise BadText(f"there is no room {_shown(wanted)} here, nor any other; join one: linnet room join")
    raise BadText(f"there is no room {_shown(wanted)} here; there are {_listed(rooms)}")


def _listed(rooms: Sequence[Named]) -> str:
    shown = [
        f"{room.room[:12]}… ({room.name!r})" if room.name else room.room[:12] + "…" for room in rooms[:SHOWN]
    ]
    if len(rooms) > SHOWN:
        shown.append(f"and {len(rooms) - SHOWN} more")
    return ", ".join(shown)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:80] + "…")
