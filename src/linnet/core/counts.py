"""Numbers with their nouns, as people read them."""

from __future__ import annotations


def counted(count: int, noun: str, many: str | None = None) -> str:
    """Return a number with its noun; `many` is the plural where that is not the noun with an s."""
    return f"{count:,} {noun if count == 1 else many or f'{noun}s'}"
