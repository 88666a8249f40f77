"""Synchronises the events of two members of a room, as `TopicSync` does, and their control events."""

from __future__ import annotations

from linnet.core.effects import SetTimer
from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.timers import Timer
from linnet.delivery.causal_graph import Dag
from linnet.delivery.heads_walk import TopicSync
from linnet.delivery.set_reconciliation import SortedIds
from linnet.identity.cards import Card
from linnet.machine.outbox import Outbox
from linnet.rooms.auth.control_graph import ControlDag
from linnet.rooms.config import RoomsConfig
from linnet.rooms.guests import Guest
from linnet.rooms.messages import HEADS, AskControl, RoomTimer


class SyncDue(RoomTimer, frozen=True, gc=False):
    """Timer: a synchronisation with a peer has made no progress for too long."""

    peer: PeerId


class HeadSync(TopicSync[Guest]):
    """Synchronises one room with other members, one session for each peer."""

    def __init__(
        self,
        room: TopicId,
        ours: PeerId,
        config: RoomsConfig,
        control: ControlDag,
        dag: Dag,
        ids: SortedIds,
        out: Outbox,
    ) -> None:
        super().__init__(room, ours, dag, ids, out)
        self._config = config
        self._control = control

    def make_timer(self, peer: PeerId) -> SetTimer[Timer]:
        """See `TopicSync.make_timer`."""
        return SetTimer(self._config.sync_timeout, SyncDue(self._topic, peer))

    def compare(self, peer: PeerId, told: Guest) -> None:
        """Begin a session with a member whose heads we lack."""
        if any(not self._is_control(head) for head in told.control):
            self.ask_control(peer)
        if not told.relay:
            super().compare(peer, told)

    def ask_control(
        self, peer: PeerId, card: Card | None = None, heads: tuple[EventId, ...] | None = None
    ) -> None:
        """Ask for the next page of control events; with our card, if we are not a member there.

        The page begins after our present heads, or after `heads` if the peer may not be told all of ours.
        """
        self._number += 1
        beyond = self._control.heads if heads is None else heads
        self._out.send(peer, AskControl(self._topic, self._number, beyond[:HEADS], None, card))

    def _is_control(self, event: EventId) -> bool:
        return self._control.knows(event) or self._control.is_rejected(event)
