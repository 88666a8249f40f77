"""Range-based set reconciliation (Meyer 2022): two find what either lacks, wherever it is.

The events of a topic are in the order of (height, id). One side says fingerprints of ranges of it; where
the other's differ, it splits the range and says fingerprints of the parts, until a range is small enough
to list. Whoever is sent a list knows what both lack, takes what it lacks itself, and tells the other
what *that* lacks, which ends the range. So every range is answered once, each answer is about smaller
ones, and the cost goes with the differences, not with the events.

A message says something of ranges in ascending order, skips what is between them, and reaches to the end of
everything, unless its sender has more to say: then it stops before, and the other sends what it has to say
or an empty message to let it go on. What a peer says must be within the ranges that it was asked about, so
a lying one can waste a bounded number of bounded messages and nothing else. Interrupted at any point, what
was found is found, and a new session finds the rest.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from linnet.core.ids import EventId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.causal_messages import (
    IDS_PER_RANGE,
    RANGES_PER_MESSAGE,
    Bound,
    Range,
    Reconcile,
)
from linnet.delivery.plan import LIST, SPLIT
from linnet.delivery.sorted_ids import END, START, Key, SortedIds

ROUNDS = 1024
"""Messages that one session takes from the other side: a million ids of which none is shared fit well."""
_IDS_PER_MESSAGE = 8192
"""Ids in all ranges of one message: a quarter of a frame."""
_PENDING = 1 << 17
"""Ranges of which something is still to be said, at most."""


class Step(NamedTuple):
    """What a message of the other side leads to."""

    reply: Reconcile | None
    need: tuple[EventId, ...]
    """Ids that they have and we lack."""
    have: tuple[EventId, ...]
    """Ids that we have and they lack, as far as it is we who find out: the reply tells them."""


class _Say(NamedTuple):
    """A range of which something is to be said."""

    low: Key
    high: Key
    listed: dict[EventId, None] | None
    """What they have of it, if they listed it: we tell what they lack. None: ours differs from theirs."""


class _Open(NamedTuple):
    """A range of which we said something that waits for an answer."""

    low: Key
    high: Key
    listed: bool
    """Whether we listed it, so that it can only be ended."""


class _BrokenRule(Exception):
    """The other side does what it must not."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason = reason


