"""Looking for an announcement: who subscribes today has not had the event that told today's key.

Messages name it, so it can be asked for by its number, of storage nodes first and then of neighbours that
hold the chain, one after the other. What nobody has is given up with a record, and looked for again when
a later message names it, but not at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linnet.core.ids import Contact, DeviceId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.delivery.context import Context
from linnet.delivery.gap_repair import GapRepair
from linnet.delivery.messages import Resend
from linnet.machine.outbox import Outbox
from linnet.trace.records import Kind, Record

if TYPE_CHECKING:
    from linnet.streams.sealed.reader import Following


PAUSE = 30.0
"""Seconds before something that nobody had is looked for again."""


class KeySearchDue(Timer, frozen=True, gc=False):
    """Whoever was asked for the announcement of a key had the time to answer."""

    topic: TopicId


class Search:
    """The search of one stream: for one announcement at a time, since each names the one before."""

    def __init__(
        self, topic: TopicId, context: Context, gaps: GapRepair, following: Following, out: Outbox
    ) -> None:
        self._topic = topic
        self._owner = following.owner
        self._context = context
        self._gaps = gaps
        self._following = following
        self._out = out
        self._storage: dict[PeerId, Contact] = {}
        self._held: PeerId | None = None
        self._sought: tuple[DeviceId, int] | None = None
        self._tries = 0
        self._given_up_at: float | None = None
        self._timer = KeySearchDue(topic)
        self._purpose = f"keys {topic.hex()[:16]}"

    def set_storage(self, nodes: dict[PeerId, Contact]) -> None:
        """These nodes keep the stream."""
        self._storage = nodes

    def look(self, now: float) -> None:
        """Look for what is missing now, if that is something else than before."""
        missing = self._following.missing()
        if missing == self._sought and (self._given_up_at is None or now < self._given_up_at + PAUSE):
            return
        if missing is None:
            self.stop()
            return
        self._sought, self._tries, self._given_up_at = missing, 0, None
        self._ask(now)

    def ask_again(self, now: float) -> None:
        """Nobody answered, or whoever did had nothing: ask the next."""
        if self._sought is not None and self._given_up_at is None:
            self._ask(now)

    def stop(self) -> None:
        """Nothing is looked for any more."""
        if self._sought is not None:
            self._sought = self._given_up_at = None
            self._out.cancel_timer(self._timer)
            self._release_storage()

    def _ask(self, now: float) -> None:
        if self._sought is None or self._owner is None:
            return
        device, number = self._sought
        config = self._context.config
        sources = self._gaps.sources_for(self._owner + device)
        if self._tries >= config.gap_tries + len(sources):
            self._given_up_at = now
            place = (self._topic, None, device, number)
            self._out.record(Record(Kind.DROPPED, *place, reason=Reason.KEY_MISSING, note="announcement"))
            self._release_storage()
            return
        self._tries += 1
        if not sources:
            self._hold_storage()
            self._out.set_timer(config.gap_backoff, self._timer)
            return
        peer = sources[(self._tries - 1) % len(sources)]
        self._out.send(peer, Resend(self._topic, self._owner, device, number, number))
        self._out.set_timer(config.gap_timeout, self._timer)

    def _hold_storage(self) -> None:
        """Get a link to a storage node, since there is none to anyone who may have it."""
        if self._held is None and self._storage:
            contact = next(iter(self._storage.values()))
            self._held = contact.peer
            self._out.hold(contact.peer, contact.hints, self._purpose)

    def _release_storage(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            self._out.release(held, self._purpose)
