"""What the user asks of a node without trackers, answered: whom to trust, what was told, how it stands."""

from __future__ import annotations

from typing import assert_never

from linnet.core.errors import Refused
from linnet.core.reasons import Reason
from linnet.overlay.trackerless.commands import (
    NO_PART,
    ExamineOverlay,
    ExaminePrivacy,
    ListTrust,
    SetTrust,
    TrackerlessCommand,
    TrackerlessResult,
    TrustIs,
)
from linnet.overlay.trackerless.privacy import Budget
from linnet.overlay.trackerless.trackerless import Trackerless
from linnet.overlay.trackerless.trust import Trust


def answer(
    trackerless: Trackerless | None, budget: Budget, command: TrackerlessCommand, now: float
) -> TrackerlessResult:
    """What there is to say. `Refused` if it cannot be, or if this node takes no part.

    The account of what was told is kept by every node: proxies and local networks are told things too.
    """
    if isinstance(command, ExaminePrivacy):
        return budget.told()
    if trackerless is None:
        raise Refused(Reason.UNSUPPORTED, NO_PART)
    trust = trackerless.gossip.trust
    match command:
        case SetTrust():
            return _set(trust, command)
        case ListTrust():
            return trusted(trust)
        case ExamineOverlay():
            return trackerless.status(now)
        case _:
            assert_never(command)


def trusted(trust: Trust) -> TrustIs:
    """Whom the user trusts, most first."""
    known = sorted(trust.known().items(), key=lambda each: (-each[1], each[0]))
    return TrustIs(tuple(known))


def _set(trust: Trust, command: SetTrust) -> TrustIs:
    if command.value is not None:
        trust.set(command.peer, command.value)
    elif not trust.remove(command.peer):
        raise Refused(Reason.UNKNOWN, "no trust was set in this device")
    return trusted(trust)
