"""Who subscribes to what and who says what, in simulated networks of content: Agostinho 2021, chapter 5."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

SUBSCRIBED = (
    ("portugal/surf", "ipfs"),
    ("ipfs", "portugal/soccer"),
    ("ipfs", "surf/bali"),
    ("ipfs", "surf/bali/trip/price[1000,1500]"),
    ("ipfs", "surf/trip/price[1000,2000]"),
    ("ipfs", "surf/trip/price[1000,1400]"),
)
"""What each of the six groups of subscribers asks for."""

FURTHER = (
    ("surf/madeira", "dogecoin"),
    ("dogecoin", "surf/azores"),
    ("dogecoin", "surf/bali"),
    ("dogecoin", "bitcoin/price[10000,15000]"),
    ("dogecoin", "temperature[30,40]"),
    ("dogecoin", "ronaldo/sporting"),
)
"""What they ask for while events are on their way, in a burst of subscriptions."""

SAID_BY_SUBSCRIBERS = (
    "surf/bali/trip/price={}",
    "surf/hawai/trip/price={}",
    "ipfs",
    "portugal/soccer",
    "ipfs",
    "portugal/surf",
)
"""What each subscriber says in a burst of events; the price goes up within a group."""

SAID = ("ipfs", "portugal/surf", "surf/bali/trip/price=1050", "portugal/soccer")
"""What the publishers say."""


class Course(StrEnum):
    """What happens."""

    NORMAL = "normal"
    """All subscribe, then the publishers publish."""
    SUB_BURST = "sub-burst"
    """While they do, all subscribe to more."""
    EVENT_BURST = "event-burst"
    """All publish at once."""
    FAULT = "fault"
    """Two subscribers of the last group crash a second before."""


class Publication(Struct, frozen=True):
    """Somebody says something."""

    node: str
    attributes: str
    body: bytes


class Workload:
    """The groups of a network: one node in fifteen publishes, as 4 of 60 did; the others subscribe."""

    def __init__(self, names: list[str], course: Course) -> None:
        publishers = max(1, len(names) // 15)
        self.publishers, self.subscribers = names[:publishers], names[publishers:]
        self.course = course

    def group(self, number: int) -> int:
        """The group of a subscriber."""
        return number % len(SUBSCRIBED)

    def subscriptions(self) -> list[tuple[str, str]]:
        """What is asked for before anything is said."""
        return self._asked(SUBSCRIBED)

    def further(self) -> list[tuple[str, str]]:
        """What is asked for while it is said."""
        return self._asked(FURTHER) if self.course is Course.SUB_BURST else []

    def _asked(self, groups: tuple[tuple[str, str], ...]) -> list[tuple[str, str]]:
        return [
            (name, predicate)
            for number, name in enumerate(self.subscribers)
            for predicate in groups[self.group(number)]
        ]

    def publications(self) -> list[Publication]:
        """What is said, all at once."""
        said = [
            Publication(name, SAID[number % len(SAID)], f"{name} says".encode())
            for number, name in enumerate(self.publishers)
        ]
        if self.course is Course.EVENT_BURST:
            for number, name in enumerate(self.subscribers):
                group, place = self.group(number), number // len(SUBSCRIBED) + 1
                text = SAID_BY_SUBSCRIBERS[group].format((110 if group == 0 else 160) * place)
                said.append(Publication(name, text, f"{name} says".encode()))
        return said

    def crashed(self) -> list[str]:
        """Who crashes before it is said."""
        if self.course is not Course.FAULT:
            return []
        last = [name for number, name in enumerate(self.subscribers) if self.group(number) == 5]
        return last[-2:]
