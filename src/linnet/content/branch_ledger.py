"""What is known of events on their way down from this node: which routes have yet to answer for each."""

from __future__ import annotations

from typing import NamedTuple

from linnet.content.config import ContentConfig
from linnet.content.messages import SoFar
from linnet.content.passing import Passing
from linnet.core.ids import Contact, EventId, PeerId

Way = tuple[EventId, str]
"""An event, and the attribute along whose filters it goes."""


class Count(NamedTuple):
    """What became of an event below a node."""

    delivered: int
    """Nodes where an application was handed it by this way: each node once, whatever its subscriptions."""
    missed: int
    """Branches that did not answer."""
    again: int = 0
    """Nodes that want it by this way too, and were handed it by another."""
    matches: int = 0
    """Subscriptions that were handed it, at all these nodes."""

    def plus(self, other: Count) -> Count:
        """Of both."""
        return Count(*(one + another for one, another in zip(self, other, strict=True)))

    @property
    def counted(self) -> Count:
        """The same for somebody else, when one was told it already: nothing of it is new."""
        return Count(0, self.missed, self.again + self.delivered, 0)


class Branch:
    """A route that has yet to answer, and who was asked in its place."""

    __slots__ = ("asked", "awaited", "backups", "contact", "failed", "has_it", "sent", "so_far", "stood_in")

    def __init__(self, contact: Contact, backups: tuple[Contact, ...], awaited: bool = True) -> None:
        self.contact = contact
        """Where it is sent: to the route itself, or past it."""
        self.backups = list(backups)
        """Who keeps its filters, and was not asked yet."""
        self.asked: dict[PeerId, None] = {}
        self.awaited = awaited
        """Whether it may still answer by itself: not a rendezvous that is gone."""
        self.sent = 0
        self.stood_in = False
        """Whether its routes are served; it is still sent to, since it may want the event itself."""
        self.has_it = False
        """Whether it said that it has the event and waits for others."""
        self.failed = False
        """Whether its link broke, or none came up, since the event was sent."""
        self.so_far: SoFar | None = None
        """What it said of those below it, before all have answered."""

    @property
    def target(self) -> PeerId:
        """Whom it is sent to."""
        return self.contact.peer


class Ledger:
    """Who has yet to answer for one event and attribute."""

    __slots__ = (
        "count",
        "deadline",
        "hops",
        "open",
        "passing",
        "said_as",
        "served",
        "settled_at",
        "so_far",
        "timed",
        "tries",
        "upstream",
    )

    def __init__(self, passing: Passing, hops: int, upstream: PeerId | None) -> None:
        self.passing: Passing | None = passing
        """The event, for as long as it may have to be sent again."""
        self.hops = hops
        self.upstream = upstream
        self.said_as = ""
        """The part of the attribute that it came by, if it was one."""
        self.open: dict[PeerId, Branch] = {}
        """By route."""
        self.served: dict[PeerId, None] = {}
        """Routes that were ever sent it, or stood in for: none is so twice."""
        self.tries = 0
        self.timed = False
        """Whether a timer runs."""
        self.deadline = 0.0
        self.settled_at = 0.0
        self.count = Count(0, 0)
        """As far as it is known."""
        self.so_far: SoFar | None = None
        """What was said of it, when only silent ones were left."""

    def branch(self, peer: PeerId) -> PeerId | None:
        """The open route that a peer answers for."""
        if peer in self.open:
            return peer
        return next((route for route, branch in self.open.items() if branch.target == peer), None)


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