class Reconciler:
    """One side of a session. The set may grow meanwhile.

    Both ends may begin sessions; whoever keeps them sees to it that their numbers differ.
    """

    def __init__(self, topic: TopicId, session: int, ids: SortedIds, rounds: int = ROUNDS) -> None:
        self._topic = topic
        self._session = session
        self._ids = ids
        self._most_rounds = rounds
        self._say: list[_Say] = []
        self._open = [_Open(START, END, listed=False)]
        """Both in ascending order."""
        self.rounds = 0
        """Messages taken from the other side."""
        self.done = False
        """Whether the session is over for us; a last reply may still have to be sent."""
        self.failed: Reason | None = None
        """Why it is over before its time."""

    def begin(self) -> Reconcile:
        """The first message of a session that we begin."""
        self._open = []
        self._say = [_Say(START, END, None)]
        return self._message({}, [])

    def answer(self, message: Reconcile) -> Step:
        """Take a message of the other side."""
        if self.done:
            return Step(None, (), ())
        self.rounds += 1
        need: dict[EventId, None] = {}
        have: list[EventId] = []
        try:
            if self.rounds > self._most_rounds:
                raise _BrokenRule(Reason.TOO_MANY)
            if (message.topic, message.session) != (self._topic, self._session):
                raise _BrokenRule(Reason.PROTOCOL_ERROR)
            waits, more = self._take(message.ranges, need)
        except _BrokenRule as broken:
            self.done, self.failed = True, broken.reason
            return Step(None, tuple(need), ())
        reply: Reconcile | None = None
        if self._say or waits:
            reply = self._message(need, have)
        elif more:
            reply = Reconcile(self._topic, self._session, ())
        self.done = not (self._say or self._open or more)
        return Step(reply, tuple(need), tuple(have))

    def _take(self, ranges: tuple[Range, ...], need: dict[EventId, None]) -> tuple[bool, bool]:
        """Take what is said; whether they wait for an answer to it, and whether they have more to say."""
        low, waits = START, False
        pending = bool(self._say)
        for one in ranges:
            high = (one.upto.height, one.upto.id)
            if not low < high <= END:
                raise _BrokenRule(Reason.MALFORMED)
            if not one.skip or one.ids:
                self._take_range(low, high, one, need)
            waits |= not one.skip
            low = high
        before = self._open
        self._open = [one._replace(low=max(one.low, low)) for one in before if one.high > low]
        if self._open == before and not pending:
            raise _BrokenRule(Reason.PROTOCOL_ERROR)  # nothing is answered, and nothing waits to be said
        if len(self._say) > _PENDING:
            raise _BrokenRule(Reason.TOO_MANY)
        self._say.sort(key=lambda say: say.low)
        return waits, bool(ranges) and low != END

    def _take_range(self, low: Key, high: Key, one: Range, need: dict[EventId, None]) -> None:
        at = bisect_right(self._open, low, key=lambda open: open.low) - 1
        if at < 0 or high > self._open[at].high or self._open[at].listed != one.skip:
            raise _BrokenRule(Reason.PROTOCOL_ERROR)
        if one.skip:
            ours = {id: None for _, id in self._ids.keys(low, high, IDS_PER_RANGE)}
            need.update((id, None) for id in one.ids if id not in ours)
        elif one.fingerprint is None:
            self._say.append(_Say(low, high, dict.fromkeys(one.ids)))
        elif one.ids:
            raise _BrokenRule(Reason.MALFORMED)
        elif one.fingerprint != self._ids.fingerprint(low, high):
            self._say.append(_Say(low, high, None))

    def _message(self, need: dict[EventId, None], have: list[EventId]) -> Reconcile:
        """Say as much as fits, from the lowest range on; what does not fit is said in the next one."""
        said: list[Range] = []
        at, ids, number = START, 0, 0
        while number < len(self._say):
            say = self._say[number]
            if len(said) + 2 + SPLIT > RANGES_PER_MESSAGE or ids + IDS_PER_RANGE > _IDS_PER_MESSAGE:
                break
            ranges, rest = (self._differ(say), None) if say.listed is None else self._tell(say, need, have)
            if ranges and say.low > at:
                said.append(Range(Bound(*say.low), None, (), skip=True))
            for one in ranges:
                said.append(one)
                at = (one.upto.height, one.upto.id)
                ids += len(one.ids)
            if rest is None:
                number += 1
            else:
                self._say[number] = rest
        del self._say[:number]
        if not self._say and at < END:
            said.append(Range(Bound(*END), None, (), skip=True))
        self._open.sort()
        return Reconcile(self._topic, self._session, tuple(said))

    def _differ(self, say: _Say) -> list[Range]:
        """Ours differs from theirs: list it if it is small, or else say fingerprints of equal parts."""
        low, high, _ = say
        first, last = self._ids.rank(low), self._ids.rank(high)
        if last - first <= LIST:
            self._open.append(_Open(low, high, listed=True))
            ids = tuple(id for _, id in self._ids.keys(low, high, LIST))
            return [Range(Bound(*high), None, ids, skip=False)]
        ranges: list[Range] = []
        for part in range(1, SPLIT + 1):
            end = high if part == SPLIT else self._ids.key_at(first + (last - first) * part // SPLIT)
            ranges.append(Range(Bound(*end), self._ids.fingerprint(low, end), (), skip=False))
            self._open.append(_Open(low, end, listed=False))
            low = end
        return ranges

    def _tell(
        self, say: _Say, need: dict[EventId, None], have: list[EventId]
    ) -> tuple[list[Range], _Say | None]:
        """They listed what they have: tell what they lack of the first of ours, and what is left to tell.

        What they listed and we have not met at the end is what we lack.
        """
        listed = say.listed or {}
        keys = self._ids.keys(say.low, say.high, IDS_PER_RANGE + 1)
        high = keys.pop() if len(keys) > IDS_PER_RANGE else say.high
        lacking = tuple(id for _, id in keys if id not in listed)
        for _, id in keys:
            listed.pop(id, None)
        have += lacking
        if high != say.high:
            return [Range(Bound(*high), None, lacking, skip=True)], _Say(high, say.high, listed)
        need.update(listed)
        return [Range(Bound(*high), None, lacking, skip=True)] if lacking else [], None
