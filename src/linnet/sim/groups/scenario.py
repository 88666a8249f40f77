"""The scenario of a group with partitions and thefts: its parameters, its course, and its judgement.

At the end all devices meet. The judgement asks whether members agree, whether all messages that should be
readable were read, and, with the help of a `Burglar`, whether others were readable.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from statistics import fmean
from typing import Any

from msgspec import Struct

from linnet.core.errors import ConfigError, Refused
from linnet.core.ids import EventId
from linnet.core.reasons import Reason
from linnet.groups import agreement
from linnet.groups.bodies import Acks, decode_body
from linnet.groups.labels import MemberId
from linnet.groups.state import Hardening, encode_state
from linnet.sim.groups.safety import Burglar
from linnet.sim.groups.world import GROUP, GroupNet, Machine, Theft
from linnet.sim.report import Progress, RunReport, tell_nobody
from linnet.sim.seeded_random import named_luck


class GroupScenario(Struct, frozen=True, kw_only=True):
    """A group whose members come and go, are partitioned, and are robbed."""

    members: int = 16
    """At the start; half as many devices are outside, to be added."""
    ops: int = 200
    """Updates, additions, removals and requests to leave."""
    partitions: int = 3
    """Times at which one half cannot reach the other."""
    thefts: int = 5
    messages: float = 1.5
    """Messages after each operation, on average."""
    patience: float = 0.6
    """Share of the messages under way that arrive before the next operation."""
    hardening: Hardening = Hardening()
    seed: int = 1

    def check(self) -> None:
        """Raise `ConfigError` if this is no possible group."""
        if not 2 <= self.members <= 128:
            raise ConfigError(f"a simulated group has 2 to 128 members, not {self.members}")
        if self.ops < 1 or self.partitions < 0 or self.thefts < 0:
            raise ConfigError("operations, partitions and thefts are counts")
        if not 0 <= self.patience <= 1 or self.messages < 0:
            raise ConfigError("patience is a share, messages are not negative")


class GroupsReport(RunReport, frozen=True, eq=False, kw_only=True):
    """The outcome of one run."""

    members: int
    """Members at the start."""
    members_at_end: int
    ops: int
    """Updates, additions, removals and requests to leave, healing included."""
    updates: int
    additions: int
    removals: int
    leaves: int
    heals: int
    """Updates that were due before a message could be sent."""
    acks: int
    messages: int
    partitions: int
    thefts: int
    diverged: int
    """Members whose view or keys differ from those of the others at the end, or that could not follow one of
    them."""
    troubles: tuple[str, ...]
    """The first problems of that kind, in words."""
    pairs: int
    """Pairs of a message and a member that its sender counted as one, and that still is one; less `late`."""
    unreadable: int
    """Pairs whose message was not opened."""
    late: int
    """Pairs where the sender was removed, and all had learned of that before its message arrived: no member
    keeps its keys then."""
    misread: int
    """Messages opened by a device that its sender did not count as a member."""
    safe: int
    """Pairs of a message and a theft (or all thefts together) where the message must not be readable."""
    leaked: int
    """Safe pairs whose message was readable, with messages that all removed members together could read."""
    read: int
    """Other pairs, where the message may be readable and was: the thief's harvest."""
    unread: int
    """Other pairs, where the message was unreadable all the same."""
    healed_after_ops: float
    """Operations after a theft until all messages are safe from it, on average."""
    healed_after_ops_max: int
    unhealed: int
    """Thefts from which the very last message is not safe."""
    bytes_per_update: float
    """Bytes of an update and of its acknowledgements, on average."""
    weak_starts: int
    """First messages to a member that had no one-time prekey left."""
    trace_sha256: str
    wall_seconds: float

    @property
    def ok(self) -> bool:
        """Whether no promise was broken."""
        return not (self.diverged or self.unreadable or self.misread or self.leaked or self.unhealed)


_ACTS = ("update", "add", "remove", "leave")
_WEIGHTS = (44, 34, 17, 5)
_SMALLEST = 3
"""Members of the smallest group from which members are removed."""


class Robbery(Struct, frozen=True):
    """A theft, with its time in the run."""

    theft: Theft
    device: int
    heard: int
    """The number of events overheard by then."""
    ops: int
    """The number of operations made by then."""


