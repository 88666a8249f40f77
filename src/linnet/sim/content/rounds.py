"""Content in several rounds: nodes subscribe or leave, wait, and publish, and again.

*Replication* (Agostinho 2021, section 5.3) is four rounds, in each of which every subscriber adds one
subscription. A *long run* is two; before the second a group of subscribers leaves, and the periods pass after
which a filter that is not refreshed ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from linnet.content.config import ContentConfig
from linnet.content.predicate import Predicate, read_attributes, read_predicate
from linnet.core.ids import EventId
from linnet.sim.content.scenario import (
    SAID,
    SUBSCRIBED,
    Course,
    Publication,
    Workload,
    count_receptions,
    draw_workload,
    settle,
)
from linnet.sim.content.world import ContentWorld
from linnet.sim.links import LinkModel, named_latency
from linnet.trace.columns import ColumnTrace

Asked = tuple[str, str]
"""A node, and its predicate."""
Mark = Callable[[int], None]
"""Called with the number of a round when it is over."""

STAGES: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (
        (
            "portugal/surf",
            "portugal/soccer",
            "surf/bali",
            "surf/bali/trip/price[1000,1500]",
            "surf/trip/price[1000,2000]",
            "surf/trip/price[1000,1400]",
        ),
        (
            "bali/surf",
            "portugal/surf",
            "surf/bali/trip/price=1050",
            "portugal/soccer",
            "surf/trip/price=1050",
        ),
    ),
    (
        (
            "surf/madeira",
            "surf/azores",
            "tesla/stock/price[0,400]",
            "bitcoin/price[10000,15000]",
            "temperature[30,40]",
            "ronaldo/sporting",
        ),
        (
            "tesla/stock/price=100",
            "portugal/surf/temperature=38",
            "surf/bali/trip/price=1050",
            "madeira/azores/surf",
            "surf/trip/price=1050",
        ),
    ),
    (
        ("ipfs",) * 6,
        ("ipfs", "portugal/temperature=32", "surf/bali/trip/price=1050", "ipfs", "surf/trip"),
    ),
    (
        ("IST", "IST", "IST", "IST", "IST", "FCUL"),
        ("ipfs", "portugal/soccer", "FCUL", "IST", "surf/trip"),
    ),
)
"""The predicates of the six groups in each stage, and the publishers' attributes."""

LONG_WAIT = 130.0
LONG_REFRESH = 60.0
"""Seconds, as published: a filter that is not refreshed ends within three of these periods."""
_STEP = 0.01
"""The latency of a link: answers come at multiples of it."""
_LIMIT = 600.0


class Round(Struct, frozen=True):
    """The actions of one round, in this order."""

    asked: tuple[Asked, ...]
    ended: tuple[Asked, ...]
    wait: float
    """Seconds before anything is published."""
    said: tuple[Publication, ...]


class RoundReport(Struct, frozen=True):
    """The outcome of one round. Times are simulated: links take time, processors do not."""

    expected: int
    missing: int
    duplicated: int
    unasked: int
    """Events delivered to nodes without a subscription to them, or with an ended one."""
    latencies: Mapping[int, int]
    """Microseconds until an event is delivered, and how often."""
    subscribing: Mapping[int, int]
    """Microseconds until a subscribing node waits for no answer, neither for itself nor for others."""
    messages: int
    filters: int
    """Filters at all nodes, in the end."""


def _workload(nodes: int, seed: int) -> Workload:
    return draw_workload([f"node{number}" for number in range(nodes)], Course.NORMAL, seed)


def replication_rounds(nodes: int, seed: int) -> list[Round]:
    """Make the four published stages."""
    workload, rounds = _workload(nodes, seed), []
    for stage, (groups, texts) in enumerate(STAGES):
        subscribers = enumerate(workload.subscribers)
        asked = tuple((name, groups[number % len(groups)]) for number, name in subscribers)
        rounds.append(Round(asked, (), 2.0, _said(workload.publishers, texts, stage)))
    return rounds


