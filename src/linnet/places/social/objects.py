"""The objects of a place: what its host decorated it with, for guests to look at and to watch.

An object is a variable of the state; its name says what it is, from the general to the specific
(Toth 2013, section 6.4). Everything is answered from the local copy, so it works offline, and for one's
own home as for the places of others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from msgspec import Struct

from linnet.core.errors import Refused
from linnet.core.reasons import Reason
from linnet.places.channel.packet import is_name, slices
from linnet.places.channel.state import Changes, State

WATCHES = 4096
"""Watches on one place at once."""

T = TypeVar("T")


class Seen(Struct, Generic[T], frozen=True):
    """An object that somebody watches changed."""

    watcher: T
    name: str
    value: bytes | None
    """None: it is gone."""


class Objects(Generic[T]):
    """Looks at the state that `current` answers: that may be another one after a synchronisation."""

    def __init__(self, current: Callable[[], State]) -> None:
        self._current = current
        self._watches: dict[int, tuple[str, T]] = {}
        self._by_prefix: dict[str, dict[int, T]] = {}
        self._next = 0

    def look(self, prefix: str = "") -> dict[str, bytes]:
        """All objects of this name or a more specific one."""
        return self._current().get_all(prefix)

    def look_at(self, name: str) -> tuple[str, bytes] | None:
        """The object of this name, or else of the closest less specific one, with the name that it has."""
        return self._current().get(name)

    def watch(self, prefix: str, watcher: T) -> int:
        """Tell `watcher` of every change of these from now on; the number ends it again."""
        if prefix and not is_name(prefix):
            raise Refused(Reason.MALFORMED, f"no name of an object: {prefix[:256]!r}")
        if len(self._watches) >= WATCHES:
            raise Refused(Reason.TOO_MANY, f"{WATCHES} watches on one place")
        self._next += 1
        self._watches[self._next] = (prefix, watcher)
        self._by_prefix.setdefault(prefix, {})[self._next] = watcher
        return self._next

    def unwatch(self, watch: int) -> None:
        """No more of this."""
        prefix, _ = self._watches.pop(watch, ("", None))
        watchers = self._by_prefix.get(prefix, {})
        watchers.pop(watch, None)
        if not watchers:
            self._by_prefix.pop(prefix, None)

    def changed(self, changes: Changes) -> list[Seen[T]]:
        """Whom to tell of these changes, which are in the state by now: in order, general names last."""
        return [
            Seen(watcher, name, value)
            for name, value in changes.items()
            for prefix in slices(name)
            for watcher in self._by_prefix.get(prefix, {}).values()
        ]
