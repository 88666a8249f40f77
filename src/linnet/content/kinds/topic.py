"""A topic: the name alone, which an event has or has not."""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class Topic(Struct, frozen=True, gc=False):
    """An event has this name, and no value with it."""

    @property
    def exact(self) -> bool:
        """Whether an event can have it as its attribute."""
        return True

    @property
    def text(self) -> str:
        """What follows the name."""
        return ""

    def covers(self, other: Topic) -> bool:
        """Whether it accepts all that the other accepts."""
        return True

    def merged(self, other: Topic) -> Topic | None:
        """What accepts exactly what either does, if there is such a thing."""
        return self


TOPIC: Final = Topic()
