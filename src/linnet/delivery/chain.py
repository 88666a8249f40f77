"""One chain: the events of one author and device in one topic, as this node has seen them.

It detects duplicates and forks, knows which events are missing, and holds back those that arrive too early,
so that the log and ordered subscriptions get every chain in its own order.

Its duplicate window is a set of ranges of sequence numbers. Without gaps there is one range, from the first
to the latest; a gap splits it, a late arrival merges it (Juslenius 2021, section 4.2.2). Beyond its capacity
the lowest range is given up, and all that lies below counts as seen.

A node dates events by its own clock, since authors' clocks may be hours away from ours. A live event was
published just now; a peer that resends an event says how long ago it was published. Nodes exchange only
lengths of time, never times, since each node measures a length by one clock. A clock may be set between the
two ends of a length: then a peer calls an event hours old though it follows events that we received live,
or though most other peers say that it was published in our time. We do not believe such a peer. In doubt an
event is new: an application that is handed too much can see that, one that lacks something cannot.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from math import inf
from operator import itemgetter

from linnet.core.errors import InvalidEvent
from linnet.core.fair_shares import Ranking
from linnet.core.ids import AuthorId, DeviceId, EventId, PeerId
from linnet.core.limits import MIB
from linnet.core.reasons import Reason
from linnet.event.event import Verified

MOST_MOMENTS = 32
"""The most moments remembered of a chain; beyond this, older ones are merged."""
MOST_ANSWERS = 8
"""The most peers whose latest answer is remembered: about as many as a node has neighbours."""
EARLY_BYTES = 64 * MIB
"""The most bytes of units of one topic that wait for those before them: a repair takes seconds, and a sender
without a hurry sends less in that time."""
_EVENT_OVERHEAD = 512
"""About the bytes that an event takes in memory beside its own."""
SLACK = 10.0
"""Seconds by which statements on when an event was published may differ, since messages take time."""


Answer = tuple[PeerId, int, int, int, float]
"""A peer, the first number that it knows, the first since a moment, the last, and that moment."""


_Part = tuple[int, float, bool]
"""The first number of a part, when its latest event was published, and whether we received it live."""
_first_of, _last_of = itemgetter(0), itemgetter(1)


class Moments:
    """Parts of a chain: the first number of each, and when the latest event of the part was published."""

    __slots__ = ("_answers", "_at", "_earlier", "_first", "_floor", "_heard")

    def __init__(self) -> None:
        # The latest part has slots of its own, because most chains have no other.
        self._first = -1
        self._at = -inf
        self._heard = False
        self._earlier: list[_Part] | None = None
        self._floor: tuple[int, float] | None = None
        """A number, and the time before which nothing from that number on was published."""
        self._answers: tuple[Answer, ...] = ()
        """The latest answer of each peer, the latest of all last."""

    @property
    def _parts(self) -> list[_Part]:
        """All parts, in the order of the chain."""
        if self._first < 0:
            return []
        return [*(self._earlier or ()), (self._first, self._at, self._heard)]

    @_parts.setter
    def _parts(self, parts: list[_Part]) -> None:
        self._first, self._at, self._heard = parts.pop()
        self._earlier = _bound_parts(parts) or None

    def note(self, first: int, at: float, *, heard: bool = False, now: float | None = None) -> None:
        """Note when the events from this number on, up to the next noted one, were published.

        A chain is published in order: a late arrival was published no later than the events that follow it.
        Unless the events were received live, the time is another node's word, and it cannot be true if it
        lies before what is known. Then nobody knows, and they may have been published just now.
        """
        if heard and first > self._first and at >= self._at:  # the common case by far
            if self._first >= 0:
                earlier = self._earlier or []
                earlier.append((self._first, self._at, self._heard))
                self._earlier = _bound_parts(earlier)
            self._first, self._at, self._heard = first, at, True
            return
        parts = self._parts
        index = bisect_right(parts, first, key=_first_of)
        if index and parts[index - 1][0] == first:
            return
        if not heard:
            at = self._believed(first, parts[:index], at, now)
        if index < len(parts):
            at = min(at, parts[index][1])
        for place in range(index - 1, -1, -1):
            begins, late, live = parts[place]
            if late <= at:
                break
            parts[place] = begins, at, live
        parts.insert(index, (first, at, heard))
        self._parts = parts

    def not_before(self, first: int, at: float) -> None:
        """Note that the events from this number on were published at this time or later."""
        self._floor = first, at

    def note_answer(self, peer: PeerId, known: int, first: int, last: int, moment: float) -> None:
        """Note which event of a range that a peer knows was the first to be published since a moment."""
        others = tuple([each for each in self._answers if each[0] != peer])
        self._answers = (*others[-MOST_ANSWERS + 1 :], (peer, known, first, last, moment))

    def _promised(self, number: int) -> float | None:
        """Return the moment since which an event was published, unless more peers say that it was before."""
        words = [each for each in self._answers if each[1] <= number <= each[3]]
        moments = [moment for _, _, first, _, moment in words if first <= number]
        return max(moments) if moments and 2 * len(moments) >= len(words) else None

    def _believed(self, first: int, before: list[_Part], at: float, now: float | None) -> float:
        """Return a time that another node states, or a later one if that cannot be true."""
        promised, floor = self._promised(first), self._floor
        bound = at if promised is None else promised
        if floor is not None and floor[0] <= first:
            bound = max(bound, floor[1])
        bound = max(bound, next((time for _, time, heard in reversed(before) if heard), at))
        if at >= bound - SLACK:
            return max(at, bound)
        return bound if now is None else max(bound, now)

    def since(self, moment: float) -> int | None:
        """Return the first number that may have been published at this time or later, if any."""
        return next((first for first, at, _ in self._parts if at >= moment), None)

    def at(self, number: int) -> float | None:
        """Return the latest time at which this event was published; None if that is not known."""
        if 0 <= self._first <= number:
            return self._at
        parts = self._parts
        index = bisect_right(parts, number, key=_first_of) - 1
        return None if index < 0 else parts[index][1]


def _bound_parts(earlier: list[_Part]) -> list[_Part]:
    """Merge the older half if there are too many. A merged part has its latest event's time: in doubt it is
    due."""
    if len(earlier) < MOST_MOMENTS:
        return earlier
    older = MOST_MOMENTS // 2
    pairs = zip(earlier[:older:2], earlier[1:older:2], strict=True)
    merged = [(one[0], max(one[1], other[1]), one[2] or other[2]) for one, other in pairs]
    return [*merged, *earlier[older:]]


Range = tuple[int, int]
"""First and last sequence number, both included."""


_Span = tuple[int, int, EventId | None]
"""A seen range, and the id of its last event if that is known."""


class SeenRanges:
    """A set of sequence numbers, kept as disjoint ranges that do not touch, with the id at each end."""

    __slots__ = ("_capacity", "_spans", "floor")

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._spans: list[_Span] = []
        self.floor = 0
        """Everything below counts as seen: it was seen, or it is too old to tell."""

    def __len__(self) -> int:
        return len(self._spans)

    @property
    def ranges(self) -> list[Range]:
        """The ranges, lowest first."""
        return [(first, last) for first, last, _ in self._spans]

    @property
    def last(self) -> int:
        """The highest number seen; -1 if there is none."""
        return self._spans[-1][1] if self._spans else self.floor - 1

    def covers(self, first: int, last: int) -> bool:
        """Return whether all of this range was seen."""
        spans = self._spans
        if spans and first >= spans[-1][0]:  # the common case by far
            return last <= spans[-1][1]
        if last < self.floor:
            return True
        index = bisect_right(spans, max(first, self.floor), key=_first_of) - 1
        return index >= 0 and last <= spans[index][1]

    def touches(self, first: int, last: int) -> bool:
        """Return whether any of this range was seen."""
        if first < self.floor:
            return True
        spans = self._spans
        if not spans or first > spans[-1][1]:  # the common case by far
            return False
        index = bisect_right(spans, last, key=_first_of) - 1
        return index >= 0 and first <= spans[index][1]

    def head_at(self, number: int) -> EventId | None:
        """Return the id of the event with this number if a range ends there and the id is known."""
        spans = self._spans
        if not spans or number > spans[-1][1]:
            return None
        index = bisect_right(spans, number, key=_last_of) - 1
        return spans[index][2] if index >= 0 and spans[index][1] == number else None

    def add(self, first: int, last: int, head: EventId | None = None) -> Range | None:
        """Count a range as seen, `head` being its last event; return the range that was given up for it."""
        spans = self._spans
        if spans and first == spans[-1][1] + 1:
            spans[-1] = spans[-1][0], last, head
            return None
        low = bisect_right(spans, first - 2, key=_last_of)  # the first range that touches or lies above
        high = bisect_right(spans, last + 1, key=_first_of)  # the first range that lies wholly above
        if low < high:
            first = min(first, spans[low][0])
            if spans[high - 1][1] >= last:
                _, last, head = spans[high - 1]
        spans[low:high] = [(first, last, head)]
        if len(spans) <= self._capacity:
            return None
        lost = spans.pop(0)[:2]
        self.floor = max(self.floor, lost[1] + 1)
        return lost

    def missing(self, first: int, last: int) -> list[Range]:
        """Return the parts of a range that were not seen, lowest first."""
        holes: list[Range] = []
        at = max(first, self.floor)
        spans = self._spans
        for index in range(max(0, bisect_right(spans, at, key=_first_of) - 1), len(spans)):
            begins, ends, _ = spans[index]
            if begins > last:
                break
            if begins > at:
                holes.append((at, begins - 1))
            at = max(at, ends + 1)
        if at <= last:
            holes.append((at, last))
        return holes


ChainKey = bytes
"""The ids of author and device, joined."""


_MOST_CLAIMS = 8
"""The most peers whose word on how far a chain goes is remembered, beside that of its device."""


def agreed_end(claims: Iterable[int]) -> tuple[int, int]:
    """Return how far a chain goes by the word of at least half of those who say so, and how many they are.

    So one that claims far more than the others is not what a reader is told.
    """
    highest = sorted(claims, reverse=True)
    last = highest[len(highest) // 2]
    return last, sum(claim >= last for claim in highest)


class EarlyUnits:
    """How much the chains of one topic hold of units that came too early.

    Anyone with a key can leave out the first event of a chain and send the rest.
    """

    def __init__(self) -> None:
        self._chains: Ranking[ChainKey] = Ranking()
        self.bytes = 0

    def add(self, chain: ChainKey, size: int) -> None:
        """Count what a chain holds more, or less."""
        self.bytes += size
        self._chains.add(chain, size)

    def forget(self, chain: ChainKey) -> None:
        """Count nothing of a chain any more."""
        self.add(chain, -self._chains.counts.get(chain, 0))

    def find_greediest(self) -> ChainKey | None:
        """Return the chain that holds most if all together hold too much."""
        return self._chains.find_largest() if self.bytes > EARLY_BYTES else None


class Chain:
    """The state of one chain, and the units that wait for their turn."""

    __slots__ = (
        "_all_early",
        "_early",
        "announced",
        "author",
        "base",
        "claims",
        "device",
        "doubted_by",
        "held",
        "is_passed",
        "key",
        "moments",
        "news",
        "next",
        "promised",
        "restored",
        "seen",
        "told",
    )

    def __init__(
        self,
        author: AuthorId,
        device: DeviceId,
        base: int,
        capacity: int,
        all_early: EarlyUnits | None = None,
    ) -> None:
        self.author = author
        self.device = device
        self.key: ChainKey = author + device
        self.base = base
        """The first number that is due to us; earlier events were before our time."""
        self.next = base
        """The next number in order."""
        self.announced = -1
        """The highest number that any peer has announced."""
        self.claims: dict[PeerId, int] | None = None
        """How far peers say that the chain goes, beyond what was seen; None if nobody does."""
        self.news = 0
        """The number of the latest news that it was part of; see `linnet.streams.announcements`."""
        self.held = False
        """Whether no unit gets its turn yet, since a peer is about to say from where on the chain is due."""
        self.doubted_by = 0
        """How many peers claimed more than anybody could show, when subscriptions were told so; 0: never."""
        self.is_passed = False
        """Whether the start of the due part was settled long ago and written down."""
        self.promised = -1
        """The highest number that any peer says was published in our time."""
        self.told = 0
        """What was due below this number was reported as missed; it is not due again."""
        self.restored = -1
        """The last number that was in the log when the chain was opened; the log says when it was
        published."""
        self.moments = Moments()
        """When the rest of the chain was published."""
        self.seen = SeenRanges(capacity)
        self._early: dict[int, Verified] | None = None
        """Units that came too early, if there are any."""
        self._all_early = EarlyUnits() if all_early is None else all_early

    @property
    def early(self) -> int:
        """The number of units that arrived too early and wait."""
        return len(self._early or ())

    @property
    def first_gap(self) -> Range | None:
        """The range that the units that came too early wait for, if there are any."""
        first = min(self._early or (), default=self.next)
        return (self.next, first - 1) if first > self.next else None

    def restore(self, first: int, last: int, head: EventId) -> None:
        """Begin with the part that the log holds; `head` may be unknown."""
        self.base = first
        self.next = last + 1
        self.restored = last
        self.is_passed = not head
        self.seen.add(first, last, head or None)

    def rebase(self, first: int) -> list[Verified]:
        """Skip what is below `first`: it is lost or not due to us. Return the units whose turn has come."""
        self.base = max(self.base, first)
        if self.next >= first:
            return []
        self.next = first
        return self._due()

    def begin_earlier(self, first: int) -> None:
        """Begin the chain earlier, at a live event that peers made us take for older than our time.

        The news of an event can be faster than the event. Once an event was seen, the beginning stays.
        """
        if first < self.base and not len(self.seen):
            self.base = self.next = first

    def due_from(self, first: int) -> bool:
        """Begin where a peer says that the chain was published in our time; return whether that is possible.

        It is not if a later event has had its turn already: the order would be broken.
        """
        first = max(first, self.told)
        if first >= self.base or self.is_passed:
            return True
        if not self.held and self.next > self.base:
            return False
        self.base = self.next = first
        return True

    def release(self) -> list[Verified]:
        """Stop holding back the chain; return the units whose turn has come."""
        self.held = False
        if self._early:
            # Held units may turn out to be older than our time.
            for number in [number for number in self._early if number < self.next]:
                self._all_early.add(self.key, -_held_bytes(self._early.pop(number)))
        return self._due()

    def accept(self, verified: Verified, first: int, last: int) -> Range | None:
        """Count a new unit as seen; raises `InvalidEvent` if it contradicts earlier ones.

        Returns the gap that the window had to give up for it, if any.
        """
        if self.seen.touches(first, last):
            raise InvalidEvent(Reason.FORKED_CHAIN, f"{first} to {last} overlaps what was seen")
        before = self.seen.head_at(first - 1)
        if before is not None and before != verified.unit.prev:
            raise InvalidEvent(Reason.FORKED_CHAIN, f"{first} does not follow the {first - 1} that was seen")
        floor = self.seen.floor
        lost = self.seen.add(first, last, verified.head)
        self.doubted_by = 0
        if lost is None:
            return None
        # The range that was seen is no loss; the gap before it is, since it counts as seen from now on.
        lowest = max(self.base, floor)
        return (lowest, lost[0] - 1) if lowest < lost[0] else None

    def in_order(self, verified: Verified, first: int, last: int) -> list[Verified]:
        """Return the units whose turn has come with this one, in order; none if it has to wait.

        Events before our time never get a turn.
        """
        if first != self.next or self.held:
            if first >= self.next or self.held:
                if self._early is None:
                    self._early = {}
                self._early[first] = verified
                self._all_early.add(self.key, _held_bytes(verified))
            return []
        self.next = last + 1
        if not self._early:
            return [verified]
        return [verified, *self._due()]

    def missing(self) -> list[Range]:
        """Return the ranges that are due, known to exist, and not seen."""
        return self.seen.missing(self.base, max(self.seen.last, self.announced))

    def forgo(self, first: int, last: int) -> list[Verified]:
        """Stop waiting for a range; return the units whose turn has come."""
        if last >= self.seen.floor:
            self.seen.add(first, last)
        if first <= self.next <= last:
            self.next = last + 1
        return self._due()

    def note_claim(self, peer: PeerId, last: int, is_own: bool = False) -> None:
        """Note that a peer says that the chain goes to this number.

        `is_own` says that it is the chain's device: its word counts, however many have claimed something.
        """
        if last <= self.seen.last:
            return
        if self.claims is None:
            self.claims = {}
        if is_own or peer in self.claims or len(self.claims) < _MOST_CLAIMS:
            self.claims[peer] = max(last, self.claims.get(peer, -1))

    def proven_missing(self) -> list[Range]:
        """Return the ranges that are due and not seen, before an event that was seen."""
        return self.seen.missing(self.base, self.seen.last)

    def forget_hearsay(self) -> Range | None:
        """Stop waiting for events that were announced but never shown to exist; return their range."""
        first, last = max(self.base, self.seen.last + 1), self.announced
        self.announced, self.claims = -1, None
        return (first, last) if first <= last else None

    def _due(self) -> list[Verified]:
        due: list[Verified] = []
        if self.held or not self._early:
            return due
        while (unit := self._early.pop(self.next, None)) is not None:
            due.append(unit)
            self.next += len(unit.events)
            self._all_early.add(self.key, -_held_bytes(unit))
        return due


def _held_bytes(verified: Verified) -> int:
    """Return about how many bytes of memory a unit takes."""
    return sum(map(len, verified.unit.tails)) + _EVENT_OVERHEAD * (1 + len(verified.events))
