"""Which place or person somebody means who types a name or the beginning of an id."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from linnet.cli.room.finding import is_whole
from linnet.core.errors import BadText
from linnet.identity.text import Sort, from_text, to_text

if TYPE_CHECKING:
    from linnet.node.client import ControlClient
    from linnet.node.place_types import PlaceView

SHOWN = 8
"""Candidates that an error lists."""


def find_place(node: ControlClient, text: str) -> str:
    """The id of the place that is meant; `BadText` lists the candidates."""
    from linnet.places.address import is_address, parse_address

    if is_address(text):
        return to_text(Sort.TOPIC, parse_address(text).place)
    if is_whole(Sort.TOPIC, text):
        return to_text(Sort.TOPIC, from_text(Sort.TOPIC, text))
    return choose_place(text, node.places().places).place


def choose_place(text: str, places: Sequence[PlaceView]) -> PlaceView:
    """The one place that is meant; `BadText` lists the candidates."""
    wanted = text.strip()
    found = [place for place in places if place.name == wanted]
    found = found or [place for place in places if (place.name or "").casefold() == wanted.casefold() != ""]
    if not found and wanted.lower().startswith(Sort.TOPIC) and len(wanted) > len(Sort.TOPIC):
        found = [place for place in places if place.place.startswith(wanted.lower())]
    if len(found) == 1:
        return found[0]
    listed = ", ".join(
        f"{place.place[:12]}…" + (f" ({place.name!r})" if place.name else "")
        for place in (found or places)[:SHOWN]
    )
    if found:
        raise BadText(f"{wanted!r} can be {len(found)} places; say which by the id: {listed}")
    raise BadText(
        f"there is no place {wanted[:80]!r} here; there are {listed or 'none'}; look at: linnet place list"
    )


def choose_person(text: str, people: Sequence[str], where: str) -> str:
    """The id of the person that is meant: any whole id, or one of these."""
    if is_whole(Sort.PERSON, text):
        return to_text(Sort.PERSON, from_text(Sort.PERSON, text))
    wanted = text.strip().lower()
    found = [person for person in people if wanted != Sort.PERSON and person.startswith(wanted)]
    if len(found) == 1 and wanted:
        return found[0]
    listed = ", ".join(person[:12] + "…" for person in (found or people)[:SHOWN])
    raise BadText(f"{text[:80]!r} is nobody, or several, of those {where}: {listed or 'nobody'}")