class Course:
    """One run of a scenario, from the creation to the last messages."""

    def __init__(self, scenario: GroupScenario, keep_all: bool = False) -> None:
        scenario.check()
        self.scenario = scenario
        self.devices = scenario.members + max(2, scenario.members // 2)
        self.net = GroupNet(self.devices, scenario.seed, hardening=scenario.hardening, keep_all=keep_all)
        self.luck = named_luck(scenario.seed, "groups")
        self.counts = dict.fromkeys((*_ACTS, "heal"), 0)
        self.ops: list[tuple[int, EventId]] = []
        """Each operation that counts, with the number of events overheard by then."""
        self.robberies: list[Robbery] = []
        self.last_words: list[EventId] = []

    def run(self, progress: Progress) -> None:
        """Run the whole course."""
        everybody = list(range(self.scenario.members))
        self.net.create(0, everybody[1:])
        self.settle()
        thefts = {self.luck.randrange(self.scenario.ops): None for _ in range(self.scenario.thefts)}
        robbed = [*thefts, *(self.luck.randrange(self.scenario.ops) for _ in range(self.scenario.thefts))]
        robbed = robbed[: self.scenario.thefts]
        for turn in range(self.scenario.ops):
            progress(turn / self.scenario.ops * 0.7, f"operation {turn + 1}")
            self._partition(turn)
            self._act()
            for _ in range(robbed.count(turn)):
                self._rob()
            for _ in range(self._messages()):
                self._speak()
            self._carry()
        progress(0.7, "all meet again")
        self._end()

    # Random.

    def _messages(self) -> int:
        whole = int(self.scenario.messages)
        return whole + (self.luck.random() < self.scenario.messages - whole)

    def _partition(self, turn: int) -> None:
        """Partition the group in two halves during the middle of each stretch of the run."""
        if not self.scenario.partitions:
            return
        stretch = self.scenario.ops / self.scenario.partitions
        place = turn % stretch / stretch
        apart = len(set(self.net.sides)) > 1
        if 0.3 <= place < 0.7:
            if not apart:
                self.net.sides = [self.luck.randrange(2) for _ in range(self.devices)]
        elif apart:
            self._meet()

    def _meet(self) -> None:
        """End the partition, deliver everything, and let two quiet days pass."""
        self.net.sides = [0] * self.devices
        self.settle()
        self.net.pass_days(2)
        for place in range(self.devices):
            self.net.publish_keys(place)

    def _act(self) -> None:
        members = self.able()
        if not members:
            return
        place = self.luck.choice(members)
        self.net.now += 60.0
        self.net.acks(place)
        if self.tidy(place):
            return
        kind = self.luck.choices(_ACTS, _WEIGHTS)[0]
        machine = self.net.machines[place]
        view = agreement.members(machine.state)
        others = [member for member in view if member != machine.state.me]
        outside = [
            other
            for other in range(self.devices)
            if self.net.machines[other].state.me is None
            and self.net.machines[other].state.ours not in view.values()
        ]
        if kind == "add" and outside:
            self.add(place, self.luck.choice(outside))
        elif kind == "remove" and len(view) > _SMALLEST:
            targets = self.luck.sample(others, self.luck.choice((1, 1, 1, 2)))
            self._count("remove", self.net.remove(place, targets))
        elif kind == "leave" and len(view) > _SMALLEST and self.luck.random() < 0.5:
            self._count("leave", self.net.leave(place))
        else:
            self._count("update", self.net.update(place))

    def add(self, place: int, other: int) -> None:
        """Let a member add a device, if the device has prekeys for it."""
        self.net.publish_keys(other)
        try:
            self._count("add", self.net.add(place, other))
        except Refused as error:
            # It was added and removed again, and has learned of neither: it will publish other keys.
            if error.reason is not Reason.MISSING_PREKEYS:
                raise

    def able(self) -> list[int]:
        """Return the members that may act: not desynced, and without a request to leave."""
        machines = self.net.machines
        return [place for place in self.net.members() if _is_able(machines[place])]

    def _count(self, kind: str, op: EventId) -> None:
        self.counts[kind] += 1
        self.ops.append((len(self.net.overheard) - 1, op))

    def _speak(self) -> None:
        members = self.able()
        if members:
            self.speak(self.luck.choice(members))

    def speak(self, place: int) -> EventId:
        """Let a member send a message, after the operations that must come before it."""
        machine = self.net.machines[place]
        self.net.acks(place)
        if agreement.needs_heal(machine.state) and machine.state.hardening.heal_before_sending:
            self.counts["heal"] += 1
            if not self.tidy(place):
                self._count("update", self.net.update(place))
        return self.net.say(place, f"message {len(self.net.said)}")

    def _rob(self) -> None:
        members = self.net.members()
        anybody = not members or self.luck.random() < 0.1
        place = self.luck.randrange(self.devices) if anybody else self.luck.choice(members)
        heard, ops = len(self.net.overheard), len(self.ops)
        self.robberies.append(Robbery(self.net.steal(place), place, heard, ops))

    def _carry(self) -> None:
        """Let some devices receive what has arrived for them, and acknowledge it sooner or later."""
        places = list(range(self.devices))
        self.luck.shuffle(places)
        for place in places:
            if self.luck.random() >= self.scenario.patience:
                continue
            while (ready := self.net.reachable(place)) and self.luck.random() < 0.98:
                self.net.deliver(self.luck.choice(ready), place)
                if self.luck.random() < 0.1:
                    self.net.acks(place)
            if self.luck.random() < 0.8:
                self.net.acks(place)

    # Not random.

    def tidy(self, place: int) -> bool:
        """Let a member remove others first: those that asked to leave, are there twice, or have an old key.
        Return whether there were any."""
        state = self.net.machines[place].state
        gone: dict[MemberId, None] = dict.fromkeys(agreement.leaving(state))
        for member, device in agreement.members(state).items():
            bundle = self.net.directory(device)
            is_other = bundle is not None and bundle.identity != agreement.identity_of(state, member)
            if member != state.me and (device == state.ours or is_other):
                gone[member] = None
        gone.pop(MemberId(state.me or b""), None)
        if gone:
            self._count("remove", self.net.remove(place, gone))
        return bool(gone)

    def settle(self) -> None:
        """Deliver and acknowledge everything."""
        moved = True
        while moved:
            moved = False
            for place in range(self.devices):
                while ready := self.net.reachable(place):
                    for sender in ready:
                        self.net.deliver(sender, place)
                    moved = True
                self.net.acks(place)
                if self.net.machines[place].state.stale:
                    self.net.publish_keys(place)

    def _end(self) -> None:
        """Let all devices meet, tidy their group and heal; then let each send a last message."""
        self._meet()
        while sum(self.tidy(place) for place in self.able()):
            self.settle()
        for place in self.able():
            if _is_able(self.net.machines[place]):
                self._count("update", self.net.update(place))
                self.settle()
        for place in self.able():
            self.last_words.append(self.speak(place))
            self.settle()


def _is_able(machine: Machine) -> bool:
    state = machine.state
    return state.me is not None and not state.desynced and state.me not in state.leaving


_SHOWN = 5


def run_groups(
    scenario: GroupScenario,
    progress: Progress = tell_nobody,
    keep_all: bool = False,
    thief: type[Burglar] = Burglar,
) -> GroupsReport:
    """Run a scenario to its end and judge it. Equal scenarios give equal reports."""
    began = time.perf_counter()
    course = Course(scenario, keep_all)
    course.run(progress)
    net = course.net
    troubles = [*divergences(net), *(each for machine in net.machines for each in machine.troubles)]
    progress(0.8, "breaking in")
    watch = thief(GROUP, net.overheard)
    verdicts = _thefts(course, watch)
    progress(0.9, "asking the removed")
    verdicts["leaked"] += leaks_to_removed(net, watch)
    updates = net.update_bytes()
    return GroupsReport(
        members=scenario.members,
        members_at_end=len(net.members()),
        ops=len(course.ops),
        updates=course.counts["update"],
        additions=course.counts["add"],
        removals=course.counts["remove"],
        leaves=course.counts["leave"],
        heals=course.counts["heal"],
        acks=sum(not each.clear and isinstance(decode_body(each.body), Acks) for each in net.overheard),
        messages=len(net.said),
        partitions=scenario.partitions,
        thefts=len(course.robberies),
        diverged=len(troubles),
        troubles=tuple(troubles[:_SHOWN]),
        **reading(net),
        **verdicts,
        bytes_per_update=round(fmean(updates), 1) if updates else 0.0,
        weak_starts=sum(machine.weak for machine in net.machines),
        trace_sha256=net.trace_sha256,
        wall_seconds=round(time.perf_counter() - began, 3),
    )


def divergences(net: GroupNet) -> Iterator[str]:
    """Yield the members that see another group, or follow other keys, than the first; for when all have
    met."""
    members = [net.machines[place] for place in net.members()]
    if not members:
        return
    view = agreement.members(members[0].state)
    keys = {member: members[0].state.ratchets.get(member) for member in view}
    here = [machine.state.me for machine in members]
    if sorted(view) != sorted(member for member in here if member is not None):
        yield "the members are not those who think that they are"
    for machine in members:
        state = machine.state
        if agreement.members(state) != view:
            yield f"{machine.name} sees other members"
        elif {member: state.ratchets.get(member) for member in view} != keys or None in keys.values():
            yield f"{machine.name} follows other keys"
        elif agreement.pending_by_member(state):
            yield f"{machine.name} still waits for acknowledgements"


def reading(net: GroupNet) -> dict[str, int]:
    """Count the messages that were read as they should be, and those that should not have been read."""
    present = {net.machines[place].state.me: net.machines[place] for place in net.members()}
    pairs = unreadable = late = misread = 0
    for said in net.said.values():
        for reader in said.readers:
            if reader in present:
                machine = present[reader]
                is_read = machine.opened.get((reader, said.id)) == said.text
                is_late = not is_read and said.by in machine.state.closed
                late += is_late
                pairs += not is_late
                unreadable += not is_read and not is_late
    for machine in net.machines:
        misread += sum(reader not in net.said[id].readers for reader, id in machine.opened)
    return {"pairs": pairs, "unreadable": unreadable, "late": late, "misread": misread}


def _thefts(course: Course, watch: Burglar) -> dict[str, Any]:
    """Count the messages that a thief of each single state, and one of all of them, could read."""
    net, counts = course.net, dict.fromkeys(("safe", "leaked", "read", "unread"), 0)
    healed: list[int] = []
    unhealed = 0
    groups: list[list[Theft]] = [[robbery.theft] for robbery in course.robberies]
    if len(groups) > 1:
        groups.append([robbery.theft for robbery in course.robberies])
    for number, thefts in enumerate(groups):
        safe = watch.safe(thefts)
        reader = watch.reader()
        for theft in thefts:
            reader.steal(theft.state)
        read = reader.read()
        counts["safe"] += len(safe)
        counts["leaked"] += sum(id in safe for id in read)
        counts["read"] += sum(id not in safe for id in read)
        counts["unread"] += sum(id not in safe and id not in read for id in net.said)
        unhealed += any(id not in safe for id in course.last_words)
        if number < len(course.robberies):
            healed.append(_healed_after(course, number, safe))
    return {
        **counts,
        "healed_after_ops": round(fmean(healed), 2) if healed else 0.0,
        "healed_after_ops_max": max(healed, default=0),
        "unhealed": unhealed,
    }


def _healed_after(course: Course, number: int, safe: frozenset[EventId]) -> int:
    """Count the operations between a theft and the last message that is not safe from it."""
    robbery = course.robberies[number]
    last = max(
        (said.at for said in course.net.said.values() if said.at >= robbery.heard and said.id not in safe),
        default=robbery.heard,
    )
    return sum(robbery.heard <= at <= last for at, _ in course.ops)


def leaks_to_removed(net: GroupNet, watch: Burglar, early: bool = False) -> int:
    """Count messages that all members their sender knew to be removed could read, with all their states.

    With `early` count those sent although healing was due, where no promise forbids it.
    """
    removed = watch.removed()
    by_removed: dict[frozenset[MemberId], list[EventId]] = {}
    for id, members in removed.items():
        if members and net.said[id].needed_heal is early:
            by_removed.setdefault(members, []).append(id)
    leaks = 0
    states = _states(net, {member: None for members in by_removed for member in members})
    for chain in _chains(by_removed):
        reader, robbed = watch.reader(), frozenset[MemberId]()
        for members in chain:
            for member in sorted(members - robbed):
                for data in states.get(member, ()):
                    reader.steal(data)
            robbed, read = members, reader.read()
            leaks += sum(id in read for id in by_removed[members])
    return leaks


def _chains(sets: Iterable[frozenset[MemberId]]) -> list[list[frozenset[MemberId]]]:
    """Order sets in chains, each set holding the one before: so one thief serves for a chain."""
    chains: list[list[frozenset[MemberId]]] = []
    for members in sorted(sets, key=lambda each: (len(each), sorted(each))):
        fitting = next((chain for chain in chains if chain[-1] <= members), None)
        if fitting is None:
            chains.append([members])
        else:
            fitting.append(members)
    return chains


def _states(net: GroupNet, wanted: dict[MemberId, None]) -> dict[MemberId, list[bytes]]:
    """Return all kept states of these members, from before they joined and while they were members."""
    found: dict[MemberId, list[bytes]] = {}
    for machine in net.machines:
        before: dict[bytes, list[bytes]] = {}
        for state in machine.kept:
            identity = state.prekeys.identity.public
            if state.me is None:
                before.setdefault(identity, []).append(encode_state(state))
            elif state.me in wanted:
                found.setdefault(state.me, before.get(identity, [])[:]).append(encode_state(state))
    return found
