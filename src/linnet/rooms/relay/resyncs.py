"""Answering members who were away: who may, what they are told, and what is recorded of it."""

from __future__ import annotations

from linnet.core.ids import PeerId, TopicId
from linnet.machine.outbox import Outbox
from linnet.rooms.access.control_dag import ControlDag
from linnet.rooms.messages import Resync, ResyncPage
from linnet.rooms.relay.access_control import Caller, Presence, why_not_member
from linnet.rooms.relay.following import Following
from linnet.rooms.relay.retention import EventRetention
from linnet.rooms.relay.serving import Serving
from linnet.trace.records import Kind, Record


class Resyncs:
    """The requests of one room for what was missed."""

    def __init__(
        self,
        room: TopicId,
        dag: ControlDag,
        serving: Serving,
        following: Following,
        retention: EventRetention,
        presence: Presence,
        out: Outbox,
    ) -> None:
        self._room = room
        self._dag = dag
        self._serving = serving
        self._following = following
        self._retention = retention
        self._presence = presence
        self._out = out
        self._deferred: dict[PeerId, tuple[Caller, Resync]] = {}
        """What those ask whose greeting waits; the latest of each."""

    def answer(self, caller: Caller, request: Resync, now: float) -> ResyncPage:
        """Record a request; returns the page, or one that says why there is none."""
        self._out.record(Record(Kind.RESYNC, self._room, peer=caller.peer, note="receive-resync"))
        page = self._build_page(caller, request, now)
        note = "reply-resync" if page.reason is None else "reject-resync"
        events, reason = len(page.units), page.reason
        self._out.record(
            Record(Kind.RESYNC, self._room, peer=caller.peer, events=events, reason=reason, note=note)
        )
        return page

    def defers(self, caller: Caller, request: Resync) -> bool:
        """Whether it waits: who asks may be a member by control events that it is being asked for."""
        if caller.peer not in self._presence.waiting or why_not_member(self._dag.view(), caller) is None:
            return False
        self._deferred[caller.peer] = (caller, request)
        return True

    def answer_deferred(self, peer: PeerId, now: float) -> None:
        """Answer what a peer asked for that has told all that it knows."""
        deferred = self._deferred.pop(peer, None)
        if deferred is not None:
            self._out.committed.send(peer, self.answer(*deferred, now))

    def handle_link_down(self, peer: PeerId) -> None:
        """Forget what a peer asked for."""
        self._deferred.pop(peer, None)

    def _build_page(self, caller: Caller, request: Resync, now: float) -> ResyncPage:
        reason = why_not_member(self._dag.view(), caller)
        if reason is not None:
            return self._serving.refusal(request.request, reason)
        self._presence.note_seen(caller, now)
        self._retention.groups.asked(caller, self._serving.reached(request.cursor))
        self._retention.expire_events(now)
        page = self._serving.resync(caller, request, self._retention.since(now))
        if request.follow and caller.linked and not page.more and page.next is not None:
            self._following.begin(caller, request.request, page.next.position)
        else:
            self._following.end(caller.peer)
        return page
