"""The operations of the benchmark in a circle: who does what, who hears it, who acknowledges."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from linnet.lab.errors import CheckFailed
from linnet.lab.studies.groups.circle import Circle, Sent
from linnet.lab.studies.groups.workload import (
    ADD,
    CREATE,
    FIRST_UPDATE,
    MESSAGE,
    MULTI,
    REMOVE,
    SCALED,
    UPDATE,
    UPDATES,
    Case,
)

_UPDATING = (UPDATE, FIRST_UPDATE, SCALED, UPDATES)
TEXT = bytes(32)
"""The message of the published benchmark has 32 bytes."""


class Course(Struct, frozen=True):
    """What was sent, and by whom it was heard."""

    operations: tuple[Sent, ...]
    acks: tuple[Sent, ...]
    sender: int
    recipients: tuple[int, ...]
    """Members that heard everything."""
    newcomer: int | None = None
    keys: tuple[Sent, ...] = ()
    """Prekeys that went with seeds."""


class Stage:
    """A group that has just been created, and one operation in it."""

    def __init__(self, circle: Circle, case: Case) -> None:
        self.circle = circle
        self.case = case
        self.sender = 1 if case.operation == FIRST_UPDATE else 0
        others = [place for place in range(case.size) if place != self.sender]
        self.listeners = others[: case.listeners] if case.listeners else others

    def run(self) -> Course:
        """Set-up and operation; only the latter is measured."""
        if self.case.operation == CREATE:
            self.circle.reset()
            return self._created()
        self._created()
        self.circle.reset()
        return self._operation()

    def _created(self) -> Course:
        everybody = list(range(self.case.size))
        sent = self.circle.create(0, everybody[1:])
        return self._answered([sent], 0, everybody[1:], keys=[self.circle.keys(0)])

    def _operation(self) -> Course:
        circle, case, sender = self.circle, self.case, self.sender
        others = [place for place in range(case.size) if place != sender]
        if case.operation in _UPDATING:
            return self._updates(others)
        if case.operation == ADD:
            newcomer = case.size
            return self._answered([circle.add(sender, newcomer)], sender, [*others, newcomer], newcomer)
        if case.operation == REMOVE:
            target = others[-1]
            sent = circle.remove(sender, target)
            circle.hear(target, sent)
            return self._answered([sent], sender, others[:-1], keys=[circle.keys(sender)])
        if case.operation == MESSAGE:
            return self._messages()
        raise CheckFailed(f"no operation of a group is called {case.operation!r}")

    def _messages(self) -> Course:
        said = tuple(self.circle.say(self.sender, TEXT) for _ in range(self.case.batch))
        for each in said:
            for place in self.listeners:
                self.circle.hear(place, each)
        return Course(said, (), self.sender, tuple(self.listeners))

    def _updates(self, others: list[int]) -> Course:
        if self.case.acks == MULTI:
            pairs = [self._update() for _ in range(self.case.batch)]
            sent, keys = [list(each) for each in zip(*pairs, strict=True)]
            return self._answered(sent, self.sender, others, keys=keys)
        parts = []
        for _ in range(self.case.batch):
            update, prekeys = self._update()
            parts.append(self._answered([update], self.sender, others, keys=[prekeys]))
        return Course(
            tuple(sent for part in parts for sent in part.operations),
            tuple(sent for part in parts for sent in part.acks),
            self.sender,
            parts[0].recipients,
            keys=tuple(sent for part in parts for sent in part.keys),
        )

    def _update(self) -> tuple[Sent, Sent]:
        """An update, and the prekeys that go with it."""
        return self.circle.update(self.sender), self.circle.keys(self.sender)

    def _answered(
        self,
        sent: list[Sent],
        sender: int,
        others: list[int],
        newcomer: int | None = None,
        keys: Sequence[Sent] = (),
    ) -> Course:
        """All hear these operations and acknowledge them; the sender and who listens hear that too."""
        circle, acks = self.circle, list[Sent]()
        for place in others:
            for each in (*sent, *keys):
                circle.hear(place, each)
            acks += circle.acks(place)
        recipients = [place for place in self.listeners if place in others and place != sender]
        hearing = list(dict.fromkeys([sender, self.sender, *recipients]))
        hearing += [] if newcomer is None else [newcomer]
        for each in acks:
            # What a sender did before its operation must have been heard by all who take that.
            for place in [sender, *others] if each.by == self.sender else hearing:
                if place != each.by:
                    circle.hear(place, each)
        return Course(tuple(sent), tuple(acks), sender, tuple(recipients), newcomer, tuple(keys))


def devices_of(case: Case) -> int:
    """How many devices a case needs."""
    return case.size + (case.operation == ADD)
