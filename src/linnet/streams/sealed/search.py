"""Looking for an announcement: who subscribes today has not had the event that told today's key.

Messages name it, so it can be asked for by its number, of storage nodes first and then of neighbours that
hold the chain, one after the other. What nobody has is given up with a record, and looked for again when
a later message names it, but not at once.
"""

from __future__ import annotations

from linnet.core.effects import CancelTimer, Hold, Release, Send, SetTimer
from linnet.core.ids import Contact, DeviceId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.delivery.context import Context
from linnet.delivery.gaps import Gaps
from linnet.delivery.messages import Resend
from linnet.streams.sealed.following import Following
from linnet.trace.records import Kind, Record

OWNER = "sealed"
PAUSE = 30.0
"""Seconds before something that nobody had is looked for again."""

SearchEffect = Send[Resend] | Hold | Release | SetTimer[Tick] | CancelTimer[Tick] | Record


class Search:
    """The search of one stream: for one announcement at a time, since each names the one before."""

    def __init__(self, topic: TopicId, context: Context, gaps: Gaps, following: Following) -> None:
        self._topic = topic
        self._owner = following.owner
        self._context = context
        self._gaps = gaps
        self._following = following
        self._storage: dict[PeerId, Contact] = {}
        self._held: PeerId | None = None
        self._sought: tuple[DeviceId, int] | None = None
        self._tries = 0
        self._given_up_at: float | None = None
        self._tick = Tick(OWNER, "seek", topic)
        self._purpose = f"keys {topic.hex()[:16]}"

    def storage(self, nodes: dict[PeerId, Contact]) -> None:
        """These nodes keep the stream."""
        self._storage = nodes

    def look(self, now: float) -> list[SearchEffect]:
        """Look for what is missing now, if that is something else than before."""
        missing = self._following.missing()
        if missing == self._sought and (self._given_up_at is None or now < self._given_up_at + PAUSE):
            return []
        if missing is None:
            return self.stop()
        self._sought, self._tries, self._given_up_at = missing, 0, None
        return self._ask(now)

    def fired(self, now: float) -> list[SearchEffect]:
        """Nobody answered, or whoever did had nothing."""
        if self._sought is None or self._given_up_at is not None:
            return []
        return self._ask(now)

    def stop(self) -> list[SearchEffect]:
        """Nothing is looked for any more."""
        if self._sought is None:
            return []
        self._sought = self._given_up_at = None
        return [CancelTimer(self._tick), *self._release()]

    def _ask(self, now: float) -> list[SearchEffect]:
        if self._sought is None or self._owner is None:
            return []
        device, number = self._sought
        config = self._context.config
        candidates = self._gaps.candidates(self._owner + device)
        if self._tries >= config.gap_tries + len(candidates):
            self._given_up_at = now
            place = (self._topic, None, device, number)
            dropped = Record(Kind.DROPPED, *place, reason=Reason.KEY_MISSING, note="announcement")
            return [dropped, *self._release()]
        self._tries += 1
        if not candidates:
            return [*self._hold(), SetTimer(config.gap_backoff, self._tick)]
        peer = candidates[(self._tries - 1) % len(candidates)]
        question = Resend(self._topic, self._owner, device, number, number)
        return [Send(peer, question), SetTimer(config.gap_timeout, self._tick)]

    def _hold(self) -> list[SearchEffect]:
        """Get a link to a storage node, since there is none to anyone who may have it."""
        if self._held is not None or not self._storage:
            return []
        contact = next(iter(self._storage.values()))
        self._held = contact.peer
        return [Hold(contact.peer, contact.hints, self._purpose)]

    def _release(self) -> list[SearchEffect]:
        held, self._held = self._held, None
        return [] if held is None else [Release(held, self._purpose)]
