"""The causal graph of one topic, as far as a node knows it: which event precedes which, and the heads.

Events are numbered as they arrive and kept in flat arrays, some 200 bytes each with the id: a node holds many
topics, and a topic 100,000 events. An edge leads from an event to each of its references. An event that is
*settled* instead (rejected, expired) is a dead end that satisfies the events waiting for it; if it arrives
after all, it takes its place.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator

from linnet.core.ids import EventId

_KNOWN, _SHOWN, _FOLLOWED, _COVERED = 1, 2, 4, 8
"""Flags: in the graph; shown to the application; another event refers to it; a shown event came after it."""
_MEMO = 8192
"""Answers of `Dag.precedes` that are cached: about a megabyte."""
_NONE = -1


class Dag:
    """The causal graph of one topic."""

    def __init__(self) -> None:
        self._number: dict[EventId, int] = {}
        self._aside: dict[EventId, int] = {}
        """Settled events that no event refers to, with their heights: these can be forgotten again."""
        self._ids: list[EventId] = []
        self._height = array("Q")
        self._flags = bytearray()
        self._mine = array("q")
        """Our own sequence number of an event, if it is ours."""
        self._reach = array("q")
        self._chain = array("I")
        """Events are laid into chains, each in the past of the next: most searches end early because of
        them."""
        self._tips = array("I")
        """The last event of each chain."""
        self._first = array("Q")
        self._count = array("H")
        """Where in `_refs` the references of an event begin, and how many there are."""
        self._refs = array("I")
        self._known = 0
        self._tops: dict[int, None] = {}
        self._all_tops: dict[int, None] = {}
        self._heads: tuple[EventId, ...] | None = ()
        self._all_heads: tuple[EventId, ...] | None = ()
        self._memo: dict[tuple[int, int], bool] = {}
        self._stale = False
        """Whether an event arrived in the middle of the graph, so that reaches must be computed anew."""
        self.late = 0
        """Events that were settled first and arrived after all: they change the past of others."""

    def __len__(self) -> int:
        return self._known

    def add(
        self, id: EventId, height: int, refs: tuple[EventId, ...], shown: bool, mine: int | None = None
    ) -> None:
        """Add an event whose references are known or settled; does nothing if it is in the graph.

        `shown` is false for an event that is kept but not shown; `mine` is our own sequence number, if it is
        ours.
        """
        numbers = [self._number_of(ref) for ref in dict.fromkeys(refs)]
        if id in self._aside:
            self._number_of(id)
        number = self._number.get(id)
        if number is not None and self._flags[number] & _KNOWN:
            return
        if number is None:
            number = self._enter(id, height)
        else:
            self._height[number] = height
            self._late()
        self._first[number] = len(self._refs)
        self._count[number] = len(numbers)
        self._refs.extend(numbers)
        self._mine[number] = _NONE if mine is None else mine
        self._flags[number] |= _KNOWN | (_SHOWN if shown else 0)
        self._known += 1
        reach = max((self._reach[ref] for ref in numbers), default=_NONE)
        self._reach[number] = max(reach, self._mine[number])
        self._lay(number, numbers)
        self._top(number, numbers)

    def show(self, id: EventId) -> None:
        """Show an event of the graph that was kept but not shown."""
        number = self._number[id]
        flags = self._flags
        if not flags[number] & _KNOWN or flags[number] & _SHOWN:
            return
        flags[number] |= _SHOWN
        if not flags[number] & _COVERED:
            self._cover(self._refs_of(number))
            self._tops[number] = None
            self._heads = None

    def settle(self, id: EventId, height: int) -> None:
        """Settle an event that will not be shown (rejected, expired). It satisfies barriers."""
        if id not in self._number:
            self._aside.setdefault(id, height)

    def forget(self, id: EventId | None) -> None:
        """Forget a settled event, unless another refers to it: it satisfies no barrier any more."""
        if id is not None:
            self._aside.pop(id, None)

    def knows(self, id: EventId) -> bool:
        """Return whether an event is in the graph."""
        number = self._number.get(id)
        return number is not None and bool(self._flags[number] & _KNOWN)

    def is_settled(self, id: EventId) -> bool:
        """Return whether an event was settled and is not in the graph."""
        number = self._number.get(id)
        return id in self._aside if number is None else not self._flags[number] & _KNOWN

    def satisfies(self, id: EventId) -> bool:
        """Return whether an event satisfies barriers: it is known or settled."""
        return id in self._number or id in self._aside

    def shows(self, id: EventId) -> bool:
        """Return whether an event is in the graph and shown."""
        number = self._number.get(id)
        return number is not None and bool(self._flags[number] & _SHOWN)

    def height(self, id: EventId) -> int:
        """Return the height of an event that is known or settled."""
        aside = self._aside.get(id)
        return self._height[self._number[id]] if aside is None else aside

    def refs(self, id: EventId) -> tuple[EventId, ...]:
        """Return the distinct references of an event; a settled one has none."""
        number = self._number.get(id)
        return () if number is None else tuple(self._ids[ref] for ref in self._refs_of(number))

    @property
    def heads(self) -> tuple[EventId, ...]:
        """Shown events that precede no shown event; the highest first, then by id."""
        if self._heads is None:
            self._heads = self._sorted(self._tops)
        return self._heads

    @property
    def all_heads(self) -> tuple[EventId, ...]:
        """Events that precede no other, shown or not; in the same order."""
        if self._all_heads is None:
            self._all_heads = self._sorted(self._all_tops)
        return self._all_heads

    def reach(self, id: EventId) -> int:
        """Return the largest of our own sequence numbers in the past of an event, with itself; -1 if none."""
        if self._stale:
            self._reckon()
        number = self._number.get(id)
        return _NONE if number is None else self._reach[number]

    def precedes(self, a: EventId, b: EventId) -> bool:
        """Return whether `a` is in the causal past of `b`; nothing precedes itself."""
        if a in self._aside or b in self._aside:
            return False
        first, last = self._number[a], self._number[b]
        if self._height[first] >= self._height[last]:
            return False
        key = (first, last)
        known = self._memo.get(key)
        if known is None:
            known = self._search(first, last)
            if len(self._memo) >= _MEMO:
                del self._memo[next(iter(self._memo))]
            self._memo[key] = known
        return known

    def ids_in_order(self) -> Iterator[EventId]:
        """Iterate over the graph by height, then id: a causal order that depends on the set alone."""
        ids, height, flags = self._ids, self._height, self._flags
        numbers = [number for number in range(len(ids)) if flags[number] & _KNOWN]
        numbers.sort(key=lambda number: (height[number], ids[number]))
        return (ids[number] for number in numbers)

    def _number_of(self, ref: EventId) -> int:
        """Return the number of an event that another refers to, settled or not."""
        aside = self._aside.pop(ref, None)
        return self._number[ref] if aside is None else self._enter(ref, aside)

    def _enter(self, id: EventId, height: int) -> int:
        number = len(self._ids)
        self._number[id] = number
        self._ids.append(id)
        self._height.append(height)
        self._flags.append(0)
        self._mine.append(_NONE)
        self._reach.append(_NONE)
        self._chain.append(0)
        self._first.append(0)
        self._count.append(0)
        return number

    def _late(self) -> None:
        """Note that a dead end now leads on: cached knowledge of pasts may be incomplete."""
        self.late += 1
        self._memo = {}
        self._stale = True

    def _lay(self, number: int, refs: Iterable[int]) -> None:
        """Extend a chain whose last event is a reference, or begin one."""
        for ref in refs:
            if self._flags[ref] & _KNOWN and self._tips[self._chain[ref]] == ref:
                chain = self._chain[ref]
                self._tips[chain] = number
                self._chain[number] = chain
                return
        self._chain[number] = len(self._tips)
        self._tips.append(number)

    def _top(self, number: int, refs: list[int]) -> None:
        """Update the heads: an event that this one refers to is no longer a head."""
        flags = self._flags
        for ref in refs:
            flags[ref] |= _FOLLOWED
            self._all_tops.pop(ref, None)
        if not flags[number] & _FOLLOWED:
            self._all_tops[number] = None
        self._all_heads = None
        if flags[number] & (_SHOWN | _COVERED):
            self._cover(refs)
            self._heads = None
        if flags[number] & _SHOWN and not flags[number] & _COVERED:
            self._tops[number] = None

    def _cover(self, numbers: Iterable[int]) -> None:
        """Mark events as covered by a shown one. Below a shown event all are covered already."""
        stack = list(numbers)
        flags = self._flags
        while stack:
            number = stack.pop()
            if flags[number] & _COVERED:
                continue
            flags[number] |= _COVERED
            if flags[number] & _SHOWN:
                self._tops.pop(number, None)
            else:
                stack.extend(self._refs_of(number))

    def _refs_of(self, number: int) -> array[int]:
        first = self._first[number]
        return self._refs[first : first + self._count[number]]

    def _sorted(self, numbers: Iterable[int]) -> tuple[EventId, ...]:
        ids, height = self._ids, self._height
        return tuple(ids[one] for one in sorted(numbers, key=lambda one: (-height[one], ids[one])))

    def _search(self, first: int, last: int) -> bool:
        """Search down from the last event, not below the height of the first, or to the first one's chain."""
        height, flags, chain = self._height, self._flags, self._chain
        low = height[first]
        its_chain = chain[first] if flags[first] & _KNOWN else _NONE
        seen = {last}
        stack = [last]
        while stack:
            number = stack.pop()
            if flags[number] & _KNOWN and chain[number] == its_chain:
                return True
            for ref in self._refs_of(number):
                if ref == first:
                    return True
                if ref not in seen and height[ref] > low:
                    seen.add(ref)
                    stack.append(ref)
        return False

    def _reckon(self) -> None:
        """Compute all reaches anew, from the lowest event up."""
        height, reach = self._height, self._reach
        for number in sorted(range(len(self._ids)), key=height.__getitem__):
            past = max((reach[ref] for ref in self._refs_of(number)), default=_NONE)
            reach[number] = max(past, self._mine[number])
        self._stale = False
