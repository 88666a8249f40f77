"""Catching up: reads history of a topic from a storage node, then goes on with live events, without a gap.

The history in this node's own log comes first, as far as it starts at the beginning of each chain; all of it
is read if nobody else can be asked.

Live events wait meanwhile. When the storage node has no more history, they follow, without those that history
had already. A hole between the two is asked for once more, then reported as missed.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.timers import TopicTimer
from linnet.delivery.chain import ChainKey
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.items import CaughtUp, Item, Missed
from linnet.delivery.messages import History, HistoryPage
from linnet.event.event import Verified
from linnet.machine.outbox import Outbox

_SEAM_TRIES = 5
"""How often history is asked for again when the live events do not join on to it."""
_SEAM_PAUSE = 0.5
_NONE_PAUSE = 1.0
"""Seconds in which a storage node may still appear after a tracker said that there is none."""


class HistoryDue(TopicTimer, frozen=True, gc=False):
    """A source took too long to send history, or history is to be asked for again."""

    subscription: int


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
    ) -> None:
        """With `own`, this node's own log is read as well, as if it were a storage node."""
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
        if self._own is None or self._own in self._storage:
            if not self._turn_to_next():
                self._wait()
            return
        self._failure = Reason.NO_STORAGE if is_alone and not self._storage else None
        self._read_own_log()

    def set_storage(self, nodes: Iterable[Contact]) -> None:
        """Replace the known storage nodes of the topic."""
        self._storage = {contact.peer: contact.hints for contact in nodes}
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
                items += self._join(verified)
        self._after = page.after
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
        elif self._overflowed or (self._has_holes() and self._seam_tries < _SEAM_TRIES):
            self._overflowed = False
            self._seam_tries += 1
            self._at_seam = True
            self._out.set_timer(_SEAM_PAUSE, self._timer)
        else:
            items += self.finish(None)
        return items

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
        return [] if self._turn_to_next() else self._do_without_others(reason)

    def finish(self, reason: Reason | None) -> list[Item]:
        """Finish history and go live; return the items that were held back."""
        self.over = True
        items: list[Item] = []
        for verified in _by_number(self._waiting):
            items += self._join(verified)
        self._waiting.clear()
        items += [missed for missed, is_filled in self._damaged.items() if not is_filled]
        items.append(CaughtUp(self._begins_at, self._evicted, reason))
        self._out.cancel_timer(self._timer)
        if self._source is not None and not self._is_own:
            self._out.release(self._source, self._purpose)
        return items

    def _turn_to_next(self) -> bool:
        """Turn to the next untried storage node; return whether there is one."""
        source = next((peer for peer in self._storage if peer not in self._tried), None)
        if source is None:
            return False
        self._tried[source] = None
        self._source = source
        self._after = None
        self._out.hold(source, self._storage[source], self._purpose)
        self._ask()
        return True

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
