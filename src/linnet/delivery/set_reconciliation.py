"""Range-based set reconciliation (Meyer 2022): two peers find which events each of them lacks.

The events of a topic are ordered by (height, id). One side sends fingerprints of ranges; where the other's
fingerprint differs, it splits the range and sends fingerprints of the parts, until a range is small enough
to list. The receiver of a list knows the differences: it takes what it lacks itself, and answers with what
the *other* side lacks, which ends the range. So every range is answered once, each answer is about smaller
ranges, and the cost grows with the number of differences, not of events.

A message covers ranges in ascending order, skips what lies between them, and reaches to the end of the
order, unless its sender has more to say: then it stops before the end, and the other side answers, with an
empty message if need be, to let it go on. A peer may only speak of ranges that it was asked about, so a lying
peer can waste no more than a bounded number of bounded messages. When a session is interrupted, what was
found stays found, and a new session finds the rest.

`plan` decides whether this or the heads walk is cheaper. The walk sends only what is missing, as long as the
asked peer knows the asker's heads. Where both have gone on apart, it would send again everything beyond the
heads that it knows. Reconciliation has a price for each part of the difference.

The fingerprint of a set is the SHA-256 of its size and of the sum of its ids modulo 2^256, so that sums
of parts add up and a range costs two partial blocks, however long it is. A plain XOR of the ids would not
do: it is linear over bits, and an attacker that can make some 256 events can find, by elimination, some of
them whose XOR is zero, and so hide them from everyone. Against sums no such short cut is known, only
generalised birthday attacks (Wagner 2002) on a great many events. And an event that was hidden in this way
would still be found: later events name it, and the barriers ask for it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from enum import StrEnum
from hashlib import sha256
from math import ceil, log
from typing import NamedTuple

from msgspec import Struct

from linnet.core.ids import EventId, TopicId
from linnet.core.limits import LARGEST_COUNT
from linnet.core.reasons import Reason
from linnet.delivery.messages import (
    IDS_PER_RANGE,
    RANGES_PER_MESSAGE,
    Bound,
    Range,
    Reconcile,
)

Key = tuple[int, EventId]
"""The height and id of an event."""

START: Key = (0, EventId(bytes(32)))
END: Key = (LARGEST_COUNT, EventId(b"\xff" * 32))
"""The end of the order: no event is at or beyond it."""

_BLOCK = 512
"""The most ids in one block: a partial sum costs some 30 microseconds."""
_MODULUS = 1 << 256


class _Block:
    """A run of consecutive ids."""

    __slots__ = ("heights", "ids", "sum")

    def __init__(self) -> None:
        self.heights = array("Q")
        self.ids: list[EventId] = []
        self.sum = 0

    def place(self, key: Key) -> int:
        """Return how many keys of the block are before this one."""
        height, id = key
        low = bisect_left(self.heights, height)
        return bisect_left(self.ids, id, low, bisect_right(self.heights, height, low))

    def key(self, at: int) -> Key:
        return self.heights[at], self.ids[at]


class SortedIds:
    """A sorted set of ids in blocks, with running sums that are updated from the first changed block on."""

    def __init__(self) -> None:
        self._blocks: list[_Block] = []
        self._firsts: list[Key] = []
        """The first key of each block."""
        self._counts = [0]
        self._sums = [0]
        """The sum of all blocks before each block, as far as it is up to date."""
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def __contains__(self, key: Key) -> bool:
        block, at = self._find(key)
        return block < len(self._blocks) and self._here(self._blocks[block], at, key)

    def __iter__(self) -> Iterator[Key]:
        for block in self._blocks:
            yield from zip(block.heights, block.ids, strict=True)

    def add(self, height: int, id: EventId) -> bool:
        """Add an id; return whether it was new."""
        key = (height, id)
        if not START <= key < END:
            raise ValueError("a height is a count, and an id has 32 bytes")
        if not self._blocks or (key > self._blocks[-1].key(-1) and len(self._blocks[-1].ids) >= _BLOCK):
            self._blocks.append(_Block())
            self._firsts.append(key)
        number, at = self._find(key)
        block = self._blocks[number]
        if self._here(block, at, key):
            return False
        block.heights.insert(at, height)
        block.ids.insert(at, id)
        block.sum += int.from_bytes(id)
        self._size += 1
        self._changed(number)
        if len(block.ids) > _BLOCK:
            self._split(number)
        return True

    def remove(self, height: int, id: EventId) -> bool:
        """Remove an id; return whether it was there."""
        key = (height, id)
        if key not in self:
            return False
        number, at = self._find(key)
        block = self._blocks[number]
        del block.heights[at], block.ids[at]
        block.sum -= int.from_bytes(id)
        self._size -= 1
        self._changed(number)
        if not block.ids:
            del self._blocks[number], self._firsts[number]
        else:
            self._firsts[number] = block.key(0)
        return True

    def rank(self, key: Key) -> int:
        """Return how many keys are before this one."""
        if not self._blocks:
            return 0
        number, at = self._find(key)
        self._mend(number)
        return self._counts[number] + at

    def key_at(self, rank: int) -> Key:
        """Return the key that has this many keys before it."""
        self._mend(len(self._blocks))
        number = bisect_right(self._counts, rank) - 1
        return self._blocks[number].key(rank - self._counts[number])

    def keys(self, low: Key, high: Key, limit: int) -> list[Key]:
        """Return the first keys from `low` up to, not including, `high`."""
        found: list[Key] = []
        if not self._blocks:
            return found
        number, at = self._find(low)
        while number < len(self._blocks) and len(found) < limit:
            block = self._blocks[number]
            end = min(block.place(high), at + limit - len(found))
            found += zip(block.heights[at:end], block.ids[at:end], strict=True)
            if end < len(block.ids):
                break
            number, at = number + 1, 0
        return found

    def fingerprint(self, low: Key, high: Key) -> bytes:
        """Return the fingerprint of the ids from `low` up to, not including, `high`."""
        count_low, sum_low = self._before(low)
        count_high, sum_high = self._before(high)
        total = (sum_high - sum_low) % _MODULUS
        return sha256((count_high - count_low).to_bytes(8) + total.to_bytes(32)).digest()

    def _before(self, key: Key) -> tuple[int, int]:
        """Return how many ids are before this key, and their sum."""
        if not self._blocks:
            return 0, 0
        number, at = self._find(key)
        self._mend(number)
        block = self._blocks[number]
        if 2 * at > len(block.ids):
            part = block.sum - sum(map(int.from_bytes, block.ids[at:]))
        else:
            part = sum(map(int.from_bytes, block.ids[:at]))
        return self._counts[number] + at, self._sums[number] + part

    def _find(self, key: Key) -> tuple[int, int]:
        """Return the block where a key is or would be, and its index there."""
        number = max(0, bisect_right(self._firsts, key) - 1)
        return (number, self._blocks[number].place(key)) if self._blocks else (0, 0)

    @staticmethod
    def _here(block: _Block, at: int, key: Key) -> bool:
        return at < len(block.ids) and block.key(at) == key

    def _split(self, number: int) -> None:
        block, upper = self._blocks[number], _Block()
        middle = len(block.ids) // 2
        upper.heights, upper.ids = block.heights[middle:], block.ids[middle:]
        del block.heights[middle:], block.ids[middle:]
        upper.sum = sum(map(int.from_bytes, upper.ids))
        block.sum -= upper.sum
        self._blocks.insert(number + 1, upper)
        self._firsts.insert(number + 1, upper.key(0))

    def _changed(self, number: int) -> None:
        """Drop the running sums after this block, and update its first key."""
        del self._counts[number + 1 :], self._sums[number + 1 :]
        if self._blocks[number].ids:
            self._firsts[number] = self._blocks[number].key(0)

    def _mend(self, number: int) -> None:
        """Bring the running sums up to date, up to the start of this block."""
        for at in range(len(self._counts) - 1, number):
            self._counts.append(self._counts[at] + len(self._blocks[at].ids))
            self._sums.append(self._sums[at] + self._blocks[at].sum)


_EVENT_BYTES = 400
"""The size on the wire of an event with references, signature and a line of text."""
_RANGE_BYTES = 84
"""The size of a range with its fingerprint."""
_ID_BYTES = 34
_ROUND_BYTES = 2048
"""The price of one more round trip: that much could have been sent meanwhile even over a slow link."""
SPLIT = 8
"""The number of parts into which a range that differs is split."""
LIST = 32
"""The most ids in a range that is listed instead of split."""


class Way(StrEnum):
    """The ways to synchronise with a peer."""

    NOTHING = "nothing"
    WALK = "walk"
    RECONCILE = "reconcile"


class Standing(Struct, frozen=True, gc=False):
    """How much one side of a synchronisation has."""

    heads: int
    events: int
    unknown: int | None
    """How many of its heads the other side does not know; None: not known yet."""


def plan(ours: Standing, theirs: Standing) -> Way:
    """Choose how we get what the peer has; the peer chooses for itself.

    A side that knows all heads of the other has all its events. Until the peer has said which of our heads it
    lacks, the walk is tried, and its answer says so.
    """
    if not theirs.unknown:
        return Way.NOTHING
    if not ours.unknown:
        return Way.WALK
    return Way.WALK if walk_bytes(ours, theirs) <= reconcile_bytes(ours, theirs) else Way.RECONCILE


def walk_bytes(ours: Standing, theirs: Standing) -> int:
    """Return the bytes that a walk is expected to bring us: E * n * u / h.

    Of its n events the peer sends all that lie beyond those of our heads that it knows. If it does not know u
    of our h heads, we take this to be the share u / h of all its events; E is the size of an event.
    """
    share = (ours.unknown or 0) / ours.heads if ours.heads else 1.0
    return max(ceil(theirs.events * share), _lacking(ours, theirs)) * _EVENT_BYTES


def reconcile_bytes(ours: Standing, theirs: Standing) -> int:
    """Return the expected cost in bytes of reconciliation and the events it brings us: C(d, n) + T r + E m.

    C is the cost of finding d differences among n events, m is how many of them we lack, and each of the r
    levels is a round trip of price T that the walk does not need.
    """
    apart = max(1, (ours.unknown or 0) + (theirs.unknown or 0), abs(ours.events - theirs.events))
    events = max(ours.events, theirs.events, 1)
    waiting = ceil((1 + _levels(apart, events)) * _ROUND_BYTES)
    return compare_bytes(apart, events) + waiting + _lacking(ours, theirs) * _EVENT_BYTES


def compare_bytes(apart: int, events: int) -> int:
    """Return the bytes to find d differences spread over n events: 8 R d (1 + log_8(n / 32 d)) + 32 I d.

    Each difference goes its own way down through log_8(n / 32 d) levels of 8 fingerprints, below about d
    shared ranges, and ends in a list of up to 32 ids. R is the size of a range, I of an id. No level has more
    than n / 32 ranges, and no more than all ids are listed.
    """
    levels = _levels(apart, events)
    ranges = min(apart * levels * SPLIT, events / LIST * levels)
    return ceil(ranges * _RANGE_BYTES + min(apart * LIST, events) * _ID_BYTES)


def _levels(apart: int, events: int) -> float:
    return 1 + max(0.0, log(events / (LIST * apart), SPLIT))


def _lacking(ours: Standing, theirs: Standing) -> int:
    """Return how many events we lack at least: the difference in size, or one for each unknown head."""
    return max(theirs.events - ours.events, theirs.unknown or 0)


ROUNDS = 1024
"""The most messages that one session takes from the other side: enough for a million ids that are not
shared."""
_IDS_PER_MESSAGE = 8192
"""The most ids in all ranges of one message: a quarter of a frame."""
_PENDING = 1 << 17
"""The most ranges that may wait to be answered."""


class Step(NamedTuple):
    """The result of a message from the other side."""

    reply: Reconcile | None
    need: tuple[EventId, ...]
    """Ids that the peer has and we lack."""
    have: tuple[EventId, ...]
    """Ids that we have and the peer lacks, if we are the side that finds out; the reply tells the peer."""


class _Say(NamedTuple):
    """A range that we have yet to answer."""

    low: Key
    high: Key
    listed: dict[EventId, None] | None
    """The peer's ids in the range, if it listed them: we answer with those it lacks. None: the fingerprints
    differ."""


class _Open(NamedTuple):
    """A range that we sent and that waits for an answer."""

    low: Key
    high: Key
    listed: bool
    """Whether we listed its ids, so that the answer can only end it."""


class _BrokenRule(Exception):
    """The other side has broken a rule of the protocol."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason = reason


