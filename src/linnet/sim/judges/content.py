"""The judge of content: works out by brute force which subscribers must have which events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from linnet.core.ids import EventId
from linnet.sim.judges.verdict import Complaint, Rule

STANDS = 30.0
"""Seconds after which a subscription that was acknowledged is in force everywhere."""


class Publication(Struct, frozen=True):
    """A published event with a topic and a number, and what its publisher was told."""

    id: EventId
    topic: str
    number: int
    publisher: str
    asked: float
    is_complete: bool
    """Whether the publisher was told that all subscribers have it."""
    is_forbidden: bool = False
    """Whether its device had been revoked long before."""


class Subscriber(Struct, frozen=True):
    """A subscription to a topic with numbers between two bounds, both included."""

    name: str
    topic: str
    low: int
    high: int
    made: float
    ended: float
    """When the subscription ended, with its node or by itself."""
    away: tuple[float, ...]
    """Seconds at which its node did not run, or could not be reached."""
    lives: tuple[tuple[EventId, ...], ...]
    """The events that it was handed, in each life of its node."""

    def wants(self, event: Publication) -> bool:
        """Return whether an event matches the subscription."""
        return event.topic == self.topic and self.low <= event.number <= self.high

    def had_to_have(self, event: Publication) -> bool:
        """Return whether the subscriber was there all the time, so that a missing event has no excuse."""
        begins, ends = event.asked - STANDS, event.asked + 2 * STANDS
        is_there = self.made <= begins and ends <= self.ended
        return is_there and not any(begins <= second <= ends for second in self.away)


def judge_content(publications: Iterable[Publication], subscribers: Iterable[Subscriber]) -> list[Complaint]:
    """Return all broken promises."""
    published = {each.id: each for each in publications}
    return [complaint for each in subscribers for complaint in _judge_subscriber(published, each)]


def _judge_subscriber(published: dict[EventId, Publication], subscriber: Subscriber) -> Iterator[Complaint]:
    handed: dict[EventId, None] = {}
    for life in subscriber.lives:
        seen: dict[EventId, None] = {}
        for each in life:
            event = published.get(each)
            if event is None or not subscriber.wants(event):
                what = each.hex()[:8] if event is None else f"{event.topic}/{event.number}"
                yield Complaint(Rule.INVENTED, f"{subscriber.name} has {what}, which it did not ask for")
            elif each in seen:
                yield Complaint(
                    Rule.DOUBLED, f"{subscriber.name} was handed {event.number} of {event.publisher} twice"
                )
            if event is not None and event.is_forbidden:
                yield Complaint(Rule.FORBIDDEN, f"{subscriber.name} has {event.number} of a revoked device")
            seen[each] = None
        handed.update(seen)
    for event in published.values():
        if (
            event.is_complete
            and event.id not in handed
            and subscriber.wants(event)
            and subscriber.had_to_have(event)
        ):
            text = f"{subscriber.name} lacks {event.topic}/{event.number} of {event.publisher}"
            yield Complaint(Rule.MISSING, f"{text}, said {event.asked:.0f} s after the start")
