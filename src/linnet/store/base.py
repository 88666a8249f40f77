"""The interface of a store to its driver, beyond what the machines see (`linnet.core.stores`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from linnet.core.errors import StoreError
from linnet.core.stores import CellDamage, Damage, Store


class CommittingStore(Store, Protocol):
    """A store whose writes become durable when its driver says so.

    All methods are for one thread, the machine's.
    """

    @property
    def failed(self) -> StoreError | None:
        """Why nothing can be written any more; None if writing has not failed."""

    @property
    def damaged(self) -> tuple[Damage, ...]:
        """Damaged units that were found and are not mended yet."""

    @property
    def damaged_cells(self) -> tuple[CellDamage, ...]:
        """Damaged values that were found since the store was opened, and have not been replaced."""

    @property
    def backlog(self) -> int:
        """The bytes of units handed over that are not durable yet: past a bound, read less."""

    def on_failure(self, report: Callable[[StoreError], None]) -> None:
        """Call `report` once when writing fails, at once if it has.

        It may run in a thread of the store. No `done` is called after it.
        """

    def commit(self, done: Callable[[], None]) -> None:
        """Make all writes so far durable, then call `done`, at once if no commit is under way.

        `done` may run in a thread of the store and must not raise; calls keep their order. Raises
        `StoreError` if writing has failed.
        """

    def rollback(self) -> None:
        """Forget the writes since the last `commit`."""

    def close(self) -> None:
        """Commit the writes handed over, forget the rest, and close; again does nothing.

        Raises `StoreError` if something handed over could not be written.
        """
