"""Forks: two events that one device signed under one number, kept as a proof against that device.

Whoever says different things to different people is caught as soon as both versions meet at one node. The two
units prove it to everybody, since nobody else can sign them. So the proof is kept and passed on, once for a
device and topic. Who forwarded a version is not at fault.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import msgspec

from linnet.core.errors import InvalidEvent
from linnet.core.ids import AuthorId, DeviceId, TopicId
from linnet.core.limits import KIB
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.delivery.chain import ChainKey
from linnet.delivery.flood import unit_bytes
from linnet.delivery.items import Forked
from linnet.delivery.messages import Fork
from linnet.event.event import Verified

_CELLS = "fork"
_RECENT = 256
_RECENT_BYTES = 256 * KIB
"""Units of a topic that are remembered to be compared with others: versions of one event travel together."""
FORK_BYTES = 128 * KIB
"""The most bytes of a proof that is kept and passed on; a larger one is only told here."""
MAX_FORKS = 4096
"""The most proofs that a node keeps: one for a device and topic."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Fork).decode
_Place = tuple[AuthorId, DeviceId, int]


class RecentUnits:
    """The units of one topic that came last, by the numbers of their first and last events."""

    def __init__(self) -> None:
        self._units: dict[_Place, Verified] = {}
        self._order: deque[tuple[Verified, int]] = deque()
        self._bytes = 0

    def add(self, verified: Verified) -> None:
        """Remember a unit, and forget the oldest ones beyond the limit."""
        unit = verified.unit
        first, size = unit.seq or 0, unit_bytes(unit)
        self._units[unit.author, unit.device, first] = verified
        if len(unit.tails) > 1:
            self._units[unit.author, unit.device, first + len(unit.tails) - 1] = verified
        self._order.append((verified, size))
        self._bytes += size
        while len(self._order) > _RECENT or self._bytes > _RECENT_BYTES:
            self._forget_oldest()

    def find(self, author: AuthorId, device: DeviceId, number: int) -> Verified | None:
        """Return the unit that begins or ends with this number."""
        return self._units.get((author, device, number))

    def read_range(self, author: AuthorId, device: DeviceId, first: int, last: int) -> list[Verified]:
        """Return the units of a chain that overlap a range, in order."""
        found = (
            verified
            for verified, _ in self._order
            if (verified.unit.author, verified.unit.device) == (author, device)
            and (verified.unit.seq or 0) <= last
            and _last(verified) >= first
        )
        return sorted(found, key=_first)

    def tails(self) -> dict[ChainKey, tuple[int, int]]:
        """Return, for each chain, the range up to its last remembered event that is here without a gap."""
        ranges: dict[ChainKey, tuple[int, int]] = {}
        for verified in sorted((each for each, _ in self._order), key=_first, reverse=True):
            key = verified.unit.author + verified.unit.device
            first, last = _first(verified), _last(verified)
            known = ranges.get(key)
            if known is None:
                ranges[key] = first, last
            elif last + 1 >= known[0]:
                ranges[key] = min(first, known[0]), known[1]
        return ranges

    def find_fork(self, verified: Verified) -> Verified | None:
        """Return a unit that a verified one contradicts."""
        unit = verified.unit
        first = unit.seq or 0
        last = first + len(unit.tails) - 1
        for number in dict.fromkeys((first, last, first - 1, last + 1)):
            known = self.find(unit.author, unit.device, number)
            if known is not None and differing_number(known, verified) is not None:
                return known
        return None

    def _forget_oldest(self) -> None:
        verified, size = self._order.popleft()
        self._bytes -= size
        unit = verified.unit
        first = unit.seq or 0
        for number in (first, first + len(unit.tails) - 1):
            if self._units.get((unit.author, unit.device, number)) is verified:
                del self._units[unit.author, unit.device, number]


def _first(verified: Verified) -> int:
    return verified.unit.seq or 0


def _last(verified: Verified) -> int:
    return (verified.unit.seq or 0) + len(verified.unit.tails) - 1


def differing_number(one: Verified, other: Verified) -> int | None:
    """Return the first number under which two units of a chain hold different events; None: they agree."""
    if (one.unit.seq or 0) > (other.unit.seq or 0):
        one, other = other, one
    first, second = one.unit.seq or 0, other.unit.seq or 0
    for number, event in enumerate(other.events, second):
        if number - first >= len(one.events):
            break
        if one.events[number - first].id != event.id:
            return number
    follows = second == first + len(one.events)
    return second - 1 if follows and other.unit.prev != one.head else None


def told_fork(one: Verified, other: Verified) -> Forked:
    """Return what readers are told of two units; raises `InvalidEvent` if they are no fork of one chain."""
    a, b = one.unit, other.unit
    if (a.topic, a.author, a.device) != (b.topic, b.author, b.device) or a.seq is None or b.seq is None:
        raise InvalidEvent(Reason.MALFORMED, "two units of different chains are no fork")
    number = differing_number(one, other)
    if number is None:
        raise InvalidEvent(Reason.MALFORMED, "two units that agree are no fork")
    return Forked(a.topic, a.author, a.device, number)


def fork_bytes(fork: Fork) -> int:
    """Return the approximate size of a proof."""
    return unit_bytes(fork.first) + unit_bytes(fork.second)


class Forks:
    """The proofs that this node has kept."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self._known: dict[bytes, None] = {key: None for key, _ in cells.scan(_CELLS)}
        self._told: dict[bytes, None] = {}
        """Forks without a kept proof, the latest last, so that each is told once."""

    def knows(self, topic: TopicId, author: AuthorId, device: DeviceId) -> bool:
        """Return whether a fork of a device in a topic is noted already."""
        key = topic + author + device
        return key in self._known or key in self._told

    def keep(self, fork: Fork) -> bool:
        """Note a checked fork; return whether its proof is kept, or else too large or one too many."""
        unit = fork.first
        key = unit.topic + unit.author + unit.device
        if fork_bytes(fork) > FORK_BYTES or len(self._known) >= MAX_FORKS:
            self._told[key] = None
            if len(self._told) > MAX_FORKS:
                del self._told[next(iter(self._told))]
            return False
        self._known[key] = None
        self._cells.put(_CELLS, key, _encode(fork))
        return True

    def of_topic(self, topic: TopicId) -> Iterator[Fork]:
        """Yield the proofs of a topic."""
        for key in self._known:
            if key.startswith(topic) and (kept := self._cells.get(_CELLS, key)) is not None:
                yield _decode(kept)
