"""A want list (Bitswap's term): asks one source after the other for missing items.

Known holders of an item are asked first, then the other sources in rotation, each once in a round. A source
that refuses an item is not asked for it again until it comes back. An item that no source has is given up,
and wanted again when a source appears. The list sets its one timer and sends nothing: its user sends each
`Batch`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from typing import Generic, NamedTuple, TypeVar

from msgspec import Struct

from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.machine.outbox import Outbox

_HOLDERS = 4
"""The most known holders of one item that are asked before all other sources."""
_REQUESTS = 1024
"""Requests whose answers are matched as a whole; answers to older ones still count for single items."""
_SLACK = 1e-3
"""Seconds that a timer may be early: items due at about the same time are requested together."""

K = TypeVar("K")


class WantConfig(Struct, frozen=True):
    """The settings of a want list."""

    timeout: float
    """Seconds until a request goes to the next source."""
    tries: int | None
    """Requests that may go unanswered before an item is given up; None: each source is asked once."""
    batch: int
    """The most items in one request."""
    in_flight: int | None = None
    """The most items requested at the same time; None: all."""


class Batch(NamedTuple, Generic[K]):
    """The items of one request to one source."""

    peer: PeerId
    request: int
    items: tuple[K, ...]


class GivenUp(NamedTuple, Generic[K]):
    """An item that is no longer requested."""

    item: K
    last: PeerId | None
    """The source that was asked last."""
    asked: int
    """The number of sources that were asked in the last round."""
    reason: Reason


class _Want(Struct, eq=False):
    """An item that is missing."""

    is_wanted: bool
    """Whether the item is wanted for itself, and not only because something depends on it."""
    holders: dict[PeerId, None] = {}
    asked: dict[PeerId, None] = {}
    """Sources that were asked in this round."""
    refused: dict[PeerId, None] = {}
    """Sources that do not hold it."""
    tries: int = 0
    peer: PeerId | None = None
    """The source that is expected to answer."""
    request: int = 0
    due: float | None = None
    """When the next source is asked; None: it was given up, or waits while enough are in flight."""
    is_needed: bool = False
    """Whether something depends on it."""


class WantList(Generic[K]):
    """The missing items, each requested until it arrives, is no longer needed, or is given up."""

    def __init__(self, config: WantConfig, timer: Timer, out: Outbox) -> None:
        self._limits = config
        self._timer = timer
        self._out = out
        self._wants: dict[K, _Want] = {}
        self._queue: list[tuple[float, int, K]] = []
        self._pushed = 0
        self._waiting: dict[K, None] = {}
        """Items that are due but wait until fewer are in flight."""
        self._in_flight = 0
        self._requests: dict[int, tuple[PeerId, tuple[K, ...]]] = {}
        self._request = 0
        self._turn = 0
        self._armed: float | None = None

    def __len__(self) -> int:
        return len(self._wants)

    def __contains__(self, item: K) -> bool:
        return item in self._wants

    @property
    def left(self) -> int:
        """The number of items that were given up and are still missing."""
        return sum(want.due is None for want in self._wants.values())

    def asks(self, peer: PeerId, item: K) -> bool:
        """Return whether this source is expected to answer for an item."""
        want = self._wants.get(item)
        return want is not None and want.peer == peer

    def is_left(self, item: K) -> bool:
        """Return whether an item was given up and is still missing."""
        want = self._wants.get(item)
        return want is not None and want.due is None

    def want(self, item: K, holder: PeerId | None, at: float, wanted: bool = False) -> None:
        """Ask for an item from this time on. With `wanted`, for itself, not for a dependent item."""
        want = self._wants.get(item)
        if want is None:
            want = self._wants[item] = _Want(wanted)
            self._push(item, want, at)
        want.is_wanted |= wanted
        want.is_needed |= not wanted
        if holder is not None and len(want.holders) < _HOLDERS:
            want.holders[holder] = None
        idle = want.due is None and holder is not None and holder not in want.refused
        early = want.due is not None and want.peer is None and at < want.due
        if idle or early:
            self._push(item, want, at)

    def remove(self, item: K) -> None:
        """Stop asking for an item: it has arrived, or is no longer wanted."""
        want = self._wants.pop(item, None)
        if want is not None:
            self._waiting.pop(item, None)
            self._in_flight -= want.peer is not None

    def forget_need(self, item: K) -> None:
        """Note that nothing depends on an item any more; go on asking only if it is wanted for itself."""
        want = self._wants.get(item)
        if want is None:
            return
        want.is_needed = False
        if not want.is_wanted or want.due is None:
            self.remove(item)

    def handle_source_up(self, peer: PeerId, now: float) -> None:
        """Ask a source that has appeared, too: it may have what no other had."""
        for item, want in self._wants.items():
            want.refused.pop(peer, None)
            want.asked.pop(peer, None)
            if want.due is None:
                want.tries = 0
                self._push(item, want, now)

    def handle_source_down(self, peer: PeerId, now: float) -> None:
        """Ask other sources for the items requested from one that is gone."""
        for item, want in self._wants.items():
            if want.peer == peer and want.due is not None:
                self._push(item, want, now)

    def handle_refusal(self, peer: PeerId, items: Iterable[K], now: float) -> None:
        """Ask other sources for items that a source says it does not hold.

        That does not count as a try, since only so many sources can say it.
        """
        for item in items:
            want = self._wants.get(item)
            if want is not None and want.peer == peer:
                want.refused[peer] = None
                want.tries = max(0, want.tries - 1)
                self._push(item, want, now)

    def handle_answer(self, peer: PeerId, request: int, now: float) -> None:
        """Ask again for the items that are still missing after a source has answered a request.

        The items in its answer were removed already. A source that sent some of them is asked for the rest,
        since an answer holds only so much.
        """
        of, items = self._requests.get(request, (None, ()))
        if of != peer:
            return
        del self._requests[request]
        still = [item for item in items if (want := self._wants.get(item)) and want.request == request]
        progress = len(still) < len(items)
        for item in still:
            want = self._wants[item]
            if peer in want.refused:
                continue
            if progress:
                want.tries -= 1
                want.asked.pop(peer, None)
            self._push(item, want, now)

    def handle_timer(self) -> None:
        """Note that the timer has run out."""
        self._armed = None

    def take_due(self, now: float, sources: Sequence[PeerId]) -> tuple[list[GivenUp[K]], list[Batch[K]]]:
        """Take the requests that are due, to be sent to these sources, and the items that are given up."""
        turn = self._turn % len(sources) if sources else 0
        self._turn += 1
        order = dict.fromkeys((*sources[turn:], *sources[:turn]))
        given_up: list[GivenUp[K]] = []
        chosen: dict[PeerId, list[K]] = {}
        for item in (*self._pop_due(now), *self._waiting):
            want = self._wants[item]
            if want.peer is None and self._in_flight == self._limits.in_flight:
                self._waiting[item] = None
                continue
            self._waiting.pop(item, None)
            peer = self._next_source(want, order)
            if peer is None or want.tries == self._limits.tries:
                given_up.append(self._give_up(item, want, peer))
                continue
            self._in_flight += want.peer is None
            want.tries += 1
            want.peer = peer
            want.asked[peer] = None
            self._push(item, want, now + self._limits.timeout)
            chosen.setdefault(peer, []).append(item)
        step = self._limits.batch
        return given_up, [
            self._make_batch(peer, tuple(items[at : at + step]))
            for peer, items in chosen.items()
            for at in range(0, len(items), step)
        ]

    def arm(self, now: float) -> None:
        """Set the timer for the next due item, if it is not set for that."""
        while self._queue and not self._is_valid(self._queue[0]):
            heappop(self._queue)
        if not self._queue:
            return
        due = self._queue[0][0]
        if self._armed is not None and self._armed <= due:
            return
        self._armed = due
        self._out.set_timer(max(0.0, due - now), self._timer)

    def stop(self) -> None:
        """Drop all items."""
        self._wants, self._queue, self._requests = {}, [], {}
        self._waiting, self._in_flight = {}, 0
        armed, self._armed = self._armed, None
        if armed is not None:
            self._out.cancel_timer(self._timer)

    def _pop_due(self, now: float) -> list[K]:
        due: list[K] = []
        while self._queue and self._queue[0][0] <= now + _SLACK:
            entry = heappop(self._queue)
            if self._is_valid(entry):
                due.append(entry[2])
                self._wants[entry[2]].due = None
        return due

    def _is_valid(self, entry: tuple[float, int, K]) -> bool:
        want = self._wants.get(entry[2])
        return want is not None and want.due == entry[0]

    def _push(self, item: K, want: _Want, due: float) -> None:
        if want.due != due:
            want.due = due
            self._pushed += 1
            heappush(self._queue, (due, self._pushed, item))

    def _next_source(self, want: _Want, order: dict[PeerId, None]) -> PeerId | None:
        """Return the source to ask: known holders first, then the others, each once in a round."""
        near = [peer for peer in want.holders if peer in order]
        able = [peer for peer in dict.fromkeys((*near, *order)) if peer not in want.refused]
        fresh = [peer for peer in able if peer not in want.asked]
        if able and not fresh and self._limits.tries is not None:
            want.asked = {}
            fresh = [peer for peer in able if peer != want.peer] or able
        return fresh[0] if fresh else None

    def _make_batch(self, peer: PeerId, items: tuple[K, ...]) -> Batch[K]:
        self._request += 1
        for item in items:
            self._wants[item].request = self._request
        self._requests[self._request] = (peer, items)
        if len(self._requests) > _REQUESTS:
            del self._requests[next(iter(self._requests))]
        return Batch(peer, self._request, items)

    def _give_up(self, item: K, want: _Want, next_source: PeerId | None) -> GivenUp[K]:
        """Stop asking for an item. Forget it if nothing depends on it: the peer may have made it up."""
        last, want.peer = want.peer, None
        self._in_flight -= last is not None
        is_silent = next_source is not None if self._limits.tries is not None else want.asked != want.refused
        if not want.is_needed:
            del self._wants[item]
        return GivenUp(item, last, len(want.asked), Reason.TIMEOUT if is_silent else Reason.NOT_HELD)
