"""One chain: the events of one author and device in one topic, as this node has seen them.

It tells duplicates and forks, knows what is missing, and holds back what came too early, so that
the log and those who asked for order get every chain in its own order.
"""

from __future__ import annotations

from linnet.core.errors import InvalidEvent
from linnet.core.ids import AuthorId, DeviceId, EventId
from linnet.core.reasons import Reason
from linnet.delivery.moments import Moments
from linnet.delivery.ranges import Range, SeenRanges
from linnet.event.event import Verified

ChainKey = bytes
"""Author and device, one after the other."""


class Chain:
    """What is known of one chain, and what waits for its turn."""

    __slots__ = (
        "_early",
        "_edges",
        "announced",
        "author",
        "base",
        "device",
        "held",
        "is_passed",
        "moments",
        "news",
        "next",
        "promised",
        "restored",
        "seen",
        "told",
    )

    def __init__(self, author: AuthorId, device: DeviceId, base: int, capacity: int) -> None:
        self.author = author
        self.device = device
        self.base = base
        """The first number that is due to us; what lies below was before our time."""
        self.next = base
        """The number that comes next in order."""
        self.announced = -1
        """The highest number that somebody says there is."""
        self.news = 0
        """Number of the news that it was last part of; see `linnet.streams.announcements`."""
        self.held = False
        """Whether nothing gets its turn yet: somebody is about to say from where on the chain is due."""
        self.is_passed = False
        """Whether it was settled long ago from where on it is due, and that was written down."""
        self.promised = -1
        """The highest number of which somebody says that it was said in our time."""
        self.told = 0
        """Whatever was due below this was named as missed: it is not due again."""
        self.restored = -1
        """The last number that was in the log when the chain was opened: when it was said stands there."""
        self.moments = Moments()
        """When the rest of it was said."""
        self.seen = SeenRanges(capacity)
        self._early: dict[int, Verified] = {}
        # The id behind each range that was seen, to see whether the next one fits it. As there is
        # an entry per range, it is as bounded as they are.
        self._edges: dict[int, EventId] = {}

    @property
    def key(self) -> ChainKey:
        """Author and device."""
        return self.author + self.device

    @property
    def early(self) -> int:
        """Units that came too early and wait."""
        return len(self._early)

    def restore(self, first: int, last: int, head: EventId) -> None:
        """Begin with what the log holds; the head may be unknown."""
        self.base = first
        self.next = last + 1
        self.restored = last
        self.is_passed = not head
        self.seen.add(first, last)
        if head:
            self._edges[last] = head

    def rebase(self, first: int) -> list[Verified]:
        """Nothing below this can be had any more, or is due to us; returns whose turn has come thereby."""
        self.base = max(self.base, first)
        if self.next >= first:
            return []
        self.next = first
        return self._due()

    def begin_earlier(self, first: int) -> None:
        """Here comes an event live that we took for older than our time, going by what others said.

        Word of a new event can be faster than the event. Once one was seen, the beginning stands.
        """
        if first < self.base and not len(self.seen):
            self.base = self.next = first

    def due_from(self, first: int) -> bool:
        """Somebody says that what follows from this number on was said in our time; whether it can be.

        It cannot any more if something behind it had its turn already: then the order is lost.
        """
        first = max(first, self.told)
        if first >= self.base or self.is_passed:
            return True
        if not self.held and self.next > self.base:
            return False
        self.base = self.next = first
        return True

    def release(self) -> list[Verified]:
        """Nobody will say more: returns the units whose turn has come."""
        self.held = False
        return self._due()

    def accept(self, verified: Verified, first: int, last: int) -> Range | None:
        """Count a new unit as seen; `InvalidEvent` if it contradicts what was seen before.

        Returns the hole that the window had to give up for it, if any.
        """
        if self.seen.touches(first, last):
            raise InvalidEvent(Reason.FORKED_CHAIN, f"{first} to {last} overlaps what was seen")
        before = self._edges.get(first - 1)
        if before is not None and before != verified.unit.prev:
            raise InvalidEvent(Reason.FORKED_CHAIN, f"{first} does not follow the {first - 1} that was seen")
        self._edges.pop(first - 1, None)
        self._edges[last] = verified.head
        floor = self.seen.floor
        lost = self.seen.add(first, last)
        if lost is None:
            return None
        self._edges.pop(lost[1], None)
        # What was seen is no loss; the hole before it is, since it counts as seen from now on.
        lowest = max(self.base, floor)
        return (lowest, lost[0] - 1) if lowest < lost[0] else None

    def in_order(self, verified: Verified, first: int, last: int) -> list[Verified]:
        """The units whose turn has come with this one, in order; none if it has to wait.

        What lies before our time never gets a turn.
        """
        if first != self.next or self.held:
            if first >= self.next:
                self._early[first] = verified
            return []
        self.next = last + 1
        if not self._early:
            return [verified]
        return [verified, *self._due()]

    def missing(self) -> list[Range]:
        """What is due, is known to exist, and was not seen."""
        return self.seen.missing(self.base, max(self.seen.last, self.announced))

    def forgo(self, first: int, last: int) -> list[Verified]:
        """Stop waiting for a range; returns the units whose turn has come thereby."""
        self._edges.pop(first - 1, None)
        if last >= self.seen.floor:
            self.seen.add(first, last)
        if first <= self.next <= last:
            self.next = last + 1
        return self._due()

    def forget_hearsay(self) -> Range | None:
        """Stop waiting for what was announced but never shown to exist; returns that range, if any.

        Nobody signs announcements. If giving up on one counted as having seen it, a false one
        would silence the author for good.
        """
        first, last = max(self.base, self.seen.last + 1), self.announced
        self.announced = -1
        return (first, last) if first <= last else None

    def _due(self) -> list[Verified]:
        due: list[Verified] = []
        if self.held:
            return due
        while (unit := self._early.pop(self.next, None)) is not None:
            due.append(unit)
            self.next += len(unit.events)
        return due
