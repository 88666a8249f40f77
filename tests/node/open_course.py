"""One run of the open world over real processes: a plan of faults, the usual work meanwhile, a judgement."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from random import Random

from msgspec.structs import replace
from tests.node.killed_world import until
from tests.node.struck_world import StruckWorld

from linnet.sim.judges.verdict import Complaint, Rule
from linnet.sim.nemesis.course import WAYS
from linnet.sim.nemesis.faults import HARD, Cast, Fault, Strike, draw_plan

FAULTS = tuple(fault for fault in Fault if fault is not Fault.REVOKED)
"""All that can be done to processes; a device that is revoked while it lies about time is simulated only."""

HARD_FAULTS = tuple(fault for fault in FAULTS if fault in HARD)
DEALT = 4
"""Hard faults that a seed draws from."""
STEPS = 5

LENGTH = 15.0
"""Seconds in which faults strike."""
PACE = 20.0
"""How much shorter faults last than in the simulator."""
GAP = 0.3
"""Seconds between two acts."""
RESTARTED = 0.5
"""Seconds until a node that ended by itself is started again."""
SETTLES = 60.0
"""Seconds at the end, at most, until everything is as promised."""
STARTS = 120.0
"""Seconds within which all nodes run again, on a machine that does other things too."""
ANSWERS = 60.0


def plan_of(cast: Cast, way: str, seed: int) -> list[Strike]:
    """What strikes in one run. Who dies does so at the end: the dead cannot be struck.

    Hard faults are dealt to seeds in turn: few seeds have them all, and the first seeds of all ways too.
    """
    first = DEALT * (seed + tuple(WAYS).index(way) - 1)
    step = 1 + (seed - 1) % STEPS
    dealt = [HARD_FAULTS[(first + step * number) % len(HARD_FAULTS)] for number in range(DEALT)]
    chosen = (*dealt, Fault.NEWCOMER, Fault.CHANGE)
    strikes = draw_plan(Random(f"plan {way} {seed}"), cast, chosen, 0.0, LENGTH * 0.75)
    return [replace(each, at=LENGTH * 0.8) if each.fault is Fault.DEAD else each for each in strikes]


class OpenCourse:
    """One world, and what is done to it."""

    def __init__(self, world: StruckWorld) -> None:
        self.world = world
        self.plan = plan_of(world.cast, world.way, world.seed)
        self.struck: Counter[Fault] = Counter()
        self.took: dict[str, float] = {}
        """Seconds of each part of the run."""
        self._luck = Random(f"course {world.way} {world.seed}")
        self._due: list[tuple[float, Callable[[], None]]] = []
        self._down: dict[str, float] = {}
        """When who is down is started again."""
        self._now = 0.0
        """Seconds of the plan so far."""
        self._ended = 0
        """How often a node ended by itself."""

    def run(self) -> list[Complaint]:
        """All of it; what is not as promised."""
        world = self.world
        self._measured("set up", world.set_up)
        self._measured("faults", self._work)
        self._measured("calm", self._calm)
        self._measured("last words", self._finish)
        self._measured("settled", lambda: until(lambda: not world.judge(), SETTLES))
        # What came twice, or what nobody said, may come late.
        time.sleep(1.0)
        complaints = world.judge()
        complaints += [Complaint(Rule.FAILED, each) for each in self._not_running()]
        return complaints

    @property
    def effects(self) -> dict[Fault, int]:
        """What came of faults that could strike without any effect."""
        world = self.world
        found = {
            Fault.PARTITION: world.proxies.refused,
            Fault.LOSS: world.proxies.lost,
            Fault.DAMAGED_DISK: world.damaged_units,
            Fault.FULL_DISK: self._ended,
        }
        return {fault: effect for fault, effect in found.items() if self.struck[fault]}

    def _measured(self, what: str, act: Callable[[], object]) -> None:
        began = time.monotonic()
        act()
        self.took[what] = round(time.monotonic() - began, 1)

    def _finish(self) -> None:
        self.world.await_calls(ANSWERS)
        self.world.finish()
        self.world.await_calls(ANSWERS)

    def _work(self) -> None:
        for strike in self.plan:
            self._at(strike.at, partial(self._strike, strike))
        while self._due or self._now < LENGTH:
            self._tick()
            self.world.act()

    def _tick(self) -> None:
        gap = GAP * self._luck.uniform(0.5, 1.5)
        time.sleep(gap)
        # While a slow machine starts nodes and nobody can be asked, nothing else would be tried.
        if self.world.living(self.world.cast.nodes) or not self.world.is_starting:
            self._now += gap
        due = sorted((each for each in self._due if each[0] <= self._now), key=lambda each: each[0])
        self._due = [each for each in self._due if each[0] > self._now]
        for _, act in due:
            act()
        self._revive()
        self.world.look()

    def _at(self, when: float, act: Callable[[], None]) -> None:
        self._due.append((when, act))

    def _revive(self) -> None:
        """Whoever is away comes back in time; whoever ended by itself is started again."""
        world, now = self.world, self._now
        for name in self._should_run():
            if world.nodes[name].is_up or world.is_doing(name):
                continue
            if name not in self._down:
                self._ended += 1
            if now >= self._down.setdefault(name, now + RESTARTED):
                del self._down[name]
                world.begin_start(name)

    def _should_run(self) -> list[str]:
        return [name for name in self.world.nodes if name not in {*self.world.dead, *self.world.absent}]

    def _not_running(self) -> list[str]:
        down = [name for name in self._should_run() if not self.world.nodes[name].is_up]
        return [f"{name} does not run in the end" for name in down]

    def _strike(self, strike: Strike) -> None:
        world, seconds = self.world, strike.seconds / PACE
        ends = self._now + seconds
        self.struck[strike.fault] += 1
        world.note(str(strike))
        match strike.fault:
            case Fault.PARTITION:
                world.part(strike.targets, silent=self._luck.random() < 0.5)
                self._at(ends, world.heal)
            case Fault.LOSS:
                world.proxies.lose(strike.amount)
                self._at(ends, lambda: world.proxies.lose(0.0))
            case Fault.NEWCOMER:
                self._welcome(strike.targets[0])
            case Fault.CHANGE:
                world.change()
            case _:
                for name in strike.targets:
                    if name not in world.dead:
                        self._strike_node(strike, name, ends)

    def _strike_node(self, strike: Strike, name: str, ends: float) -> None:
        world = self.world
        match strike.fault:
            case Fault.PAUSE:
                world.pause(name)
                self._at(ends, lambda: world.unpause(name))
            case Fault.CLOCK:
                self._set_clock(name, strike.amount)
                self._at(ends + RESTARTED, lambda: self._set_clock(name, 0.0))
            case Fault.FULL_DISK:
                world.fill_disk(name, True)
                self._at(ends, lambda: world.fill_disk(name, False))
            case Fault.DAMAGED_DISK:
                self._take_down(name, ends)
                world.damage(name)
            case Fault.DEAD:
                world.dead[name] = time.monotonic()
                world.kill(name)
            case Fault.MOVE:
                self._take_down(name, ends)
                world.move(name)
            case Fault.AWAY:
                world.stop(name)
                self._down[name] = ends
            case _:
                self._take_down(name, ends)

    def _set_clock(self, name: str, ahead: float) -> None:
        """A node keeps its own time while it runs, whatever its clock does: so it starts with another."""
        if name not in self.world.dead:
            self._take_down(name, self._now)
            self.world.set_clock(name, ahead)

    def _take_down(self, name: str, until: float) -> None:
        self.world.kill(name)
        self._down[name] = until

    def _welcome(self, name: str) -> None:
        world = self.world
        world.absent.discard(name)

        def come() -> bool:
            if not world.is_up(name):
                return False
            world.welcome(name)
            return True

        self._down[name] = 0.0
        world.insist(come)

    def _calm(self) -> None:
        """Whatever can be mended is: only who is dead stays so."""
        world = self.world
        world.heal()
        world.proxies.lose(0.0)
        for name in self._should_run():
            world.unpause(name)
            world.fill_disk(name, False)
            if world.ahead[name]:
                self._set_clock(name, 0.0)
        self._down.clear()

        def is_calm() -> bool:
            self._tick()
            return all(world.is_up(name) for name in self._should_run())

        until(is_calm, STARTS)
