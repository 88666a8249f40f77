"""The scenario of ``linnet sim content``: which nodes should have got which events, which got them, and how
often."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
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
from linnet.sim.content.world import ContentWorld, GroupsWorld
from linnet.sim.links import LinkModel, named_latency
from linnet.sim.report import Progress, tell_nobody
from linnet.sim.seeded_random import named_luck
from linnet.trace.columns import ColumnTrace
from linnet.trace.records import Kind

SUBSCRIBED = (
    ("portugal/surf", "ipfs"),
    ("ipfs", "portugal/soccer"),
    ("ipfs", "surf/bali"),
    ("ipfs", "surf/bali/trip/price[1000,1500]"),
    ("ipfs", "surf/trip/price[1000,2000]"),
    ("ipfs", "surf/trip/price[1000,1400]"),
)
"""The predicates of each of the six groups of subscribers."""

FURTHER = (
    ("surf/madeira", "dogecoin"),
    ("dogecoin", "surf/azores"),
    ("dogecoin", "surf/bali"),
    ("dogecoin", "bitcoin/price[10000,15000]"),
    ("dogecoin", "temperature[30,40]"),
    ("dogecoin", "ronaldo/sporting"),
)
"""The further predicates while events are on their way, in a burst of subscriptions."""

SAID_BY_SUBSCRIBERS = (
    "surf/bali/trip/price={}",
    "surf/hawai/trip/price={}",
    "ipfs",
    "portugal/soccer",
    "ipfs",
    "portugal/surf",
)
"""The attributes that each subscriber publishes in a burst of events; the price goes up within a group."""

SAID = ("ipfs", "portugal/surf", "surf/bali/trip/price=1050", "portugal/soccer")
"""The attributes that the publishers publish."""


class Course(StrEnum):
    """The course of a run."""

    NORMAL = "normal"
    """All subscribe, then the publishers publish."""
    SUB_BURST = "sub-burst"
    """While the publishers publish, all subscribe to more."""
    EVENT_BURST = "event-burst"
    """All nodes publish at once."""
    FAULT = "fault"
    """Two subscribers of the last group crash a second before the publications."""


class Publication(Struct, frozen=True):
    """An event that a node is to publish."""

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
        """Return the group of a subscriber."""
        return number % len(SUBSCRIBED)

    def subscriptions(self) -> list[tuple[str, str]]:
        """Return the subscriptions made before anything is published."""
        return self._asked(SUBSCRIBED)

    def further(self) -> list[tuple[str, str]]:
        """Return the subscriptions made while events are published."""
        return self._asked(FURTHER) if self.course is Course.SUB_BURST else []

    def _asked(self, groups: tuple[tuple[str, str], ...]) -> list[tuple[str, str]]:
        return [
            (name, predicate)
            for number, name in enumerate(self.subscribers)
            for predicate in groups[self.group(number)]
        ]

    def publications(self) -> list[Publication]:
        """Return the publications, all at one time."""
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
        """Return the nodes that crash before the publications."""
        if self.course is not Course.FAULT:
            return []
        last = [name for number, name in enumerate(self.subscribers) if self.group(number) == 5]
        return last[-2:]


_SHOWN = 5
_SETTLING = 2.0
"""Seconds after subscribing, as published."""
_STEP = 1.0


def draw_workload(names: list[str], course: Course, seed: int) -> Workload:
    """Make a workload with publishers drawn from the seed."""
    drawn = list(names)
    named_luck(seed, "roles").shuffle(drawn)
    return Workload(drawn, course)


class Variant(StrEnum):
    """The way in which events reach subscribers."""

    BASE_UNRELIABLE = "base-unreliable"
    BASE_RELIABLE = "base-reliable"
    REDIRECT_UNRELIABLE = "redirect-unreliable"
    REDIRECT_RELIABLE = "redirect-reliable"
    FAST = "fast"
    """Groups of publishers (FastDelivery), found on boards and joined."""


class ContentScenario(Struct, frozen=True):
    """One network and the course of events in it."""

    nodes: int = 60
    variant: Variant = Variant.BASE_RELIABLE
    course: Course = Course.NORMAL
    loss: float = 0.0
    """Share of messages lost on links."""
    latency: str = "constant:10"
    contacts: int | None = None
    """The most nodes that each node knows; None: as many as its buckets hold."""
    confirm: bool = True
    """Whether a node does a full lookup before it acts as rendezvous."""
    backups: int = 2
    """Nodes that keep copies of each node's filters: so many crashes at once lose nothing."""
    crashes: int | None = None
    """In a fault, nodes with consecutive ids that crash right before the publications; None: as published.
    With acknowledgements they crash silently: their links seem to be up until pings fail."""
    place: int = 0
    """The place of the first of them in the order of ids."""
    lately: float = 30.0
    """Seconds for which nodes keep events for subscribers that come from another next hop; 0: only backups
    help."""
    seed: int = 1
    limit: float = 600.0
    """Virtual seconds after which an event that has not arrived is missing."""


