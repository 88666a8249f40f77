"""What the node has noted of people, kept beside the rooms: the machines write it and do not read it."""

from __future__ import annotations

from linnet.core.ids import AuthorId
from linnet.core.stores import Cells

_SPACE = "person.note"


def keep_note(cells: Cells, person: AuthorId, note: bytes) -> None:
    """Keep what was noted of a person instead of what was before."""
    cells.put(_SPACE, person, note)


def notes(cells: Cells) -> dict[AuthorId, bytes]:
    """What is noted of everyone."""
    return {AuthorId(key): note for key, note in cells.scan(_SPACE)}
