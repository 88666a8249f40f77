"""Chooses the watchers of a place to notify, by the methods and the objects that they name.

*Try and slice*: the whole name of a method is tried, then the name without its last keyword, and so on down
to the empty name. The first name that has listeners is used, so older software can make sense of newer
methods (Toth 2013, section 6.5).

An object is a variable of the state; its name describes it, from the general to the specific (section 6.4).
"""

from __future__ import annotations

from typing import Generic, TypeVar

from linnet.core.errors import Refused
from linnet.core.reasons import Reason
from linnet.places.channel.packet import is_name, slices

WATCHES = 4096
"""The most watches on the objects of one place at once."""

T = TypeVar("T")


def check_method(name: str) -> None:
    """Raise `Refused` unless the name is a method name or the empty name that covers all."""
    if name and not is_name(name):
        raise Refused(Reason.MALFORMED, f"no name of a method: {name[:256]!r}")


class MethodDispatch(Generic[T]):
    """Listeners by the method names that they wait for. A listener may wait for several names."""

    def __init__(self) -> None:
        self._listeners: dict[str, list[T]] = {}

    def add(self, name: str, listener: T) -> None:
        """Add a listener for a name, from the next message on. The empty name: what nobody else waits for."""
        check_method(name)
        known = self._listeners.setdefault(name, [])
        if listener not in known:
            known.append(listener)

    def remove(self, name: str, listener: T) -> None:
        """Remove a listener from a name, at once."""
        known = self._listeners.get(name, [])
        if listener in known:
            known.remove(listener)
            if not known:
                del self._listeners[name]

    def dispatch(self, method: str) -> tuple[T, ...]:
        """Return the listeners for the most specific name that has any."""
        for name in slices(method):
            if name in self._listeners:
                return tuple(self._listeners[name])
        return ()


class ObjectWatches(Generic[T]):
    """Watchers of objects, by the prefixes of the object names."""

    def __init__(self) -> None:
        self._watches: dict[int, str] = {}
        self._by_prefix: dict[str, dict[int, T]] = {}
        self._next = 0

    def watch(self, prefix: str, watcher: T) -> int:
        """Notify `watcher` of changes of objects with this prefix; return the number for `unwatch`."""
        if prefix and not is_name(prefix):
            raise Refused(Reason.MALFORMED, f"no name of an object: {prefix[:256]!r}")
        if len(self._watches) >= WATCHES:
            raise Refused(Reason.TOO_MANY, f"{WATCHES} watches on one place")
        self._next += 1
        self._watches[self._next] = prefix
        self._by_prefix.setdefault(prefix, {})[self._next] = watcher
        return self._next

    def unwatch(self, watch: int) -> None:
        """End the watch with this number."""
        prefix = self._watches.pop(watch, "")
        watchers = self._by_prefix.get(prefix, {})
        watchers.pop(watch, None)
        if not watchers:
            self._by_prefix.pop(prefix, None)

    def watchers_of(self, name: str) -> list[T]:
        """Return the watchers to notify of an object's change, those with the most general prefix last."""
        return [watcher for prefix in slices(name) for watcher in self._by_prefix.get(prefix, {}).values()]
