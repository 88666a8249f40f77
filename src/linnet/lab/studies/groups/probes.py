"""What the published benchmark has not: a member that comes back, states, views, random groups."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable

from msgspec.structs import replace

from linnet.core.ids import AuthorId, DeviceId, EventId
from linnet.groups import agreement, membership
from linnet.groups.labels import Device, MemberId
from linnet.groups.membership import History, Member
from linnet.groups.state import encode_state
from linnet.lab.errors import CheckFailed
from linnet.lab.studies.groups.circle import Circle, Sent
from linnet.lab.studies.groups.operations import Stage
from linnet.lab.studies.groups.workload import MULTI, Case
from linnet.sim.groups.scenario import Course, GroupScenario, divergences

SPEAKERS = 4
"""Members who update in turn while another is away; whatever they send is heard by all who are there."""
OWED = 8
"""Acknowledgements that others gather before they send them, if they do."""
LOOKS = 2_000
"""Views that are taken, to tell the time of one."""


class Absence:
    """A group in which the last member is away, while others update."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.circle = Circle(case.size, case.seed)
        self.returning = case.size - 1
        self.missed: list[Sent] = []
        speakers = min(SPEAKERS, case.size - 2)
        self._present = range(case.size - 1)
        self._speakers = range(speakers)

    def run(self) -> None:
        """Everything that happens while the member is away, and what it was sent before."""
        created = self.circle.create(0, self._members())
        for place in self._members():
            self.circle.hear(place, created)
        for place in range(self.case.size):
            self._acks(place)
        for sent in self._taken():
            if sent.by != self.returning:
                self.circle.hear(self.returning, sent)
        every = OWED if self.case.acks == MULTI else 1
        for number in range(self.case.batch):
            speaker = self._speakers[number % len(self._speakers)]
            self._acks(speaker)
            self._heard(self.circle.update(speaker))
            self._heard(self.circle.keys(speaker))
            if (number + 1) % every == 0 or number + 1 == self.case.batch:
                for place in self._present:
                    self._acks(place)

    def come_back(self) -> None:
        """The member hears all of it, in order; only that is measured."""
        self.circle.reset()
        for sent in self.missed:
            self.circle.hear(self.returning, sent)
        pending = agreement.pending_by_member(self.circle.parties[self.returning].state)
        if set(pending) - {self.circle.member(self.returning)}:
            raise CheckFailed("a member that caught up still waits for others")

    def _members(self) -> range:
        return range(1, self.case.size)

    def _acks(self, place: int) -> None:
        for sent in self.circle.acks(place):
            self._heard(sent)

    def _heard(self, sent: Sent) -> None:
        self.missed.append(sent)
        if sent.by in self._speakers:
            for place in self._present:
                if place != sent.by:
                    self.circle.hear(place, sent)

    def _taken(self) -> list[Sent]:
        taken, self.missed = self.missed, []
        return taken


def state_bytes(case: Case) -> int:
    """Bytes of a member's state that has heard all of a new group, and so many updates without answers."""
    circle = Circle(case.size, case.seed)
    stage = Stage(circle, replace(case, operation="create"))
    course = stage.run()
    listener = course.recipients[0]
    for _ in range(case.batch):
        sent = circle.update(course.sender)
        circle.hear(listener, sent)
        circle.acks(listener)
    return len(encode_state(circle.parties[listener].state))


def changed_history(size: int, operations: int) -> History:
    """A history of so many members, after so many have come or gone, which nobody has seen yet."""
    ids = [_number("member", place) for place in range(size + operations)]
    first = EventId(_number("op", 0))
    history = membership.create(membership.EMPTY, first, [_member(id, first) for id in ids[:size]])
    sender = MemberId(ids[0][:16])
    for number in range(1, operations + 1):
        op = EventId(_number("op", number))
        if number % 2:
            history = membership.add(history, op, sender, _member(ids[size + number // 2], op))
        else:
            history = membership.remove(history, op, sender, [MemberId(ids[number // 2][:16])])
    return history


def _number(what: str, number: int) -> bytes:
    return hashlib.sha256(f"{what}/{number}".encode()).digest()


def _member(id: bytes, op: EventId) -> Member:
    return Member(MemberId(id[:16]), Device(AuthorId(id), DeviceId(id[:8])), id, op)


def view_times(case: Case, clock: Callable[[], int] = time.process_time_ns) -> dict[str, int]:
    """Nanoseconds of `LOOKS` views: of histories that nobody has looked at, and of one that somebody has."""
    history = changed_history(case.size, case.batch)
    sender = history.members[0].id
    fresh = [replace(history) for _ in range(LOOKS)]
    began = clock()
    for each in fresh:
        membership.view(each, None)
    looked = clock()
    for each in fresh:
        membership.view(each, sender)
    asked = clock()
    for _ in range(LOOKS):
        membership.view(history, None)
    return {"fresh": looked - began, "of a member": asked - looked, "known": clock() - asked}


def fuzz(case: Case, clock: Callable[[], int] = time.process_time_ns) -> int:
    """Nanoseconds of one random group that is cut apart once and meets again; it must agree then."""
    began = clock()
    scenario = GroupScenario(
        members=case.size, ops=case.batch, partitions=1, thefts=0, messages=0.5, seed=case.seed
    )
    course = Course(scenario)
    course.run(lambda done, what: None)
    troubles = [*divergences(course.net), *(each for one in course.net.machines for each in one.troubles)]
    took = clock() - began
    if troubles:
        raise CheckFailed(f"a random group of seed {case.seed} does not agree: {troubles[0]}")
    return took
