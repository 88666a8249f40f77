"""Finds the thing that a name, an id, or the beginning of an id means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from linnet.identity.text import Sort

SHOWN = 8
"""Candidates that an error lists, at most."""

_WHOLE = 59
"""Letters of a whole id."""


class Labelled(Protocol):
    """Something that its owner can label."""

    @property
    def label(self) -> str | None:
        """The label that its owner gave it."""


T = TypeVar("T")
L = TypeVar("L", bound=Labelled)


@dataclass(frozen=True)
class Candidate(Generic[T]):
    """One of the things that can be meant."""

    thing: T
    id: str
    label: str | None = None


def find_meant(text: str, sort: Sort, candidates: Sequence[Candidate[T]]) -> list[Candidate[T]]:
    """Return the candidates that a text can mean: none, one, or several.

    A whole id counts before a label, and a label before the beginning of an id: the label ``lt1`` of a room
    means that room.
    """
    wanted = text.strip()
    start = wanted.lower()
    found = [each for each in candidates if each.id == start] or with_label(wanted, candidates)
    if not found and start.startswith(sort) and len(start) > len(sort):
        found = [each for each in candidates if each.id.startswith(start)]
    return found


def with_label(label: str, things: Sequence[L]) -> list[L]:
    """Return the things with this label; if there are none, those with this label in other capitals."""
    found = [each for each in things if each.label == label]
    return found or [each for each in things if (each.label or "").casefold() == label.casefold() != ""]


def list_candidates(candidates: Sequence[Candidate[T]]) -> str:
    """List the first candidates for an error, each by the beginning of its id and its label."""
    shown = [f"{each.id[:12]}…" + (f" ({each.label!r})" if each.label else "") for each in candidates[:SHOWN]]
    if len(candidates) > SHOWN:
        shown.append(f"and {len(candidates) - SHOWN} more")
    return ", ".join(shown)


def is_whole(sort: Sort, text: str) -> bool:
    """Return whether a text has the length of an id, and so is one or a mistyped one."""
    return len(text.strip()) >= _WHOLE and text.strip().lower().startswith(sort)
