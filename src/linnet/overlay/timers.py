"""Timers of a node's side of the tracker overlay."""

from __future__ import annotations

from linnet.core.ids import PeerId, TopicId
from linnet.core.timers import Timer


class FailoverDue(Timer, frozen=True):
    """The link to the tracker of a topic has been down for long enough to ask the next."""

    topic: TopicId


class ReturnDue(Timer, frozen=True):
    """It is time to look whether the first tracker of a topic is back."""

    topic: TopicId


class JoinDue(Timer, frozen=True):
    """A tracker has not answered, or has refused: it is asked once more."""

    topic: TopicId


class ReportDue(Timer, frozen=True):
    """It is time to report round-trip times in a topic."""

    topic: TopicId


class ConnectDue(Timer, frozen=True):
    """What was to be connected in a topic has had its time."""

    topic: TopicId


class RetryDue(Timer, frozen=True):
    """Neighbours of a topic that are missing are tried again."""

    topic: TopicId


class StatusDue(Timer, frozen=True):
    """The status that waits for a tracker has waited long enough."""

    tracker: PeerId