def long_rounds(nodes: int, seed: int) -> list[Round]:
    """Make two rounds: all subscribe and get events; the first group leaves; after the filters' periods only
    the others get events."""
    workload = _workload(nodes, seed)
    asked, publishers = tuple(workload.subscriptions()), workload.publishers
    first = workload.subscribers[:: len(SUBSCRIBED)]
    ended = tuple(each for each in asked if each[0] in first)
    return [
        Round(asked, (), 2.0, _said(publishers, SAID, 0)),
        Round((), ended, LONG_WAIT, _said(publishers, SAID, 1)),
    ]


def _said(publishers: Sequence[str], texts: Sequence[str], stage: int) -> tuple[Publication, ...]:
    return tuple(
        Publication(name, texts[number % len(texts)], f"{name} says in {stage}".encode())
        for number, name in enumerate(publishers)
    )


class _Course:
    """A network during its rounds."""

    def __init__(self, nodes: int, seed: int, config: ContentConfig) -> None:
        self.trace = ColumnTrace()
        links = LinkModel(named_latency("constant:10"))
        self.world = ContentWorld(nodes, seed, config, links, self.trace)
        self.standing: dict[Asked, int] = {}
        self.read: dict[str, Predicate] = {}

    def subscribe(self, asked: Sequence[Asked]) -> Counter[int]:
        """Let nodes subscribe; return how long each of them waits for answers."""
        for name, text in asked:
            self.standing[name, text] = self.world.subscribe(name, text)
            self.read[text] = read_predicate(text)
        began = self.world.network.elapsed
        waiting = list(dict.fromkeys(name for name, _ in asked))
        taken: Counter[int] = Counter()
        while waiting and self.world.network.elapsed - began < _LIMIT:
            self.world.run(_STEP)
            still = [name for name in waiting if not self.world.is_settled(name)]
            taken[round(1_000_000 * (self.world.network.elapsed - began))] += len(waiting) - len(still)
            waiting = still
        return +taken

    def end(self, ended: Sequence[Asked]) -> None:
        """Let nodes unsubscribe."""
        for asked in ended:
            self.world.unsubscribe(asked[0], self.standing.pop(asked))

    def say(self, said: Sequence[Publication]) -> dict[bytes, float]:
        """Let nodes publish, and wait until all is settled; return when each event was published."""
        at = {each.body: self.world.network.now for each in said}
        for each in said:
            self.world.publish(each.node, each.attributes, each.body)
        settle(self.world, _LIMIT)
        return at

    def wanted(self, said: Publication) -> list[str]:
        """Return the nodes that have a subscription now that accepts this event."""
        event = read_attributes(said.attributes)
        names = [name for name, text in self.standing if self.read[text].covers(event)]
        return list(dict.fromkeys(names))


def run_rounds(
    nodes: int, seed: int, config: ContentConfig, rounds: Sequence[Round], mark: Mark = lambda stage: None
) -> list[RoundReport]:
    """Run the rounds in one network, one after the other, and judge each."""
    course = _Course(nodes, seed, config)
    reports = []
    for number, each in enumerate(rounds, 1):
        handled = course.world.network.handled
        subscribing = course.subscribe(each.asked)
        course.end(each.ended)
        course.world.run(each.wait)
        born = course.say(each.said)
        mark(number)
        sent = course.world.network.handled - handled
        reports.append(_judged(course, each, born, subscribing, sent))
    return reports


def _judged(
    course: _Course, each: Round, born: Mapping[bytes, float], subscribing: Counter[int], sent: int
) -> RoundReport:
    handed: dict[tuple[str, bytes], float] = {}
    events: dict[bytes, EventId] = {}
    for name, matches in course.world.matches.items():
        for match, at in matches:
            if match.body in born:
                handed.setdefault((name, match.body), at)
                events[match.body] = match.event
    wanted = [(name, said.body) for said in each.said for name in course.wanted(said)]
    receptions = count_receptions(course.world, course.trace)
    again = sum(max(0, receptions[name, events[body]] - 1) for name, body in wanted if body in events)
    late = Counter(round(1_000_000 * (handed[pair] - born[pair[1]])) for pair in wanted if pair in handed)
    return RoundReport(
        expected=len(wanted),
        missing=sum(pair not in handed for pair in wanted),
        duplicated=again,
        unasked=len(handed.keys() - dict.fromkeys(wanted).keys()),
        latencies=late,
        subscribing=subscribing,
        messages=sent,
        filters=sum(len(scout.table) for scout in course.world.scouts.values()),
    )
