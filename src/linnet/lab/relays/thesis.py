"""The baseline of the thesis, for small chats: a retry queue, and backfill when a successor arrives.

A sender keeps each event for each member until both are online. Who receives an event asks its sender
for all that came before it and is missing (Schichtholz 2024, section 6.3). Nobody synchronises on
coming online. As a backfill happens only at the instant of a push, first deliveries and the first
reception of each online period are those of direct pushes; what backfill adds is counted here.
"""

from __future__ import annotations

from typing import NamedTuple

from linnet.lab.relays.chat_arrays import ChatArrays
from linnet.lab.relays.presence import Presence
from linnet.lab.relays.receptions import Reception, bits, instants


class ThesisReceptions(NamedTuple):
    """What arrived where; both by event and receiver."""

    pushed: list[Reception]
    """By the sender's queue, also what had been backfilled before."""
    backfilled: list[Reception]
    """As a predecessor of what was pushed, before any push of its own."""


def thesis_receptions(chat: ChatArrays, presence: Presence) -> ThesisReceptions:
    """Replay a chat under the rules of the thesis."""
    replay = _Replay(chat)
    for time, leaving, coming, sent in instants(chat, presence):
        for member in leaving:
            del replay.online[member]
        for member in coming:
            replay.online[member] = None
        replay.retry(time)
        for event in sent:
            replay.send(event)
            replay.retry(time)
    return ThesisReceptions(sorted(replay.pushed), sorted(replay.backfilled))


class _Replay:
    """What everybody knows and still has to deliver; sets of events are numbers, a bit for each event."""

    def __init__(self, chat: ChatArrays) -> None:
        self.user = chat.user.tolist()
        self.online: dict[int, None] = {}
        self.known = [0] * chat.members
        self.before = [0] * len(self.user)
        self.queues: dict[tuple[int, int], int] = {}
        self.pushed: list[Reception] = []
        self.backfilled: list[Reception] = []

    def send(self, event: int) -> None:
        """An event follows all that its sender knows, and is queued for everybody else."""
        sender = self.user[event]
        self.before[event] = self.known[sender]
        self.known[sender] |= 1 << event
        for receiver in range(len(self.known)):
            if receiver != sender:
                self.queues[sender, receiver] = self.queues.get((sender, receiver), 0) | 1 << event

    def retry(self, time: int) -> None:
        """Push whatever is queued between members who are online, earlier events first."""
        due = sorted(
            (event, receiver, sender)
            for sender in self.online
            for receiver in self.online
            for event in bits(self.queues.pop((sender, receiver), 0))
        )
        for event, receiver, _ in due:
            missing = self.before[event] & ~self.known[receiver]
            self.backfilled += [Reception(one, receiver, time) for one in bits(missing)]
            self.pushed.append(Reception(event, receiver, time))
            self.known[receiver] |= missing | 1 << event
