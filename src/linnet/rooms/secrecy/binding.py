"""What a sealed event of a room binds: the same as one of a sealed stream (`linnet.event.binding`)."""

from __future__ import annotations

from linnet.event.binding import bound, bound_of

__all__ = ["bound", "bound_of"]
