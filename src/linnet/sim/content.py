"""The scenario of ``linnet sim content``: who should have had what, who had it, and how often."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from enum import StrEnum

from msgspec import Struct

from linnet.content.attribute_keys import attribute_key
from linnet.content.commands import Outcome
from linnet.content.config import ContentConfig
from linnet.content.delivery_path import NOTICE
from linnet.content.fast.commands import GroupOutcome
from linnet.content.fast.memberships import CONVEY
from linnet.content.predicate import Predicate, read_attributes, read_predicate
from linnet.core.ids import EventId, PeerId
from linnet.sim.content_groups import GroupsWorld
from linnet.sim.content_workload import Course, Publication, Workload
from linnet.sim.content_world import ContentWorld
from linnet.sim.links import LinkModel, named_latency
from linnet.sim.luck import named_luck
from linnet.trace.columns import ColumnTrace
from linnet.trace.records import Kind

Progress = Callable[[float, str], None]
_SHOWN = 5
_SETTLING = 2.0
"""Seconds after subscribing, as published."""
_STEP = 1.0


class Variant(StrEnum):
    """How events are brought to those who want them."""

    BASE_UNRELIABLE = "base-unreliable"
    BASE_RELIABLE = "base-reliable"
    REDIRECT_UNRELIABLE = "redirect-unreliable"
    REDIRECT_RELIABLE = "redirect-reliable"
    FAST = "fast"
    """Groups of publishers (FastDelivery), found on boards and joined."""


class ContentScenario(Struct, frozen=True):
    """One network and what happens in it."""

    nodes: int = 60
    variant: Variant = Variant.BASE_RELIABLE
    course: Course = Course.NORMAL
    loss: float = 0.0
    """Share of messages on links that vanish."""
    latency: str = "constant:10"
    contacts: int | None = None
    """Nodes that each node knows at most; None: as many as its buckets hold."""
    confirm: bool = True
    """Whether a node looks all over the network before it acts as rendezvous."""
    backups: int = 2
    """Nodes that keep the filters of each: so many crashes at once lose nothing."""
    crashes: int | None = None
    """In a fault, nodes with consecutive ids that crash right before it is said; None: as published. Where
    there are acknowledgements they crash silently: their links seem to be up until pings fail."""
    place: int = 0
    """The place of the first of them in the order of ids."""
    lately: float = 30.0
    """Seconds for which nodes keep events for those who come from another next hop; 0: backups alone help."""
    seed: int = 1
    limit: float = 600.0
    """Virtual seconds after which what has not arrived is missing."""


class ContentReport(Struct, frozen=True, kw_only=True):
    """What came of it. Times are simulated: links take time, processors do not."""

    nodes: int
    variant: str
    scenario: str
    seed: int
    subscriptions: int
    publications: int
    expected: int
    """Pairs of an event and a node with a subscription that accepts it."""
    missing: int
    undelivered: tuple[str, ...]
    """The first of those that are missing, in words."""
    duplicates_share: float
    """Further receptions at nodes that want an event, before any are left out, over all that are expected."""
    false_positives: int
    mean_latency_ms: float
    max_latency_ms: float
    mean_hops: float
    """Links from the publisher to the application, on the way up and down."""
    max_hops: int
    rendezvous_disagreements: int
    """Nodes that act as rendezvous of an attribute though another is closer to it."""
    crashed: int
    untold: int
    """Publications that are missing somewhere though their publisher was told that all have them."""
    unsettled: int
    """Publications of which the publisher did not learn that all have it; of unreliable ones none does."""
    most_filters: int
    """Filters at the node that has most."""
    messages: int
    virtual_seconds: float
    trace_sha256: str
    wall_seconds: float

    @property
    def ok(self) -> bool:
        """Whether all who should have an event have it, and nobody else."""
        return self.missing == 0 and self.false_positives == 0


class _Figures(Struct, frozen=True):
    """What is counted in the end."""

    expected: int
    missing: tuple[str, ...]
    extra: int
    unasked: int
    late: list[float]
    hops: list[int]
    unsettled: int
    untold: int


class _Judge:
    """Who should have what, worked out from all predicates at once."""

    def __init__(self, asked: list[tuple[str, str]], further: list[tuple[str, str]], down: list[str]) -> None:
        self.before: dict[str, list[Predicate]] = {}
        self.ever: dict[str, list[Predicate]] = {}
        for name, text in asked:
            if name not in down:
                self.before.setdefault(name, []).append(read_predicate(text))
        for name, text in [*asked, *further]:
            self.ever.setdefault(name, []).append(read_predicate(text))
        self._expected: dict[str, list[str]] = {}
        self._may_have: dict[tuple[str, str], bool] = {}

    def expected(self, said: Publication) -> list[str]:
        """The nodes that must have an event."""
        text = said.attributes
        if text not in self._expected:
            event = read_attributes(text)
            self._expected[text] = [
                name for name, asked in self.before.items() if any(each.covers(event) for each in asked)
            ]
        return self._expected[text]

    def may_have(self, name: str, attributes: str) -> bool:
        """Whether a node ever asked for such an event."""
        place = (name, attributes)
        if place not in self._may_have:
            event = read_attributes(attributes)
            self._may_have[place] = any(each.covers(event) for each in self.ever.get(name, ()))
        return self._may_have[place]


def run_content(
    scenario: ContentScenario, trace: ColumnTrace | None = None, progress: Progress | None = None
) -> ContentReport:
    """Run a scenario to its end and judge it. Equal scenarios give equal reports and traces."""
    tell = progress or _silent
    began = time.perf_counter()
    kept = ColumnTrace() if trace is None else trace
    world = _world(scenario, kept)
    names = list(world.names)
    named_luck(scenario.seed, "roles").shuffle(names)
    workload = Workload(names, scenario.course)
    _open_groups(world, workload, scenario.limit)
    tell(0.1, "nodes subscribe")
    for name, predicate in workload.subscriptions():
        world.subscribe(name, predicate)
    _settle(world, scenario.limit)
    world.run(_SETTLING)
    crashed = _crash(world, workload, scenario, world.config.reliable)
    tell(0.5, "nodes publish")
    published_at = world.network.now
    for name, predicate in workload.further():
        world.subscribe(name, predicate)
    said = [
        (each, world.publish(each.node, each.attributes, each.body))
        for each in workload.publications()
        if each.node not in crashed
    ]
    world.run(_STEP)
    _settle(world, scenario.limit)
    tell(0.9, "judging")
    judge = _Judge(workload.subscriptions(), workload.further(), crashed)
    figures = _figures(world, judge, said, published_at, kept)
    return ContentReport(
        nodes=scenario.nodes,
        variant=scenario.variant.value,
        scenario=scenario.course.value,
        seed=scenario.seed,
        subscriptions=len(workload.subscriptions()) + len(workload.further()),
        publications=len(said),
        expected=figures.expected,
        missing=len(figures.missing),
        undelivered=figures.missing[:_SHOWN],
        duplicates_share=figures.extra / figures.expected if figures.expected else 0.0,
        false_positives=figures.unasked,
        mean_latency_ms=_mean(figures.late),
        max_latency_ms=max(figures.late, default=0.0),
        mean_hops=_mean(figures.hops),
        max_hops=max(figures.hops, default=0),
        crashed=len(crashed),
        untold=figures.untold,
        unsettled=figures.unsettled,
        rendezvous_disagreements=_disagreements(world),
        most_filters=max(len(scout.table) for scout in world.scouts.values()),
        messages=world.network.handled,
        virtual_seconds=world.network.elapsed,
        trace_sha256=kept.sha256(),
        wall_seconds=time.perf_counter() - began,
    )


def _world(scenario: ContentScenario, kept: ColumnTrace) -> ContentWorld:
    config = ContentConfig(
        redirect=scenario.variant in (Variant.REDIRECT_UNRELIABLE, Variant.REDIRECT_RELIABLE),
        reliable=scenario.variant not in (Variant.BASE_UNRELIABLE, Variant.REDIRECT_UNRELIABLE),
        confirm=scenario.confirm,
        backups=scenario.backups,
        lately=scenario.lately,
    )
    links = LinkModel(named_latency(scenario.latency), loss=scenario.loss)
    kind = GroupsWorld if scenario.variant is Variant.FAST else ContentWorld
    return kind(scenario.nodes, scenario.seed, config, links, kept, scenario.contacts)


def _open_groups(world: ContentWorld, workload: Workload, limit: float) -> None:
    """Whoever will say something has a group for it, where there are groups."""
    if isinstance(world, GroupsWorld):
        for each in workload.publications():
            world.open(each.node, each.attributes)
        _settle(world, limit)


def _crash(world: ContentWorld, workload: Workload, scenario: ContentScenario, silent: bool) -> list[str]:
    """Let nodes crash; who they were."""
    if scenario.course is not Course.FAULT or scenario.crashes is None:
        crashed = workload.crashed()
        for name in crashed:
            world.crash(name)
        world.run(1.0 if crashed else 0.0)
        return crashed
    ordered = world.in_order()
    crashed = [ordered[(scenario.place + each) % len(ordered)] for each in range(scenario.crashes)]
    for name in crashed:
        world.crash(name, silent=silent)
    if not silent:
        world.run(0.05)
    return crashed


def _settle(world: ContentWorld, limit: float) -> None:
    """Run until no node waits for anything, or for so long."""
    end = world.network.elapsed + limit
    world.run(_STEP)
    while world.network.elapsed < end and not all(
        world.is_settled(name) for name in world.names if world.network.is_up(world.identities[name].peer)
    ):
        world.run(_STEP)


def _figures(
    world: ContentWorld,
    judge: _Judge,
    said: list[tuple[Publication, int]],
    published_at: float,
    kept: ColumnTrace,
) -> _Figures:
    events = _events_of(world, said)
    wanted: dict[tuple[str, EventId], Publication] = {}
    missing: list[str] = []
    incomplete: dict[int, None] = {}
    handed = {name: world.handed(name) for name in world.names}
    for publication, request in said:
        event = events.get(request)
        for name in judge.expected(publication):
            if event is None or event not in handed[name]:
                missing.append(f"{name} misses {publication.attributes} of {publication.node}")
                incomplete[request] = None
            if event is not None:
                wanted[name, event] = publication
    late = [
        1000 * (at - published_at) for name, event in wanted if (at := handed[name].get(event)) is not None
    ]
    matches = [(name, match) for name, each in world.matches.items() for match, _ in each]
    receptions = _receptions(world, kept)
    extra = sum(max(0, receptions.get(pair, 0) - 1) for pair in wanted)
    expected = sum(len(judge.expected(publication)) for publication, _ in said)
    outcomes = [world.network.answers.get(request) for _, request in said]
    return _Figures(
        expected=expected,
        missing=tuple(missing),
        extra=extra,
        unasked=sum(not judge.may_have(name, match.attributes) for name, match in matches),
        late=late,
        hops=[match.hops for _, match in matches],
        unsettled=sum(not _is_settled(outcome) for outcome in outcomes),
        untold=sum(_is_settled(world.network.answers.get(request)) for request in incomplete),
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _is_settled(outcome: object) -> bool:
    if isinstance(outcome, GroupOutcome):
        return not outcome.missed and not outcome.silent
    return isinstance(outcome, Outcome) and all(
        fate.reason is None and not fate.missed and fate.settled for fate in outcome.fates
    )


def _events_of(world: ContentWorld, said: list[tuple[Publication, int]]) -> dict[int, EventId]:
    """The events of publications, by the answers, or by who was handed what they said."""
    found: dict[int, EventId] = {}
    by_body = {match.body: match.event for each in world.matches.values() for match, _ in each}
    for publication, request in said:
        outcome = world.network.answers.get(request)
        if isinstance(outcome, Outcome | GroupOutcome):
            found[request] = outcome.event
        elif publication.body in by_body:
            found[request] = by_body[publication.body]
    return found


def _receptions(world: ContentWorld, kept: ColumnTrace) -> dict[tuple[str, EventId], int]:
    """How often an event came down to a node, whatever was done with it then."""
    counted: dict[tuple[str, EventId], int] = {}
    for row in kept.rows():
        if (
            row.note in (NOTICE, CONVEY)
            and row.event is not None
            and row.kind in (Kind.RECEIVED, Kind.DUPLICATE)
        ):
            pair = (world.node_of[PeerId(row.node)], EventId(row.event))
            counted[pair] = counted.get(pair, 0) + 1
    return counted


def _disagreements(world: ContentWorld) -> int:
    return sum(
        world.rendezvous(attribute_key(attribute)) != name
        for name, scout in world.scouts.items()
        if world.network.is_up(world.identities[name].peer)
        for attribute in scout.elections.held
    )


def _silent(done: float, what: str) -> None:
    """Nobody watches."""
