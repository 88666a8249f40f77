"""What a node has told others of its interests, kept in one account, and what its user asks about it."""

from __future__ import annotations

from collections.abc import Iterable

from linnet.core.effects import AfterCommit, Announce, Reply, Send
from linnet.core.errors import Refused
from linnet.core.stores import Cells
from linnet.delivery.commands import Declined
from linnet.edge.messages import Serve
from linnet.overlay.trackerless.asking import answer
from linnet.overlay.trackerless.commands import SetTrust, TrackerlessCommand, TrackerlessResult
from linnet.overlay.trackerless.privacy import Budget
from linnet.overlay.trackerless.trackerless import Trackerless
from linnet.peer.local_networks import LanEffect
from linnet.streams.names import topic_of

AccountEffect = Reply[TrackerlessResult] | Reply[Declined] | AfterCommit[Reply[TrackerlessResult]]


class Account:
    """The account, which a node without trackers enters filters and intersections into by itself."""

    def __init__(self, trackerless: Trackerless | None, cells: Cells) -> None:
        self._trackerless = trackerless
        self.budget = Budget(cells) if trackerless is None else trackerless.gossip.budget

    def ask(self, request: int, command: TrackerlessCommand, now: float) -> list[AccountEffect]:
        """What the user wants; answered by one reply."""
        try:
            told = Reply(request, answer(self._trackerless, self.budget, command, now))
        except Refused as error:
            return [Reply(request, Declined(error.reason, error.detail))]
        return [AfterCommit((told,))] if isinstance(command, SetTrust) else [told]

    def announced(self, effects: Iterable[LanEffect], now: float) -> None:
        """What is sent to local networks."""
        for effect in effects:
            if isinstance(effect, Announce):
                self.budget.announced(effect.network, now)

    def served(self, effects: Iterable[object], now: float) -> None:
        """What is sent to proxies: from when they are asked to serve a stream they know that we want it."""
        for effect in effects:
            if isinstance(effect, Send) and isinstance(effect.message, Serve):
                for wanted in effect.message.streams:
                    self.budget.served(effect.peer, topic_of(wanted.stream), now)

    def stop(self) -> None:
        """The node goes down."""
        self.budget.flush()
