"""Petnames: the names by which the user knows people. They are the user's own and stay on this device."""

from __future__ import annotations

from linnet.core.errors import Refused, StoreError
from linnet.core.ids import AuthorId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.names.address import read_name

SPACE = "names petname"
_KEY_BYTES = 32


class Petnames:
    """Name to zone, written down. Whoever trusts a name trusts whoever typed the key: the user."""

    def __init__(self, cells: Cells, most: int) -> None:
        self._cells = cells
        self._most = most
        self._zones: dict[str, AuthorId] = {}
        for key, value in cells.scan(SPACE):
            if len(value) != _KEY_BYTES:
                raise StoreError("a petname in the store has no key")
            self._zones[key.decode()] = AuthorId(value)

    def set(self, text: str, zone: AuthorId) -> str:
        """Call this zone so from now on; `BadText` or `Refused` if that cannot be."""
        name = read_name(text)
        known = self._zones.get(name)
        if known is not None and known != zone:
            raise Refused(Reason.IN_USE, f"{name!r} is somebody else already; remove that name first")
        if known is None and len(self._zones) >= self._most:
            raise Refused(Reason.TOO_MANY, f"{self._most} people have a name here already")
        self._zones[name] = zone
        self._cells.put(SPACE, name.encode(), zone)
        return name

    def remove(self, text: str) -> None:
        """Know nobody by this name any more; `Refused` if nobody was."""
        name = read_name(text)
        if self._zones.pop(name, None) is None:
            raise Refused(Reason.UNKNOWN, f"nobody is known by the name {name!r}")
        self._cells.delete(SPACE, name.encode())

    def find(self, name: str) -> AuthorId | None:
        """Whom the user knows by this name."""
        return self._zones.get(name)

    def known(self) -> tuple[tuple[str, AuthorId], ...]:
        """Everybody, by name."""
        return tuple(sorted(self._zones.items()))
