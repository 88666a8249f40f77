"""Answering members who were away: who may, what they are told, and what is recorded of it."""

from __future__ import annotations

from linnet.core.effects import AfterCommit, Send
from linnet.core.ids import PeerId, TopicId
from linnet.rooms.access.control_dag import ControlDag
from linnet.rooms.messages import Resync, ResyncPage
from linnet.rooms.relay.door import Caller, why_not_member
from linnet.rooms.relay.following import Following
from linnet.rooms.relay.presence import Presence
from linnet.rooms.relay.retention import Keeping
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
        keeping: Keeping,
        presence: Presence,
    ) -> None:
        self._room = room
        self._dag = dag
        self._serving = serving
        self._following = following
        self._keeping = keeping
        self._presence = presence
        self._deferred: dict[PeerId, tuple[Caller, Resync]] = {}
        """What those ask whose greeting waits; the latest of each."""

    def answer(self, caller: Caller, request: Resync, now: float) -> tuple[ResyncPage, list[Record]]:
        """The page, or why there is none, and what is recorded."""
        got = Record(Kind.RESYNC, self._room, peer=caller.peer, note="receive-resync")
        reason = why_not_member(self._dag.view(), caller)
        if reason is not None:
            page = self._serving.refusal(request.request, reason)
            return page, [got, self._told(caller, page)]
        self._presence.saw(caller, now)
        self._keeping.groups.asked(caller, self._serving.reached(request.cursor))
        gone = self._keeping.expire(now)
        page = self._serving.resync(caller, request, self._keeping.since(now))
        if request.follow and caller.linked and not page.more and page.next is not None:
            self._following.begin(caller, request.request, page.next.position)
        else:
            self._following.end(caller.peer)
        return page, [got, *gone, self._told(caller, page)]

    def defers(self, caller: Caller, request: Resync) -> bool:
        """Whether it waits: who asks may be a member by control events that it is being asked for."""
        if caller.peer not in self._presence.waiting or why_not_member(self._dag.view(), caller) is None:
            return False
        self._deferred[caller.peer] = (caller, request)
        return True

    def settled(self, peer: PeerId, now: float) -> list[Record | AfterCommit[Send[ResyncPage]]]:
        """A peer has told all that it knows: what it asked for is answered."""
        deferred = self._deferred.pop(peer, None)
        if deferred is None:
            return []
        page, records = self.answer(*deferred, now)
        return [*records, AfterCommit((Send(peer, page),))]

    def down(self, peer: PeerId) -> None:
        """A link is gone."""
        self._deferred.pop(peer, None)

    def _told(self, caller: Caller, page: ResyncPage) -> Record:
        return Record(
            Kind.RESYNC,
            self._room,
            peer=caller.peer,
            events=len(page.units),
            reason=page.reason,
            note="reply-resync" if page.reason is None else "reject-resync",
        )
