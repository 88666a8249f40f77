"""One run of the open world: a plan of faults, the usual work meanwhile, and a judgement at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from msgspec import Struct

from linnet.core.errors import ConfigError
from linnet.sim.judges.verdict import Complaint, Rule
from linnet.sim.nemesis.budget import MINUTE, Situation, Spent, Storm, over_budget
from linnet.sim.nemesis.content import ContentWay
from linnet.sim.nemesis.faults import Fault, Strike, draw_plan
from linnet.sim.nemesis.open_world import OpenWorld
from linnet.sim.nemesis.places import PlacesWay
from linnet.sim.nemesis.rooms import RoomsWay
from linnet.sim.nemesis.streams import StreamsWay
from linnet.sim.report import Progress, tell_nobody
from linnet.sim.seeded_random import named_luck
from linnet.trace.columns import ColumnTrace

CHAOS = 240.0
"""Virtual seconds in which faults strike."""
GAP = 3.0
"""Seconds between two acts, on average."""
RESTARTED = 5.0
"""Seconds until a node that ended by itself is started again, and the life of one that ends over and over."""
WATCHED = 180.0
"""Seconds for which each situation without application work is watched."""

_SHOWN = 5
"""The most machine failures that a report of one run lists."""


class NemesisReport(Struct, frozen=True, kw_only=True):
    """The outcome of one run."""

    way: str
    seed: int
    faults: tuple[str, ...]
    """The faults in words, in the order of time."""
    complaints: tuple[Complaint, ...]
    coverage: dict[str, int]
    """How often each kind of fault struck."""
    worst_dials: int
    """The most dials in a minute from one node to one that did not answer."""
    spent: dict[str, Spent]
    """The most messages and steps of one node in a minute, by situation."""
    virtual_seconds: float
    trace_sha256: str

    @property
    def ok(self) -> bool:
        """Whether every promise was kept."""
        return not self.complaints


class Course:
    """One world, and the faults that strike it."""

    def __init__(self, world: OpenWorld, chosen: Sequence[Fault]) -> None:
        self.world = world
        self.plan: list[Strike] = []
        self.struck: Counter[str] = Counter()
        self._chosen = chosen
        self._luck = named_luck(world.seed, f"nemesis/{world.way}/plan")
        self._down: dict[str, float] = {}
        """When each node that is down is started again."""

    def run(self, tell: Progress) -> list[Complaint]:
        """Run the whole course, and return the broken promises."""
        world = self.world
        tell(0.0, "setting up")
        world.set_up()
        begin = world.network.elapsed + 5.0
        self.plan = draw_plan(self._luck, world.cast, self._chosen, begin, CHAOS)
        for strike in self.plan:
            world.network.at(strike.at, partial(self._strike, strike))
        self._work(begin + CHAOS, tell)
        self._calm()
        world.run(world.quiet / 2)
        tell(0.8, "last words")
        world.finish()
        world.run(world.quiet / 2)
        tell(0.95, "judging")
        complaints = world.judge()
        tell(0.97, "watching what it costs")
        self._watch()
        complaints += [Complaint(Rule.FAILED, text) for text in world.failures[:_SHOWN]]
        return complaints + over_budget(world.way, world.account, world.names)

    def _watch(self) -> None:
        """Watch the spending of nodes without application work, with and without the nodes that they rely
        on."""
        world, account = self.world, self.world.account
        account.situation = Situation.QUIET
        world.run(WATCHED)
        account.situation = Situation.AWAY
        for name in world.cast.anchors:
            world.kill(name, silent=True)
        world.run(WATCHED)
        account.situation = Situation.ALONE
        world.part_all()
        world.run(WATCHED)
        account.situation = Situation.RESTARTED
        world.heal()
        last = self._luck.choice(world.living(world.cast.nodes))
        for name in world.identities:
            if name != last:
                world.kill(name)
        for _ in range(round(WATCHED / RESTARTED)):
            world.stop(last)
            world.start(last)
            world.run(RESTARTED)
        world.run(MINUTE)

    def _work(self, until: float, tell: Progress) -> None:
        world = self.world
        begun = world.network.elapsed
        while world.network.elapsed < until:
            world.run(self._luck.expovariate(1 / GAP))
            self._revive()
            world.act()
            tell(0.1 + 0.6 * (world.network.elapsed - begun) / (until - begun), "faults strike")

    def _revive(self) -> None:
        """Restart nodes that ended by themselves, as with a full disk, as their operators would."""
        for name, at in list(self._down.items()):
            if self.world.network.elapsed >= at:
                del self._down[name]
                self.world.start(name)
        for name in self.world.identities:
            if not self.world.is_online(name) and name not in self._down and name not in self.world.dead:
                self._down[name] = self.world.network.elapsed + RESTARTED

    def _strike(self, strike: Strike) -> None:
        world = self.world
        ends = world.network.elapsed + strike.seconds
        self.struck[strike.fault.name] += 1
        match strike.fault:
            case Fault.PARTITION:
                world.part(strike.targets, silent=self._luck.random() < 0.5)
                world.network.at(ends, world.heal)
            case Fault.LOSS:
                world.network.lose(strike.amount)
                world.network.at(ends, lambda: world.network.lose(0.0))
            case Fault.NEWCOMER:
                world.welcome(strike.targets[0])
            case Fault.CHANGE:
                world.change()
            case Fault.REVOKED:
                (thief,) = strike.targets
                world.set_clock(thief, strike.amount)
                world.revoke(thief)
                world.network.at(ends, lambda: world.set_clock(thief, 0.0))
            case _:
                for name in strike.targets:
                    self._strike_node(strike, name, ends)

    def _strike_node(self, strike: Strike, name: str, ends: float) -> None:
        world, at = self.world, self.world.network.at
        match strike.fault:
            case Fault.PAUSE:
                world.pause(name)
                at(ends, lambda: world.unpause(name))
            case Fault.CLOCK:
                world.set_clock(name, strike.amount)
                at(ends, lambda: world.set_clock(name, 0.0))
                if self._luck.random() < 0.5:
                    self._take_down(name, ends + 1.0)
            case Fault.FULL_DISK:
                world.fill_disk(name, True)
                at(ends, lambda: world.fill_disk(name, False))
            case Fault.DAMAGED_DISK:
                self._take_down(name, ends)
                world.damage(name)
            case Fault.DEAD:
                world.unpause(name)
                world.dead[name] = world.network.elapsed
                world.kill(name, silent=True)
            case Fault.MOVE:
                world.move(name)
                self._take_down(name, ends)
            case _:
                self._take_down(name, ends, silent=strike.fault is Fault.KILL)

    def _take_down(self, name: str, until: float, *, silent: bool = False) -> None:
        world = self.world
        world.unpause(name)
        world.kill(name, silent=silent)
        self._down[name] = until

    def _calm(self) -> None:
        """End all faults that can be ended: only dead nodes stay dead."""
        world = self.world
        world.is_calm = True
        world.heal()
        world.network.lose(0.0)
        for name in world.identities:
            world.unpause(name)
            world.fill_disk(name, False)
            if world.offsets.get(name):
                world.set_clock(name, 0.0)
        for name in world.identities:
            world.start(name)


def run_course(
    way: str,
    seed: int,
    chosen: Sequence[Fault] = tuple(Fault),
    progress: Progress = tell_nobody,
) -> NemesisReport:
    """Run one seed of one way to subscribe, and judge it."""
    trace = ColumnTrace()
    world = WAYS[way](seed, trace)
    course = Course(world, chosen)
    try:
        complaints = course.run(progress)
    except Storm as storm:
        complaints = [Complaint(Rule.BUDGET, str(storm))]
    return NemesisReport(
        way=world.way,
        seed=seed,
        faults=tuple(map(str, course.plan)),
        complaints=tuple(complaints),
        coverage=dict(course.struck),
        worst_dials=world.account.dials.worst(MINUTE)[0],
        spent=world.account.spent(),
        virtual_seconds=world.network.elapsed,
        trace_sha256=trace.sha256(),
    )


WAYS: dict[str, Callable[[int, ColumnTrace], OpenWorld]] = {
    way.way: way for way in (StreamsWay, RoomsWay, PlacesWay, ContentWay)
}


def coverage_of(reports: Iterable[NemesisReport]) -> dict[str, int]:
    """Count how often each kind of fault struck in all of these."""
    total: Counter[str] = Counter({fault.name: 0 for fault in Fault})
    for report in reports:
        total.update(report.coverage)
    return dict(total)


def chosen_faults(text: str) -> tuple[Fault, ...]:
    """Parse the faults of an option: ``all``, or names with commas between; `ConfigError` for another
    word."""
    if text == "all":
        return tuple(Fault)
    names = {fault.name.lower().replace("_", "-"): fault for fault in Fault}
    words = [word.strip() for word in text.split(",")]
    for word in words:
        if word not in names:
            raise ConfigError(f"{word}: no fault of the nemesis; there are all, {', '.join(names)}")
    return tuple(names[word] for word in words)
