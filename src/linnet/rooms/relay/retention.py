"""How long a relay keeps what is said: as long as the room's state says, alike at all of its relays.

Operations on the room's keys have a rule of their own (`group_keeping`); the same timer looks after them.
"""

from __future__ import annotations

from linnet.core.effects import CancelTimer, SetTimer
from linnet.core.ids import TopicId
from linnet.core.timers import Tick
from linnet.rooms.access.control_dag import ControlDag
from linnet.rooms.access.facts import RETENTION_KEY
from linnet.rooms.content import Retention
from linnet.rooms.relay.cache import Cache
from linnet.rooms.relay.chunks import Chunks
from linnet.rooms.relay.group_keeping import GroupKeeping
from linnet.trace.records import Record

OWNER = "relay.retention"
_MARGIN = 0.001
"""Seconds past the end of an event's time when it is looked for: it is kept to its very end."""

RetentionEffect = SetTimer[Tick] | CancelTimer[Tick] | Record


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
    ) -> None:
        self._tick = Tick(OWNER, "expire", room)
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

    def expire(self, now: float) -> list[Record]:
        """Remove what was kept long enough, a bounded part of it at once."""
        since = self.since(now)
        return [*self._cache.expire(since), *self._chunks.expire(since), *self.groups.release(now)]

    def fired(self, now: float) -> list[Record]:
        """It is time to look."""
        self._due = None
        return self.expire(now)

    def arm(self, now: float) -> list[RetentionEffect]:
        """Look again when the oldest has been kept long enough; at once if a look did not remove all."""
        dues = [] if (group := self.groups.due()) is None else [group + _MARGIN]
        lifetime = self.lifetime
        if lifetime is not None:
            oldest = (self._cache.oldest, self._chunks.oldest)
            dues += [at + lifetime + _MARGIN for at in oldest if at is not None]
        due = min(dues, default=None)
        if due is None:
            return []
        if self._due is not None and self._due <= due:
            return []
        self._due = max(due, now)
        return [SetTimer(self._due - now, self._tick)]

    def stop(self) -> list[RetentionEffect]:
        """Nothing is kept any more."""
        due, self._due = self._due, None
        return [] if due is None else [CancelTimer(self._tick)]
