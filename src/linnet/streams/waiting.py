"""Publishes that wait until the links of their stream are not slow any more."""

from __future__ import annotations

from linnet.core.ids import TopicId
from linnet.core.reasons import Reason
from linnet.delivery.commands import Declined
from linnet.machine.outbox import Outbox
from linnet.streams.commands import Publish


class Waiting:
    """What the application wants to publish, by stream, in order; bounded for each."""

    def __init__(self, most: int, out: Outbox) -> None:
        self._most = most
        self._out = out
        self._waiting: dict[TopicId, list[tuple[int, Publish]]] = {}

    def __contains__(self, topic: TopicId) -> bool:
        return topic in self._waiting

    def add(self, topic: TopicId, request: int, command: Publish) -> None:
        """Let one wait; more than allowed are declined."""
        waiting = self._waiting.setdefault(topic, [])
        if len(waiting) >= self._most:
            detail = f"{len(waiting)} publishes wait for slow links already"
            self._out.reply(request, Declined(Reason.CONGESTED, detail))
            return
        waiting.append((request, command))

    def take(self, topic: TopicId) -> list[tuple[int, Publish]]:
        """Those of a stream, in order: its links are not slow any more."""
        return self._waiting.pop(topic, [])

    def close(self) -> None:
        """The node stops: whoever waits is answered."""
        waiting, self._waiting = self._waiting, {}
        declined = Declined(Reason.SHUTDOWN, "the node stops, and links were slow until the end")
        for queued in waiting.values():
            for request, _ in queued:
                self._out.reply(request, declined)
