"""The named values of a SQLite store: the database, and over it what is not durable yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from linnet.store.changes import Changes, Stamped
from linnet.store.reader import Reader


class SqliteCells:
    """The named values of a `SqliteStore`; see `linnet.core.stores.Cells`."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._stamp = 0
        self.forget()

    def forget(self) -> None:
        """Begin from what is durable; all that is not is lost."""
        self._spaces: dict[str, dict[bytes, Stamped]] = {}
        self._pending: dict[tuple[str, bytes], Stamped] = {}

    @property
    def is_dirty(self) -> bool:
        """Whether something was written since the last commit."""
        return bool(self._pending)

    def get(self, space: str, key: bytes) -> bytes | None:
        """The value, if there is one."""
        fresh = self._spaces.get(space)
        if fresh is not None and key in fresh:
            return fresh[key][1]
        row = self._reader.first("SELECT value FROM cell WHERE space = ? AND key = ?", space, key)
        return None if row is None else self._bytes(space, row[0])

    def put(self, space: str, key: bytes, value: bytes) -> None:
        """Set a value."""
        self._set(space, key, value)

    def delete(self, space: str, key: bytes) -> None:
        """Forget a value, if there is one."""
        self._set(space, key, None)

    def scan(self, space: str) -> Iterator[tuple[bytes, bytes]]:
        """All values of a space, in the order of their keys, as they are at the call."""
        rows = self._reader.all("SELECT key, value FROM cell WHERE space = ? ORDER BY key", space)
        rows = [(self._bytes(space, key), self._bytes(space, value)) for key, value in rows]
        fresh = self._spaces.get(space)
        if not fresh:
            return iter(rows)
        merged = {**dict(rows), **{key: value for key, (_, value) in fresh.items()}}
        return iter(sorted((key, value) for key, value in merged.items() if value is not None))

    def _bytes(self, space: str, found: object) -> bytes:
        if not isinstance(found, bytes):
            raise self._reader.damaged(f"a value of {space} is none")
        return found

    def seal(self, changes: Changes) -> None:
        """Add what was written to the changes of a commit."""
        changes.cells.update(self._pending)
        self._pending = {}

    def let_go(self, cells: Mapping[tuple[str, bytes], Stamped]) -> None:
        """These are durable: from now on the database is asked for them, unless they changed again."""
        for (space, key), written in cells.items():
            fresh = self._spaces.get(space)
            if fresh is not None and fresh.get(key) == written:
                del fresh[key]
                if not fresh:
                    del self._spaces[space]

    def _set(self, space: str, key: bytes, value: bytes | None) -> None:
        self._stamp += 1
        written = (self._stamp, value)
        self._spaces.setdefault(space, {})[key] = written
        self._pending[space, key] = written
