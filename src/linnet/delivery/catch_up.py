"""Catching up: reads history of a topic from storage nodes, then goes on with live events, without a gap.

If two or more storage nodes are known, all are asked first how far they keep each chain, and sign the answer.
The one that keeps most is read. Another one is read as well if it keeps anything more: so one honest node
among many that hide events is enough. If they still differ after a while, the application is told. Where all
agree, this costs a few messages, and nothing is read twice.

The history in this node's own log comes first, as far as it starts at the beginning of each chain; all of it
is read if nobody else can be asked.

Live events wait meanwhile. When the storage node has no more history, they follow, without those that history
had already. A hole between the two is asked for once more, then reported as missed.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from enum import Enum

from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.timers import TopicTimer
from linnet.delivery.chain import ChainKey
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.items import CaughtUp, Item, Missed
from linnet.delivery.messages import AskKept, History, HistoryPage, Kept
from linnet.delivery.storage_ends import Ends
from linnet.event.event import Verified
from linnet.machine.outbox import Outbox

_SEAM_TRIES = 5
"""How often history is asked for again when the live events do not join on to it."""
_SEAM_PAUSE = 0.5
_NONE_PAUSE = 1.0
"""Seconds in which a storage node may still appear after a tracker said that there is none."""


_ENDS_PAUSE = 1.0
"""Seconds in which storage nodes should say how far they keep the chains, before one of them is read."""
MOST_ASKED = 32
"""The most storage nodes that one subscription asks how far they keep the chains."""
_AGAIN_PAUSE = 10.0
"""Seconds after which storage nodes that keep less are asked again: they may just not have had it yet. Nodes
that lost the end of a chain learn of it within `heads_period`."""


class HistoryDue(TopicTimer, frozen=True, gc=False):
    """A source took too long to send history, or history is to be asked for again."""

    subscription: int


class EndsDue(TopicTimer, frozen=True, gc=False):
    """The time is up in which storage nodes could say how far they keep the chains."""

    subscription: int


class _Step(Enum):
    """What the comparison of storage nodes waits for."""

    GATHER = "their first answers, before one of them is read"
    READ = "the end of reading"
    LATE = "the answers of those that were slow"
    PAUSE = "a while, before those that keep less are asked again"
    AGAIN = "their second answers"
    OVER = "nothing"


class CatchUp:
    """The state of one subscription that reads history."""

    def __init__(
        self,
        subscription: int,
        topic: TopicId,
        since: float,
        config: DeliveryConfig,
        links: Container[PeerId],
        out: Outbox,
        own: PeerId | None = None,
        own_chain: ChainKey = b"",
        keeping: Container[PeerId] = (),
    ) -> None:
        """With `own`, this node's own log is read as well, as if it were a storage node.

        `keeping` are the peers that sign what they keep; others, of older versions, are read only if need be.
        """
        self._keeping = keeping
        self._ends: Ends | None = None
        """How far storage nodes keep the chains; None while there are not two of them."""
        self._ends_timer = EndsDue(topic, subscription)
        self._ends_purpose = f"ends {topic.hex()[:16]} {subscription}"
        self._ends_step = _Step.GATHER
        self._has_read = False
        """Whether any storage node was read to its end."""
        self._best: tuple[int, PeerId, int | None] | None = None
        """How many events the storage node brought that brought most, and the end of its log."""
        self._brought = 0
        self._aside: dict[ChainKey, list[Verified]] = {}
        """Units behind a hole that another storage node says it can fill."""
        self._aside_events = 0
        self._out = out
        self._own = own
        self._own_chain = own_chain
        self._is_own = False
        """Whether the pages come from our own log."""
        self._failure: Reason | None = None
        """Why no other source was available, if our own log is read for that reason."""
        self._is_alone = False
        self._topic = topic
        self._links = links
        self._since_ms = int(since * 1000)
        self._config = config
        self._timer = HistoryDue(topic, subscription)
        self._purpose = f"history {topic.hex()[:16]} {subscription}"
        self._request = subscription
        self._storage: dict[PeerId, tuple[str, ...]] = {}
        self._tried: dict[PeerId, None] = {}
        self._source: PeerId | None = None
        self._after: int | None = None
        self._next: dict[ChainKey, int] = {}
        self._waiting: list[Verified] = []
        self._waiting_events = 0
        self._damaged: dict[Missed, bool] = {}
        """Ranges that are damaged in our own log, and whether other nodes have supplied them since."""
        self._overflowed = False
        self._seam_tries = 0
        self._begins_at: float | None = None
        self._evicted = False
        self._paused = False
        """Whether the next page waits for the application to make room."""
        self._at_seam = False
        """Whether all pages were read and history is asked once more for the events that join on."""
        self.over = False

    def begin(self, storage: Iterable[Contact], is_alone: bool = False) -> None:
        """Begin to read history from our own log or a storage node; nodes that are found later serve as well.

        If it is known that there will be no storage node, only our own log is read.
        """
        self._storage = {contact.peer: contact.hints for contact in storage}
        self._is_alone = is_alone
        self._ask_ends()
        if self._own is None or self._own in self._storage:
            if not self._turn_to_next():
                self._wait()
            return
        self._failure = Reason.NO_STORAGE if is_alone and not self._storage else None
        self._read_own_log()

    def set_storage(self, nodes: Iterable[Contact]) -> None:
        """Replace the known storage nodes of the topic."""
        self._storage = {contact.peer: contact.hints for contact in nodes}
        self._ask_ends()
        if self._source is not None:
            return
        if not self._turn_to_next() and not self._storage:
            # The word that there are none may be older than a storage node that appears just now.
            self._out.set_timer(_NONE_PAUSE, self._timer)

    def note_alone(self) -> None:
        """Stop waiting for storage nodes and use our own log: there is no other node to ask."""
        self._is_alone = True
        if self._source is None and self._own is not None:
            self._failure = Reason.NO_STORAGE
            self._read_own_log()

    def _read_own_log(self) -> None:
        self._source, self._is_own, self._after = self._own, True, None
        self._ask()

    def handle_link_up(self, peer: PeerId) -> None:
        """Ask the storage node that we wait for, if this link leads to it."""
        if self._ends is not None and peer in self._ends.awaited:
            self._ask_end(self._ends, peer)
            self._stop_gathering(self._ends)
        if peer == self._source and not self._paused:
            self._ask()

    @property
    def reached(self) -> dict[ChainKey, int]:
        """The number in each chain below which everything was handed over or reported as missed."""
        return self._next

    def is_answer(self, peer: PeerId, page: HistoryPage) -> bool:
        """Return whether this page answers our request."""
        return peer == self._source and page.request == self._request and not self.over

    def hold_back(self, verified: Verified) -> None:
        """Hold back a live unit until history was read."""
        self._waiting_events += len(verified.events)
        if self._waiting_events > self._config.buffer_items:
            # The storage node gets these events too: they will be in a later page.
            self._overflowed = True
            self._waiting.clear()
            self._waiting_events = 0
        else:
            self._waiting.append(verified)

    def note_damage(self, missed: Missed) -> None:
        """Note that a range is damaged in our own log; it is reported at the end, unless others supply it."""
        self._damaged.setdefault(missed, False)

    def take_page(self, page: HistoryPage, units: Iterable[Verified], room: bool) -> list[Item]:
        """Take in a page and ask for the next one if there is room; return the items to hand over."""
        items: list[Item] = []
        for verified in units:
            if not self._is_own or self._failure is not None or self._is_whole(verified):
                items += self._take_unit(verified)
        self._after = page.after
        if not self._has_read or page.begins_ms is not None:
            self._begins_at = None if page.begins_ms is None else page.begins_ms / 1000
        self._evicted = self._evicted or page.evicted
        if not page.done:
            self._paused = not room
            if room:
                self._ask()
            else:
                self._out.cancel_timer(self._timer)
        elif self._is_own:
            items += self._leave_own_log()
        elif page.reason is not None:
            items += self._pass_over(page.reason)
        else:
            items += self._end_source()
        return items

    def _end_source(self) -> list[Item]:
        """Read another storage node if it keeps more, or go live; return the items to hand over."""
        self._has_read = True
        items: list[Item] = []
        ends = self._ends
        if ends is not None and self._ends_step is not _Step.OVER:
            if self._source is not None and (self._best is None or self._brought > self._best[0]):
                self._best = self._brought, self._source, self._after
            if self._turn_to_next():
                return items
            self._out.cancel_timer(self._timer)
            if self._ends_step is _Step.READ and ends.awaited:
                self._ends_step = _Step.LATE
                self._out.set_timer(self._config.history_timeout, self._ends_timer)
                return items
            items += self._hand_aside()
            if self._ends_step in (_Step.READ, _Step.LATE) and ends.judge(self._next):
                self._ends_step = _Step.PAUSE
                self._out.set_timer(_AGAIN_PAUSE, self._ends_timer)
                return items
            items += self._end_comparing(ends)
        if self._source is None and self._best is not None:
            # Nothing more came of the last one: the seam is up to the one that brought most.
            _, self._source, self._after = self._best
            self._out.hold(self._source, self._storage.get(self._source, ()), self._purpose)
        if self._overflowed or (self._has_holes() and self._seam_tries < _SEAM_TRIES):
            self._overflowed = False
            self._seam_tries += 1
            self._at_seam = True
            self._out.set_timer(_SEAM_PAUSE, self._timer)
            return items
        return [*items, *self.finish(None)]

    # Comparing storage nodes.

    def _ask_ends(self) -> None:
        """Ask all storage nodes how far they keep the chains, if there are two."""
        others = [peer for peer in self._storage if peer != self._own]
        if len(others) < 2 or len(others) < len(self._storage) or self._ends_step is _Step.OVER or self.over:
            return
        # Of who is linked, those of older versions say nothing.
        able = [peer for peer in others if peer in self._keeping or peer not in self._links]
        if self._ends is None:
            if not able or self._has_read or (self._source is not None and not self._is_own):
                return  # Nobody can say, or one of them is being read: the others were found too late.
            self._ends = Ends(self._config.max_chains)
            self._out.set_timer(_ENDS_PAUSE, self._ends_timer)
        for peer in able:
            if peer not in self._ends.asked and len(self._ends.asked) < MOST_ASKED:
                self._ends.asked[peer] = self._ends.awaited[peer] = None
                self._out.hold(peer, self._storage[peer], self._ends_purpose)
                self._ask_end(self._ends, peer)

    def _ask_end(self, ends: Ends, peer: PeerId) -> None:
        if peer not in self._links:
            return
        if peer in self._keeping:
            self._out.send(peer, AskKept(self._topic, self._request, self._since_ms))
        else:
            ends.awaited.pop(peer, None)

    def take_kept(self, peer: PeerId, kept: Kept) -> list[Item]:
        """Take in a storage node's checked statement of how far it keeps the chains."""
        ends = self._ends
        is_answer = ends is not None and peer in ends.awaited and kept.since_ms == self._since_ms
        if ends is None or not is_answer or self.over or not ends.take(peer, kept) or ends.awaited:
            return []
        if self._ends_step is _Step.GATHER:
            self._stop_gathering(ends)
        elif self._ends_step in (_Step.LATE, _Step.AGAIN):
            self._out.cancel_timer(self._ends_timer)
            return self._end_source()
        return []

    def _stop_gathering(self, ends: Ends, is_late: bool = False) -> None:
        """Begin to read, once all storage nodes have answered or it is too late."""
        if self._ends_step is not _Step.GATHER or (ends.awaited and not is_late):
            return
        self._ends_step = _Step.READ
        if not is_late:
            self._out.cancel_timer(self._ends_timer)
        if self._source is None and not self._turn_to_next():
            self._wait()

    def handle_ends_due(self) -> list[Item]:
        """Go on without the answers that are missing."""
        ends = self._ends
        if ends is None or self.over:
            return []
        if self._ends_step is _Step.GATHER:
            self._stop_gathering(ends, is_late=True)
        elif self._ends_step is _Step.PAUSE:
            self._ends_step = _Step.AGAIN
            for peer in ends.lacking():
                ends.awaited[peer] = None
                self._ask_end(ends, peer)
            self._out.set_timer(self._config.history_timeout, self._ends_timer)
        elif self._ends_step in (_Step.LATE, _Step.AGAIN):
            ends.awaited.clear()
            return self._end_source()
        return []

    def _end_comparing(self, ends: Ends) -> list[Item]:
        """End the comparison; return what to tell of it."""
        self._ends_step = _Step.OVER
        self._out.cancel_timer(self._ends_timer)
        if self._best is not None and self._best[1] in self._links and self._best[1] in self._keeping:
            # Publishers may hold another statement of theirs against it.
            for peer in ends.lacking():
                if peer != self._best[1]:
                    self._out.send(self._best[1], ends.first_pages[peer])
        for peer in ends.asked:
            self._out.release(peer, self._ends_purpose)
        return list(ends.differences(self._topic))

    def _unread(self) -> list[PeerId]:
        """Return the storage nodes that have answered and were not read."""
        ends = self._ends
        return [] if ends is None else [peer for peer in ends.stated if peer not in self._tried]

    def _take_unit(self, verified: Verified) -> list[Item]:
        """Return the items of a unit, or put it aside if another storage node says it has what is missing."""
        unit, ends = verified.unit, self._ends
        if ends is None or self._is_own or unit.seq is None:
            return self._join(verified)
        key, end = unit.author + unit.device, unit.seq + len(unit.tails)
        self._brought += len(unit.tails)
        ends.shown[key] = max(ends.shown.get(key, 0), end)
        unread = self._unread()
        due = self._next.get(key)
        if due is None and not self._since_ms:
            due = ends.first_of(key, unread)
        if due is not None and unit.seq > due and ends.covers(key, due, unread):
            self._aside.setdefault(key, []).append(verified)
            self._aside_events += len(unit.tails)
            return self._hand_aside() if self._aside_events > self._config.buffer_items else []
        items = self._join(verified)
        waiting = self._aside.get(key)
        if waiting:
            waiting.sort(key=lambda each: each.unit.seq or 0)
            while waiting and (waiting[0].unit.seq or 0) <= self._next[key]:
                self._aside_events -= len(waiting[0].unit.tails)
                items += self._join(waiting.pop(0))
            if not waiting:
                del self._aside[key]
        return items

    def _hand_aside(self) -> list[Item]:
        """Hand over what was put aside: nobody has what is missing before it, or it is too much."""
        aside, self._aside, self._aside_events = self._aside, {}, 0
        return [item for units in aside.values() for unit in _by_number(units) for item in self._join(unit)]

    def _is_whole(self, verified: Verified) -> bool:
        """Return whether no other node can have an earlier, missing part of this unit's chain."""
        unit = verified.unit
        key = unit.author + unit.device
        if self._since_ms:
            return key == self._own_chain
        return unit.seq is not None and unit.seq <= self._next.get(key, 0)

    def _leave_own_log(self) -> list[Item]:
        """Turn to storage nodes after our own log, or finish if the log was read because there are none."""
        self._source, self._is_own = None, False
        if self._failure is not None:
            return self.finish(self._failure)
        if self._turn_to_next():
            return []
        if self._is_alone:
            return self._do_without_others(Reason.NO_STORAGE)
        self._wait()
        return []

    def _do_without_others(self, reason: Reason) -> list[Item]:
        """Fall back on our own log, since no other node helped; finish if it was read already."""
        if self._own is None or self._own in self._storage:
            return self.finish(reason)
        self._failure = reason
        self._read_own_log()
        return []

    def resume(self) -> None:
        """Ask for the next page, since there is room again."""
        if self._paused and not self.over:
            self._paused = False
            self._ask()

    def handle_timeout(self) -> list[Item]:
        """Ask again or turn to another source; return the items to hand over."""
        if self._at_seam:
            self._ask()
            return []
        if self._ends is not None and self._ends_step is not _Step.OVER and self._source is None:
            if self._ends_step is _Step.GATHER:
                return []
            if self._has_read:
                return self._end_source()
        if self._source is None:
            return self._do_without_others(Reason.NO_STORAGE)
        if self._is_own:
            return self._leave_own_log()
        return self._pass_over(Reason.TIMEOUT)

    def _pass_over(self, reason: Reason) -> list[Item]:
        """Leave a storage node that does not help, and turn to the next one if there is one."""
        if self._source is not None:
            self._out.release(self._source, self._purpose)
        self._source = None
        if self._has_read and self._ends is not None and self._ends_step is not _Step.OVER:
            return self._end_source()
        return [] if self._turn_to_next() else self._do_without_others(reason)

    def finish(self, reason: Reason | None) -> list[Item]:
        """Finish history and go live; return the items that were held back."""
        self.over = True
        items: list[Item] = []
        for verified in _by_number(self._waiting):
            items += self._join(verified)
        self._waiting.clear()
        items += self._hand_aside()
        if self._ends is not None and self._ends_step is not _Step.OVER:
            self._end_comparing(self._ends)
        items += [missed for missed, is_filled in self._damaged.items() if not is_filled]
        items.append(CaughtUp(self._begins_at, self._evicted, reason))
        self._out.cancel_timer(self._timer)
        if self._source is not None and not self._is_own:
            self._out.release(self._source, self._purpose)
        return items

    def _turn_to_next(self) -> bool:
        """Turn to the next untried storage node; return whether there is one, or will be at once."""
        if self._ends is not None and self._ends_step is _Step.GATHER:
            return True
        source = self._next_source()
        if source is None:
            return False
        if self._source is not None:
            self._out.release(self._source, self._purpose)
        self._tried[source] = None
        self._brought = 0
        self._source = source
        self._after = None
        self._out.hold(source, self._storage[source], self._purpose)
        self._ask()
        return True

    def _next_source(self) -> PeerId | None:
        """Return the untried storage node that keeps most of what was not handed over yet."""
        untried = [peer for peer in self._storage if peer not in self._tried]
        ends = self._ends
        if ends is None:
            return next(iter(untried), None)
        better = [peer for peer in untried if ends.has_more(peer, self._next) or self._fills_hole(ends, peer)]
        if better:
            return max(better, key=ends.count)
        # If nobody has said anything, any will do. Those of older versions say nothing: only reading them
        # shows whether they have more.
        older = (peer for peer in untried if peer in self._links and peer not in self._keeping)
        return next(older, None) if self._has_read else next(iter(untried), None)

    def _fills_hole(self, ends: Ends, peer: PeerId) -> bool:
        """Return whether a storage node says that it has what is missing before units that were put aside."""
        for key, units in self._aside.items():
            first = min(unit.unit.seq or 0 for unit in units)
            if ends.covers(key, self._next.get(key, first - 1), (peer,)):
                return True
        return False

    def _ask(self) -> None:
        """Ask for the next page, now or when the link is up, and limit the wait in both cases."""
        self._at_seam = False
        if self._source is not None and self._source in self._links:
            request = History(self._topic, self._request, self._after, self._since_ms)
            self._out.send(self._source, request)
        self._wait()

    def _wait(self) -> None:
        self._out.set_timer(self._config.history_timeout, self._timer)

    def _has_holes(self) -> bool:
        after = dict(self._next)
        for verified in _by_number(self._waiting):
            unit = verified.unit
            if unit.seq is None:
                continue
            key = unit.author + unit.device
            if unit.seq > after.get(key, unit.seq):
                return True
            after[key] = unit.seq + len(unit.tails)
        return False

    def _join(self, verified: Verified) -> list[Item]:
        """Return the events of a unit that were not handed over yet, after the hole before them, if any."""
        unit = verified.unit
        if unit.seq is None:
            return list(verified.events)
        key = unit.author + unit.device
        due = self._next.get(key, unit.seq)
        end = unit.seq + len(unit.tails)
        if end <= due:
            return []
        self._next[key] = end
        for missed in self._damaged:
            is_same = missed.author == unit.author and missed.device == unit.device
            if is_same and due <= missed.first and unit.seq <= missed.first and missed.last < end:
                self._damaged[missed] = True
        items: list[Item] = []
        if unit.seq > due:
            items.append(Missed(self._topic, unit.author, unit.device, due, unit.seq - 1, Reason.NOT_HELD))
        return [*items, *(event for event in verified.events if event.seq is not None and event.seq >= due)]


def _by_number(units: list[Verified]) -> list[Verified]:
    """Sort units so that each chain is in order; a subscription without order may have them mixed."""
    return sorted(units, key=lambda verified: verified.unit.seq or 0)
