"""A simulation of the overlay without trackers: interests, rings and events, with liars and churn.

Each node runs the shipped machine, on a virtual clock and with real keys and signatures; the group of private
intersections is a stand-in (`linnet.sim.signature_cache`).
"""

from __future__ import annotations

import gc
import resource
import time
from collections.abc import Sequence
from functools import partial
from typing import TypeAlias

from linnet.sim.overlay import snapshot
from linnet.sim.overlay.scenario import Interests, OverlayReport, OverlayScenario, drawn_interests
from linnet.sim.overlay.world import KNOWN, OverlayWorld, SimulatedNode, TopicWorld
from linnet.sim.report import Progress, tell_nobody
from linnet.sim.seeded_random import named_luck

Attendance: TypeAlias = Sequence[Sequence[tuple[float, float]]]
"""For each node the times when it is up, in seconds after the warm-up; the first few are always up."""
_LOOK = 10
"""Rounds between checks of all views."""
_GRACE = 2
"""Rounds at the end of a run without publications."""


class OverlayCourse:
    """One run, from the first start to the last repair."""

    def __init__(
        self,
        scenario: OverlayScenario,
        interests: Interests,
        progress: Progress,
        attendance: Attendance | None = None,
    ) -> None:
        self.scenario = scenario
        self.world = OverlayWorld(scenario, interests)
        self._progress = progress
        self._luck = named_luck(scenario.seed, "course")
        self.peak = 0.0
        self.least_connected = 1.0
        self.rounds = scenario.warmup + scenario.rounds + scenario.repair
        self._plan_events()
        self._attended = attendance is not None
        if attendance is not None:
            self._plan_attendance(attendance)

    def _plan_attendance(self, attendance: Attendance) -> None:
        """Schedule nodes to go and come back as given; all are up at the end."""
        world, first = self.world, self.scenario.warmup * self.world.period
        last = first + self.scenario.rounds * world.period
        for node, times in zip(world.nodes[KNOWN:], attendance[KNOWN:], strict=True):
            world.world.at(first, partial(world.leave, node))
            for start, end in times:
                if first + start < last:
                    world.world.at(first + start, partial(world.come_back, node))
                    world.world.at(min(first + end, last), partial(world.leave, node))
            world.world.at(last, partial(world.come_back, node))

    def _plan_events(self) -> None:
        scenario, period = self.scenario, self.world.period
        first, last = scenario.warmup, scenario.warmup + scenario.rounds - _GRACE
        for topic in range(scenario.topics):
            for _ in range(scenario.events):
                at = self._luck.uniform(first, max(first, last)) * period
                self.world.world.at(at, partial(self.world.publish, topic, self._luck))  # type: ignore[arg-type]

    def run(self) -> None:
        """Run all rounds."""
        scenario = self.scenario
        for number in range(1, self.rounds + 1):
            self.world.run(number * self.world.period)
            if scenario.warmup <= number < scenario.warmup + scenario.rounds - scenario.away:
                self._churn(number)
            if number % _LOOK == 0:
                self._look(number)
                self._progress(number / self.rounds, f"round {number} of {self.rounds}")

    def _churn(self, number: int) -> None:
        """Take some nodes down every so many rounds, and bring them back later."""
        scenario = self.scenario
        if not scenario.churn or self._attended or (number - scenario.warmup) % scenario.away:
            return
        able = [node for node in self.world.honest if node.up]
        leaving = self._luck.sample(able, min(len(able), round(scenario.churn * scenario.nodes)))
        for node in leaving:
            at = number + self._luck.random() * scenario.away * 0.5
            self.world.world.at(at * self.world.period, partial(self._away, node))

    def _away(self, node: SimulatedNode) -> None:
        world = self.world
        world.leave(node)
        back = world.world.elapsed + self.scenario.away * world.period
        world.world.at(back, partial(world.come_back, node))

    def _look(self, number: int) -> None:
        world = self.world
        if number >= _LOOK:
            self.peak = max(self.peak, snapshot.liar_share(world, snapshot.samples(world)))
        if number >= self.scenario.warmup and number % (5 * _LOOK) == 0:
            self.least_connected = min(self.least_connected, snapshot.connected(world))


def run_overlay(
    scenario: OverlayScenario,
    progress: Progress = tell_nobody,
    interests: Interests | None = None,
    attendance: Attendance | None = None,
) -> OverlayReport:
    """Run a scenario to its end; interests and attendance are drawn if they are not given."""
    scenario.check()
    began = time.monotonic()
    if interests is None:
        interests = drawn_interests(scenario.seed, scenario.nodes, scenario.topics, scenario.subscriptions)
    was_on = gc.isenabled()
    gc.disable()  # Nothing here goes in circles, and there are a great many small things.
    try:
        course = OverlayCourse(scenario, interests, progress, attendance)
        course.run()
        return report_of(course, time.monotonic() - began)
    finally:
        if was_on:
            gc.enable()


def report_of(course: OverlayCourse, wall: float) -> OverlayReport:
    """Make the report of a run."""
    world, scenario, meter = course.world, course.scenario, course.world.meter
    state = snapshot
    now = world.world.now
    status = [node.machine.status(now) for node in world.honest if node.up]
    subscriptions = sum(len(node.topics) for node in world.nodes)
    honest = [node for node in world.honest if node.up]
    told = [topic for node in honest for topic in node.peer.topics.values()]
    degrees = state.degrees(world)
    passed = max(1, meter.passed_on)
    return OverlayReport(
        nodes=scenario.nodes,
        topics=scenario.topics,
        subscriptions=subscriptions,
        liars=scenario.lying,
        rounds=scenario.rounds,
        events=len(meter.published),
        hit_ratio=round(meter.hit_ratio, 6),
        hit_ratio_after_repair=round(meter.repaired(map(world.peers, world.members)), 6),
        liar_view_share=round(state.liar_share(world, state.samples(world)), 4),
        liar_view_share_peak=round(course.peak, 4),
        liar_alike_share=round(state.liar_share(world, state.alikes(world)), 4),
        connected_topics=round(state.connected(world), 4),
        connected_topics_least=round(course.least_connected, 4),
        rings_right=round(state.rings_right(world), 4),
        mean_degree=round(sum(degrees) / max(1, len(degrees)), 2),
        mean_links=round(
            sum(len(world.world.linked(node.identity.peer)) for node in honest) / max(1, len(honest)), 2
        ),
        mean_hops=round(meter.hops / passed, 3),
        max_hops=meter.max_hops,
        mean_delay_ms=round(1000 * meter.delay / passed, 1),
        duplication=round(sum(topic.copies for topic in told) / max(1, meter.handed_over), 3),
        fetched=round(1 - meter.passed_on / max(1, meter.handed_over), 5),
        causal_violations=meter.causal_violations,
        repeated=meter.repeated,
        noise=sum(node.peer.noise for node in world.nodes),
        join_rounds=round(_median_join(world) / world.period, 2),
        messages=world.world.handled,
        intersections=sum(each.intersections for each in status),
        intersections_empty=sum(each.intersections_empty for each in status),
        trace_sha256=world.world.sha256(),
        wall_seconds=round(wall, 1),
        memory_mb=round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    )


def _median_join(world: TopicWorld) -> float:
    """Return the seconds from the start until half of all subscriptions of honest nodes had a neighbour."""
    start = world.world.now - world.world.elapsed
    pairs = [(node.identity.peer, world.topic_ids[topic]) for node in world.honest for topic in node.topics]
    times = sorted(world.meter.first_up.get(pair, world.world.now) - start for pair in pairs)
    return times[len(times) // 2] if times else 0.0
