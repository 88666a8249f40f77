"""What one peer may have this node do within a period.

Each message is bounded by itself; without a bound on their number a single peer could still fill tables, have
lookups made and events checked without end. What is beyond the budget is refused by name, to no effect.
"""

from __future__ import annotations

from linnet.content.config import ContentConfig
from linnet.content.messages import (
    Backup,
    Before,
    Claim,
    Closer,
    ContentMessage,
    Held,
    Keepers,
    Log,
    Logged,
    Notice,
    Publish,
    Reached,
    Replace,
    Settled,
    StandIn,
    Subscribe,
    Taken,
)
from linnet.core.errors import RemoteError
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason

_KINDS: dict[type, str] = {
    Subscribe: "subscriptions",
    Replace: "subscriptions",
    Keepers: "subscriptions",
    Backup: "filters to keep",
    StandIn: "questions for routes",
    Claim: "claims",
    Closer: "claims",
    Before: "claims",
    Publish: "events",
    Notice: "events",
    Log: "events",
    Taken: "answers",
    Reached: "answers",
    Settled: "answers",
    Held: "answers",
    Logged: "answers",
}
"""What is asked of this node, and answers that are as many as events."""

_ANSWERS = 4
"""Answers that an event may cost: it is taken, waited for, reached all below, and settled."""


class Quotas:
    """Messages of each peer in this period."""

    def __init__(self, config: ContentConfig) -> None:
        self._limits = dict.fromkeys(_KINDS.values(), config.budget)
        self._limits |= {"events": config.event_budget, "claims": config.claim_budget}
        self._limits["answers"] = _ANSWERS * config.event_budget
        self._most = config.routes
        self._spent: dict[PeerId, dict[str, int]] = {}

    def spend(self, peer: PeerId, message: ContentMessage) -> None:
        """Count a message; `RemoteError` if it is one too many."""
        kind = _KINDS.get(type(message))
        if kind is None:
            return
        spent = self._spent.get(peer)
        if spent is None:
            if len(self._spent) >= self._most:
                del self._spent[next(iter(self._spent))]
            spent = self._spent[peer] = {}
        if spent.get(kind, 0) >= self._limits[kind]:
            raise RemoteError(Reason.QUOTA, f"more than {self._limits[kind]} {kind} in a period")
        spent[kind] = spent.get(kind, 0) + 1

    def turn(self) -> None:
        """A period is over."""
        self._spent.clear()