class Reconciler:
    """One side of a session. The set may grow meanwhile.

    Both ends may begin sessions; the caller must see to it that their numbers differ.
    """

    def __init__(self, topic: TopicId, session: int, ids: SortedIds, rounds: int = ROUNDS) -> None:
        self._topic = topic
        self._session = session
        self._ids = ids
        self._most_rounds = rounds
        self._say: list[_Say] = []
        self._open = [_Open(START, END, listed=False)]
        """Both lists are in ascending order."""
        self.rounds = 0
        """Messages taken from the other side."""
        self.done = False
        """Whether the session is over for us; a last reply may still have to be sent."""
        self.failed: Reason | None = None
        """Why the session failed; None unless it did."""

    def begin(self) -> Reconcile:
        """Return the first message of a session that we begin."""
        self._open = []
        self._say = [_Say(START, END, None)]
        return self._message({}, [])

    def answer(self, message: Reconcile) -> Step:
        """Take in a message of the other side, and return the reply and the differences found."""
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
        """Take in ranges; return whether the peer awaits an answer, and whether it has more to say."""
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
        """Answer as many ranges as fit, from the lowest on; the others wait for the next message."""
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
        """Answer a range that differs: list its ids if it is small, else send fingerprints of equal parts."""
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
        """Answer a list with the ids that the peer lacks, as many as fit; return also what is left to answer.

        The listed ids that we do not have are added to `need`.
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
