"""What happens in a simulated group: who updates, adds, removes and speaks, who is cut off, who is robbed."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from linnet.core.errors import Refused
from linnet.core.ids import EventId
from linnet.core.reasons import Reason
from linnet.groups import agreement
from linnet.groups.ids import MemberId
from linnet.sim.groups_report import GroupScenario
from linnet.sim.groups_world import GroupNet, Machine
from linnet.sim.luck import named_luck
from linnet.sim.overheard import Theft

Progress = Callable[[float, str], None]

_ACTS = ("update", "add", "remove", "leave")
_WEIGHTS = (44, 34, 17, 5)
_SMALLEST = 3
"""Nobody removes others from a group of so few."""


class Robbery(Struct, frozen=True):
    """A theft, and when it was."""

    theft: Theft
    device: int
    heard: int
    """How much had been overheard by then."""
    ops: int
    """How many operations had been made."""


class Course:
    """One run of a scenario, from the creation to the last words."""

    def __init__(self, scenario: GroupScenario, keep_all: bool = False) -> None:
        scenario.check()
        self.scenario = scenario
        self.devices = scenario.members + max(2, scenario.members // 2)
        self.net = GroupNet(self.devices, scenario.seed, hardening=scenario.hardening, keep_all=keep_all)
        self.luck = named_luck(scenario.seed, "groups")
        self.counts = dict.fromkeys((*_ACTS, "heal"), 0)
        self.ops: list[tuple[int, EventId]] = []
        """Each operation that counts, with what had been overheard by then."""
        self.robberies: list[Robbery] = []
        self.last_words: list[EventId] = []

    def run(self, tell: Progress) -> None:
        """All of it."""
        everybody = list(range(self.scenario.members))
        self.net.create(0, everybody[1:])
        self.settle()
        thefts = {self.luck.randrange(self.scenario.ops): None for _ in range(self.scenario.thefts)}
        robbed = [*thefts, *(self.luck.randrange(self.scenario.ops) for _ in range(self.scenario.thefts))]
        robbed = robbed[: self.scenario.thefts]
        for turn in range(self.scenario.ops):
            tell(turn / self.scenario.ops * 0.7, f"operation {turn + 1}")
            self._partition(turn)
            self._act()
            for _ in range(robbed.count(turn)):
                self._rob()
            for _ in range(self._messages()):
                self._speak()
            self._carry()
        tell(0.7, "all meet again")
        self._end()

    # What is random.

    def _messages(self) -> int:
        whole = int(self.scenario.messages)
        return whole + (self.luck.random() < self.scenario.messages - whole)

    def _partition(self, turn: int) -> None:
        """The middle of each stretch of the run is one in which two halves are apart."""
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
        """All hear each other again, and some quiet days go by."""
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
        """A member adds a device, if that has keys to be added by."""
        self.net.publish_keys(other)
        try:
            self._count("add", self.net.add(place, other))
        except Refused as error:
            # It was added and removed again, and has not heard of either: it will publish other keys.
            if error.reason is not Reason.MISSING_PREKEYS:
                raise

    def able(self) -> list[int]:
        """Members that may act: not desynced, and have not asked to leave."""
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
        """A message of a member, after what has to come before it."""
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
        """Some devices hear what is there for them, and acknowledge it sooner or later."""
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

    # What is not.

    def tidy(self, place: int) -> bool:
        """Whether a member had to remove others first: who asked, who is there twice or under an old key."""
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
        """Everything arrives and is acknowledged."""
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
        """All meet, put their group in order and heal; then each has a last word."""
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