class ContentReport(Struct, frozen=True, kw_only=True):
    """The outcome of a run. Times are simulated: links take time, processors do not."""

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
    """The first missing pairs, in words."""
    duplicates_share: float
    """Repeated receptions at nodes that want an event, before duplicates are dropped, over all expected
    ones."""
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
    """Publications without confirmation that all subscribers have them; unreliable ones never get it."""
    most_filters: int
    """Filters at the node that has most."""
    messages: int
    virtual_seconds: float
    trace_sha256: str
    wall_seconds: float

    @property
    def ok(self) -> bool:
        """Whether all nodes that should have an event have it, and no others."""
        return self.missing == 0 and self.false_positives == 0


class _Figures(Struct, frozen=True):
    """The counts at the end of a run."""

    expected: int
    missing: tuple[str, ...]
    extra: int
    unasked: int
    late: list[float]
    hops: list[int]
    unsettled: int
    untold: int


class _Judge:
    """The nodes that should have each event, worked out from all predicates at once."""

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
        """Return the nodes that must have an event."""
        text = said.attributes
        if text not in self._expected:
            event = read_attributes(text)
            self._expected[text] = [
                name for name, asked in self.before.items() if any(each.covers(event) for each in asked)
            ]
        return self._expected[text]

    def may_have(self, name: str, attributes: str) -> bool:
        """Return whether a node ever subscribed to such an event."""
        place = (name, attributes)
        if place not in self._may_have:
            event = read_attributes(attributes)
            self._may_have[place] = any(each.covers(event) for each in self.ever.get(name, ()))
        return self._may_have[place]


def run_content(
    scenario: ContentScenario, trace: ColumnTrace | None = None, progress: Progress = tell_nobody
) -> ContentReport:
    """Run a scenario to its end and judge it. Equal scenarios give equal reports and traces."""
    began = time.perf_counter()
    kept = ColumnTrace() if trace is None else trace
    world = _world(scenario, kept)
    workload = draw_workload(world.names, scenario.course, scenario.seed)
    _open_groups(world, workload, scenario.limit)
    progress(0.1, "nodes subscribe")
    for name, predicate in workload.subscriptions():
        world.subscribe(name, predicate)
    settle(world, scenario.limit)
    world.run(_SETTLING)
    crashed = _crash(world, workload, scenario, world.config.reliable)
    progress(0.5, "nodes publish")
    published_at = world.network.now
    for name, predicate in workload.further():
        world.subscribe(name, predicate)
    said = [
        (each, world.publish(each.node, each.attributes, each.body))
        for each in workload.publications()
        if each.node not in crashed
    ]
    world.run(_STEP)
    settle(world, scenario.limit)
    progress(0.9, "judging")
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
    """Open a group for each publication, where there are groups."""
    if isinstance(world, GroupsWorld):
        for each in workload.publications():
            world.open(each.node, each.attributes)
        settle(world, limit)


def _crash(world: ContentWorld, workload: Workload, scenario: ContentScenario, silent: bool) -> list[str]:
    """Crash nodes; return their names."""
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


def settle(world: ContentWorld, limit: float) -> None:
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
    receptions = count_receptions(world, kept)
    extra = sum(max(0, receptions[pair] - 1) for pair in wanted)
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
    """Return the events of publications, by the answers, or else by the bodies that were delivered."""
    found: dict[int, EventId] = {}
    by_body = {match.body: match.event for each in world.matches.values() for match, _ in each}
    for publication, request in said:
        outcome = world.network.answers.get(request)
        if isinstance(outcome, Outcome | GroupOutcome):
            found[request] = outcome.event
        elif publication.body in by_body:
            found[request] = by_body[publication.body]
    return found


def count_receptions(world: ContentWorld, kept: ColumnTrace) -> Counter[tuple[str, EventId]]:
    """Count how often an event reached a node, including duplicates."""
    came = (Kind.RECEIVED, Kind.DUPLICATE)
    return Counter(
        (world.node_of[PeerId(row.node)], EventId(row.event))
        for row in kept.rows()
        if row.note in (NOTICE, CONVEY) and row.event is not None and row.kind in came
    )


def _disagreements(world: ContentWorld) -> int:
    return sum(
        world.rendezvous(attribute_key(attribute)) != name
        for name, scout in world.scouts.items()
        if world.network.is_up(world.identities[name].peer)
        for attribute in scout.elections.held
    )
