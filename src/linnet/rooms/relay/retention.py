"""How long a relay keeps what is said: as long as the room's state says, alike at all of its relays.

Operations on the room's keys have a rule of their own: they are kept until every device that needs them has
them. The room's retention does not count for them, since a device that was away cannot read what follows
without them; nor are they let go as soon as all have read them, since who crashed may ask again. Waited for
are the devices of joined people that take part in the keys, and people of whom no device does so yet. Nobody
is waited for without end: not past a time, and not for more than the newest so many; who has missed more has
to be added to the keys anew. Nothing of what an operation says is looked at.
"""

from __future__ import annotations

from linnet.core.ids import AuthorId, DeviceId, TopicId
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.event.event import Event
from linnet.machine.outbox import Outbox
from linnet.rooms.access.control_dag import ControlDag
from linnet.rooms.access.facts import RETENTION_KEY
from linnet.rooms.access.view import View
from linnet.rooms.config import RelayLimits
from linnet.rooms.content import Membership, Retention
from linnet.rooms.relay.access_control import Caller
from linnet.rooms.relay.event_cache import EVICT_UNITS, EventCache
from linnet.rooms.relay.group_events import Shelved, key_of
from linnet.rooms.relay.stored_chunks import StoredChunks
from linnet.trace.records import Kind

_MARGIN = 0.001
"""Seconds past the end of an event's time when it is looked for: it is kept to its very end."""
AUTHORS = 2
"""One author may have one such part of the bytes: or who says much would put out what others need."""


class ExpiryDue(Timer, frozen=True, gc=False):
    """The oldest that a relay keeps of a room may have been kept long enough."""

    room: TopicId


class EventRetention:
    """Expires the stored events and chunks of one room."""

    def __init__(
        self,
        room: TopicId,
        dag: ControlDag,
        cache: EventCache,
        chunks: StoredChunks,
        groups: GroupRetention,
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
        """Seconds that events are kept, or None if only capacity limits them."""
        fact = self._dag.view().get(RETENTION_KEY)
        if fact is None or not isinstance(fact.content, Retention):
            return self._default
        longest = fact.content.max_lifetime_ms
        return None if longest is None else longest / 1000

    def since(self, now: float) -> float:
        """The time before which no message or chunk is given to anyone, removed or not."""
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
        """Set the timer to the end of the oldest event's lifetime; to now if a pass did not remove all."""
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
        """Cancel the timer: nothing is kept any longer."""
        if self._due is not None:
            self._due = None
            self._out.cancel_timer(self._timer)


class _Waited:
    """A device that lacks something."""

    __slots__ = ("key", "lacks", "read")

    def __init__(self, key: bytes, read: int, lacks: int) -> None:
        self.key = key
        self.read = read
        self.lacks = lacks
        """Of all that are kept still."""

    def needs(self, item: Shelved) -> bool:
        """Whether the device has not read this event."""
        return self.read < item.position and self.key != item.key


class GroupRetention:
    """Decides how long the `group` events of one room are kept."""

    def __init__(self, room: TopicId, dag: ControlDag, cache: EventCache, limits: RelayLimits) -> None:
        self._room = room
        self._dag = dag
        self._cache = cache
        self._shelf = cache.shelf
        self._devices = cache.devices
        self._limits = limits
        self.stale = False
        """Whether something may be let go since the last look."""

    def make_room(self, author: AuthorId, size: int) -> bool:
        """Let go of the oldest until so many bytes more of an author fit; returns False if they cannot."""
        usage, most = self._shelf.usage, self._limits.group_bytes
        if usage.share_of(author).bytes + size > most // AUTHORS:
            return False
        if size > self._cache.spare + self._cache.usage.bytes + usage.bytes:
            return False
        while usage.bytes + size > most:
            self._evict_oldest()
        if size > self._cache.spare:
            # Keys go before messages: who lacks a message lacks one, who lacks keys all that follows.
            self._cache.make_room(size, self._cache.usage.bytes + size)
        while size > self._cache.spare:
            self._evict_oldest()
        return True

    def note_kept(self, event: Event, position: int) -> None:
        """Note that one more is kept, and that its device takes part in the keys."""
        self.stale = True
        view = self._dag.view()
        self._devices.add_reader(key_of(event), position, lambda key: _takes_part(view, key))

    def note_read(self, caller: Caller, position: int) -> None:
        """Note that a member asks for what is past a position."""
        self._devices.note_read(caller.person + caller.device, position)

    def due(self) -> float | None:
        """When to look next, if nothing happens before; None: nothing is kept."""
        if not self._shelf.items:
            return None
        longest = self._limits.group_least if self.stale else self._limits.group_lifetime
        return self._shelf.items[0].at + longest

    def release_events(self, now: float) -> None:
        """Remove the events that no device is waited for with, a bounded part at once."""
        self.stale = False
        if not self._shelf.items:
            return
        waited = self._waited()
        losers: list[tuple[bytes, Reason]] = []
        left, silent = len(self._shelf), self._is_somebody_silent()
        counts, lost, young = [0, 0], 0, False
        for item in self._shelf.items[:EVICT_UNITS]:
            late = item.at < now - self._limits.group_lifetime
            if not late and item.at > now - self._limits.group_least and left <= self._limits.group_pending:
                young = True  # Whoever has read it may have crashed since, with what waited in its memory.
                break
            needy = [each for each in waited if each.needs(item)]
            most = self._limits.group_pending
            if not late and ((silent and left <= most) or any(each.lacks <= most for each in needy)):
                break
            for each in needy:
                each.lacks -= 1
                if self._devices.note_loss(each.key, item.position):
                    losers.append((each.key, Reason.RETENTION if late else Reason.TOO_MANY))
            lost = item.position if needy or silent else lost
            left -= 1
            counts[item.side] += 1
        self.stale = young or sum(counts) == EVICT_UNITS
        self._cache.release_group_events(counts, lost, Kind.EXPIRED, Reason.RETENTION)
        for key, reason in losers:
            self._devices.record_loss(key, reason)

    def _evict_oldest(self) -> None:
        """Remove the oldest event although a device may need it."""
        item = self._shelf.items[0]
        counts = [1, 0] if item.side == 0 else [0, 1]
        needy = [each.key for each in self._waited() if each.needs(item)]
        losers = [key for key in needy if self._devices.note_loss(key, item.position)]
        self._cache.release_group_events(counts, item.position, Kind.EVICTED, Reason.QUOTA)
        for key in losers:
            self._devices.record_loss(key, Reason.QUOTA)

    def _waited(self) -> list[_Waited]:
        view = self._dag.view()
        found = []
        for key, reader in self._devices.readers.items():
            lacks = self._shelf.count_unread(key, reader.read)
            if lacks and _takes_part(view, key):
                found.append(_Waited(key, reader.read, lacks))
        return found

    def _is_somebody_silent(self) -> bool:
        """Whether a person has joined of whom no device takes part in the keys yet."""
        view = self._dag.view()
        speakers = {key[:32] for key in self._devices.readers}
        return any(one not in speakers and not view.is_relay_person(one) for one in view.joined())


def _takes_part(view: View, key: bytes) -> bool:
    """Whether a device belongs to a member and is no relay."""
    person, device = AuthorId(key[:32]), DeviceId(key[32:])
    return (
        view.membership(person) is Membership.JOIN
        and not view.is_revoked(person, device)
        and not view.is_relay_person(person)
    )
