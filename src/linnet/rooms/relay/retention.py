"""How long a relay keeps what is said: as long as the room's state says, alike at all of its relays.

Operations on the room's keys have a rule of their own (`group_keeping`); the same timer looks after them.
"""

from __future__ import annotations

from linnet.core.ids import TopicId
from linnet.core.timers import Timer
from linnet.machine.outbox import Outbox
from linnet.rooms.access.control_dag import ControlDag
from linnet.rooms.access.facts import RETENTION_KEY
from linnet.rooms.content import Retention
from linnet.rooms.relay.chunks import Chunks
from linnet.rooms.relay.event_cache import Cache
from linnet.rooms.relay.group_keeping import GroupKeeping

_MARGIN = 0.001
"""Seconds past the end of an event's time when it is looked for: it is kept to its very end."""


class ExpiryDue(Timer, frozen=True, gc=False):
    """The oldest that a relay keeps of a room may have been kept long enough."""

    room: TopicId


class Keeping:
    """The lifetime of what one room has here."""

    def __init__(
        self,
        room: TopicId,
        dag: ControlDag,
        cache: Cache,
        chunks: Chunks,
        groups: GroupKeeping,
        default: float,
        out: Outbox,
    ) -> None:
        self._timer = ExpiryDue(room)
        self._out = out
        self._dag = dag
        self._cache = cache
        self._chunks = chunks
        self.groups = groups
        self._default = default
        self._due: float | None = None
        """When the timer fires."""

    @property
    def lifetime(self) -> float | None:
        """Seconds that something is kept; None: until capacity asks for its place."""
        fact = self._dag.view().get(RETENTION_KEY)
        if fact is None or not isinstance(fact.content, Retention):
            return self._default
        longest = fact.content.max_lifetime_ms
        return None if longest is None else longest / 1000

    def since(self, now: float) -> float:
        """No message or piece that came before this is given to anyone, removed or not."""
        lifetime = self.lifetime
        return 0.0 if lifetime is None else now - lifetime

    def expire_events(self, now: float) -> None:
        """Remove what was kept long enough, a bounded part of it at once."""
        since = self.since(now)
        self._cache.expire_before(since)
        self._chunks.expire_before(since)
        self.groups.release_events(now)

    def handle_expiry(self, now: float) -> None:
        """Remove what was kept long enough, since the timer has run out."""
        self._due = None
        self.expire_events(now)

    def arm_timer(self, now: float) -> None:
        """Look again when the oldest has been kept long enough; at once if a look did not remove all."""
        dues = [] if (group := self.groups.due()) is None else [group + _MARGIN]
        lifetime = self.lifetime
        if lifetime is not None:
            oldest = (self._cache.oldest, self._chunks.oldest)
            dues += [at + lifetime + _MARGIN for at in oldest if at is not None]
        due = min(dues, default=None)
        if due is None or (self._due is not None and self._due <= due):
            return
        self._due = max(due, now)
        self._out.set_timer(self._due - now, self._timer)

    def stop(self) -> None:
        """Look no more: nothing is kept any longer."""
        if self._due is not None:
            self._due = None
            self._out.cancel_timer(self._timer)
