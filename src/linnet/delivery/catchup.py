"""Catching up: the history of a topic from a storage node, then on with what comes, without a seam.

What this node has of it comes first, as far as it begins at the beginning; all of it, if nobody else can
be asked.

What arrives live meanwhile waits. When the storage node has no more, what waited follows, less
what history had already; a hole between the two is asked for once more, then named.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from linnet.core.effects import CancelTimer, Hold, Release, Send, SetTimer
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.delivery.chain import ChainKey
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.items import CaughtUp, Item, Missed
from linnet.delivery.messages import History, HistoryPage
from linnet.event.event import Verified

CatchUpEffect = Send[History] | Hold | Release | SetTimer[Tick] | CancelTimer[Tick]

OWNER = "catchup"
_SEAM_TRIES = 5
"""Times that history is asked for again when live events do not join on to it."""
_SEAM_PAUSE = 0.5
_NONE_PAUSE = 1.0
"""Seconds that a storage node may still appear after word came that there is none."""


class CatchUp:
    """One subscription on its way through history."""

    def __init__(
        self,
        subscription: int,
        topic: TopicId,
        since: float,
        config: DeliveryConfig,
        links: Container[PeerId],
        own: PeerId | None = None,
        own_chain: ChainKey = b"",
    ) -> None:
        """With `own`, this node's own log is read as well; it answers as a storage node would."""
        self._own = own
        self._own_chain = own_chain
        self._is_own = False
        """Whether the pages come from our own log."""
        self._failure: Reason | None = None
        """Why nobody else could be asked, if our own log is read for that reason."""
        self._is_alone = False
        self._topic = topic
        self._links = links
        self._since_ms = int(since * 1000)
        self._config = config
        self._tick = Tick(OWNER, "ask", topic + subscription.to_bytes(8, "big"))
        self._purpose = f"history {topic.hex()[:16]} {subscription}"
        self._request = subscription
        self._storage: dict[PeerId, tuple[str, ...]] = {}
        self._tried: dict[PeerId, None] = {}
        self._source: PeerId | None = None
        self._after: int | None = None
        self._next: dict[ChainKey, int] = {}
        self._waiting: list[Verified] = []
        self._waiting_events = 0
        self._overflowed = False
        self._seam_tries = 0
        self._begins_at: float | None = None
        self._evicted = False
        self._paused = False
        """Whether the next page waits for the application."""
        self._at_seam = False
        """Whether all pages were read, and history is asked once more for what joins on."""
        self.over = False

    def begin(self, storage: Iterable[Contact], is_alone: bool = False) -> list[CatchUpEffect]:
        """Find somebody who has the history; whoever comes to be known later will do as well.

        If it is known that nobody will, our own log is all there is.
        """
        self._storage = {contact.peer: contact.hints for contact in storage}
        self._is_alone = is_alone
        if self._own is None or self._own in self._storage:
            return self._turn() or [self._timeout()]
        self._failure = Reason.NO_STORAGE if is_alone and not self._storage else None
        return self._look_here()

    def storage(self, nodes: Iterable[Contact]) -> list[CatchUpEffect]:
        """These nodes keep the topic."""
        self._storage = {contact.peer: contact.hints for contact in nodes}
        if self._source is not None:
            return []
        # Word that there are none may be older than one that comes just now.
        return self._turn() or ([] if self._storage else [SetTimer(_NONE_PAUSE, self._tick)])

    def alone(self) -> list[CatchUpEffect]:
        """There is nobody to ask."""
        self._is_alone = True
        if self._source is not None or self._own is None:
            return []
        self._failure = Reason.NO_STORAGE
        return self._look_here()

    def _look_here(self) -> list[CatchUpEffect]:
        """Read our own log."""
        self._source, self._is_own, self._after = self._own, True, None
        return self._ask()

    def up(self, peer: PeerId) -> list[CatchUpEffect]:
        """A link is open: ask, if it leads to the one that we wait for."""
        return self._ask() if peer == self._source and not self._paused else []

    @property
    def reached(self) -> dict[ChainKey, int]:
        """The number in each chain below which everything was handed over or named as missed."""
        return self._next

    def wants(self, peer: PeerId, page: HistoryPage) -> bool:
        """Whether this page is an answer to what was asked."""
        return peer == self._source and page.request == self._request and not self.over

    def live(self, verified: Verified) -> None:
        """Let a unit wait that came while history is on its way."""
        self._waiting_events += len(verified.events)
        if self._waiting_events > self._config.buffer_items:
            # The storage node gets these too: they will be in a later page.
            self._overflowed = True
            self._waiting.clear()
            self._waiting_events = 0
        else:
            self._waiting.append(verified)

    def turn_page(
        self, page: HistoryPage, units: Iterable[Verified], room: bool
    ) -> tuple[list[CatchUpEffect], list[Item]]:
        """Take a page in; gives the items to hand over, and asks for the next page if there is room."""
        items: list[Item] = []
        for verified in units:
            if not self._is_own or self._failure is not None or self._is_whole(verified):
                items += self._join(verified)
        self._after = page.after
        self._begins_at = None if page.begins_ms is None else page.begins_ms / 1000
        self._evicted = self._evicted or page.evicted
        if not page.done:
            self._paused = not room
            return (self._ask() if room else [CancelTimer(self._tick)]), items
        if self._is_own:
            effects, rest = self._looked_here()
            return effects, [*items, *rest]
        if page.reason is not None:
            effects, rest = self._pass_over(page.reason)
            return effects, [*items, *rest]
        if self._overflowed or (self._holes() and self._seam_tries < _SEAM_TRIES):
            self._overflowed = False
            self._seam_tries += 1
            self._at_seam = True
            return [SetTimer(_SEAM_PAUSE, self._tick)], items
        effects, rest = self.finish(None)
        return effects, [*items, *rest]

    def _is_whole(self, verified: Verified) -> bool:
        """Whether nothing can come before a unit of our own log, whatever others have of its chain."""
        unit = verified.unit
        key = unit.author + unit.device
        if self._since_ms:
            return key == self._own_chain
        return unit.seq is not None and unit.seq <= self._next.get(key, 0)

    def _looked_here(self) -> tuple[list[CatchUpEffect], list[Item]]:
        """Our own log is read: on to others, or to the end if that was for want of them."""
        self._source, self._is_own = None, False
        if self._failure is not None:
            return self.finish(self._failure)
        again = self._turn()
        if again:
            return again, []
        if self._is_alone:
            return self._without_others(Reason.NO_STORAGE)
        return [self._timeout()], []

    def _without_others(self, reason: Reason) -> tuple[list[CatchUpEffect], list[Item]]:
        """Nobody else has helped: what our own log holds must do."""
        if self._own is None or self._own in self._storage:
            return self.finish(reason)
        self._failure = reason
        return self._look_here(), []

    def resume(self) -> list[CatchUpEffect]:
        """There is room again: go on with the next page."""
        if not self._paused or self.over:
            return []
        self._paused = False
        return self._ask()

    def fired(self) -> tuple[list[CatchUpEffect], list[Item]]:
        """It took too long, or it is time to ask again."""
        if self._at_seam:
            return self._ask(), []
        if self._source is None:
            return self._without_others(Reason.NO_STORAGE)
        if self._is_own:
            return self._looked_here()
        return self._pass_over(Reason.TIMEOUT)

    def _pass_over(self, reason: Reason) -> tuple[list[CatchUpEffect], list[Item]]:
        """Leave a storage node that does not help for the next one, if there is one."""
        effects: list[CatchUpEffect] = []
        if self._source is not None:
            effects.append(Release(self._source, self._purpose))
        self._source = None
        again = self._turn()
        if again:
            return [*effects, *again], []
        last, items = self._without_others(reason)
        return [*effects, *last], items

    def finish(self, reason: Reason | None) -> tuple[list[CatchUpEffect], list[Item]]:
        """Go live with what waited."""
        self.over = True
        items: list[Item] = []
        for verified in _by_number(self._waiting):
            items += self._join(verified)
        self._waiting.clear()
        items.append(CaughtUp(self._begins_at, self._evicted, reason))
        effects: list[CatchUpEffect] = [CancelTimer(self._tick)]
        if self._source is not None and not self._is_own:
            effects.append(Release(self._source, self._purpose))
        return effects, items

    def _turn(self) -> list[CatchUpEffect]:
        """Go to the next storage node that was not tried."""
        source = next((peer for peer in self._storage if peer not in self._tried), None)
        if source is None:
            return []
        self._tried[source] = None
        self._source = source
        self._after = None
        return [Hold(source, self._storage[source], self._purpose), *self._ask()]

    def _ask(self) -> list[CatchUpEffect]:
        """Ask for the next page, now or when the link is up; not for ever in either case."""
        self._at_seam = False
        if self._source is None or self._source not in self._links:
            return [self._timeout()]
        request = History(self._topic, self._request, self._after, self._since_ms)
        return [Send(self._source, request), self._timeout()]

    def _timeout(self) -> SetTimer[Tick]:
        return SetTimer(self._config.history_timeout, self._tick)

    def _holes(self) -> bool:
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
        """The events of a unit that follow what was handed over, behind the hole before them if any."""
        unit = verified.unit
        if unit.seq is None:
            return list(verified.events)
        key = unit.author + unit.device
        due = self._next.get(key, unit.seq)
        end = unit.seq + len(unit.tails)
        if end <= due:
            return []
        self._next[key] = end
        items: list[Item] = []
        if unit.seq > due:
            items.append(Missed(self._topic, unit.author, unit.device, due, unit.seq - 1, Reason.NOT_HELD))
        return [*items, *(event for event in verified.events if event.seq is not None and event.seq >= due)]


def _by_number(units: list[Verified]) -> list[Verified]:
    """Each chain in its own order; a subscription that did not ask for order may have them otherwise."""
    return sorted(units, key=lambda verified: verified.unit.seq or 0)
