"""The ledgers of a node: one for each event that goes down from it, or went down lately."""

from __future__ import annotations

from linnet.content.branches import Ledger, Way
from linnet.content.config import ContentConfig


class Ledgers:
    """The oldest first; what is answered stays for a while, to be known again."""

    def __init__(self, config: ContentConfig) -> None:
        self._taken_for = config.taken_for
        self._most = config.remembered
        self._ledgers: dict[Way, Ledger] = {}
        self.open: dict[Way, None] = {}
        """Those that wait for somebody's answer."""

    def __len__(self) -> int:
        return len(self._ledgers)

    def __contains__(self, way: Way) -> bool:
        return way in self._ledgers

    def __getitem__(self, way: Way) -> Ledger:
        return self._ledgers[way]

    def get(self, way: Way) -> Ledger | None:
        """What is known of an event."""
        return self._ledgers.get(way)

    def put(self, way: Way, ledger: Ledger) -> list[tuple[Way, Ledger]]:
        """One more; those that had to be given up for it although they were open."""
        self._ledgers[way] = ledger
        given_up: list[tuple[Way, Ledger]] = []
        while len(self._ledgers) > self._most:
            oldest = next(iter(self._ledgers))
            forgotten = self._ledgers.pop(oldest)
            self.open.pop(oldest, None)
            if forgotten.open:
                given_up.append((oldest, forgotten))
        return given_up

    def settle(self, way: Way, now: float) -> None:
        """All have answered for an event: it need not be sent again."""
        del self.open[way]
        ledger = self._ledgers[way]
        ledger.passing, ledger.settled_at = None, now
        ledger.served.clear()

    def tidy(self, now: float) -> None:
        """Forget what is finished and will not come again, since it is too old to be taken."""
        for way, ledger in list(self._ledgers.items()):
            if way not in self.open and ledger.settled_at + self._taken_for <= now:
                del self._ledgers[way]
