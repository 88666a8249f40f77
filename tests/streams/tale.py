"""A tale: a village over which everything goes wrong that may go wrong, and what must hold at its end."""

from __future__ import annotations

from random import Random

from tests.streams.village import STREAM, Village

from linnet.delivery.config import DeliveryConfig
from linnet.delivery.items import Missed
from linnet.event.event import Event
from linnet.machine.commands import Declined
from linnet.sim.links import LinkModel, constant_latency
from linnet.streams.commands import Publish, Published
from linnet.trace.records import Kind, TraceSink

DURABLE = ("p0", "p1", "p2")
LIVE = ("p3", "p4")
PUBLISHERS = ("p0", "p3", "p5", "p6")
UNWRITTEN = 10
"""Events that a subscriber may have handled just before a crash, so that the word of it was lost."""


class Tale:
    """What happens follows from the seed."""

    def __init__(
        self,
        seed: int,
        *,
        loss: float = 0.0,
        jitter: float = 0.02,
        commit_delay: float = 0.0,
        delivery: DeliveryConfig | None = None,
        trace: TraceSink | None = None,
    ) -> None:
        self.village = Village(
            seed,
            trackers=2,
            storage=2,
            peers=8,
            links=LinkModel(constant_latency(20.0), jitter=jitter, loss=loss),
            commit_delay=commit_delay,
            delivery=delivery,
            trace=trace,
        )
        self.rng = Random(f"tale {seed}")
        self.requests: dict[int, tuple[str, tuple[bytes, ...]]] = {}
        self.durable = {name: [self._subscribe(name)] for name in DURABLE}
        """Subscriptions of each durable subscriber, one for each of its lives."""
        self.live = {name: self.village.subscribe(name) for name in LIVE}
        self.unordered = self.village.subscribe("p7", ordered=False)
        self.said = 0
        self.village.run(15)

    def _subscribe(self, name: str) -> int:
        return self.village.subscribe(name, name="all", since=0.0)

    # What happens.

    def talk(self, seconds: float, each: float = 0.3) -> None:
        """Let publishers that are up say something every so often."""
        end = self.village.network.elapsed + seconds
        while self.village.network.elapsed < end:
            self.say(self.rng.choice(PUBLISHERS))
            self.village.run(self.rng.random() * 2 * each)

    def say(self, name: str) -> None:
        network = self.village.network
        if network.is_up(self.village.peer(name)):
            count = self.rng.choice((1, 1, 1, 3))
            bodies = tuple(b"%d" % (self.said + number) for number in range(count))
            self.said += count
            request = network.ask(self.village.peer(name), Publish(STREAM, bodies))
            self.requests[request] = (name, bodies)

    def crash(self, name: str) -> None:
        self.village.crash(name)

    def restart(self, name: str) -> None:
        self.village.restart(name)
        if name in DURABLE:
            self.durable[name].append(self._subscribe(name))
        elif name in PUBLISHERS:
            self.village.subscribe(name)

    def churn(self, names: tuple[str, ...], times: int, away: float = 8.0) -> None:
        for _ in range(times):
            name = self.rng.choice(names)
            self.talk(2)
            self.crash(name)
            self.talk(self.rng.random() * away)
            self.restart(name)
            self.talk(3)

    def partition(self, seconds: float) -> None:
        peers = [self.village.peer(name) for name in self.village.names]
        self.rng.shuffle(peers)
        self.village.network.partition([peers[: len(peers) // 2]])
        self.talk(seconds)
        self.village.network.heal()
        self.talk(3)

    def end(self) -> None:
        self.village.run(90)

    # What must hold.

    def published(self) -> dict[bytes, bytes]:
        """Events whose publisher was told that they are published, by id."""
        events: dict[bytes, bytes] = {}
        for request, (_, bodies) in self.requests.items():
            outcome = self.village.network.answers.get(request)
            if isinstance(outcome, Published):
                events.update(zip(outcome.ids, bodies, strict=True))
        return events

    def check(self) -> None:
        published = self.published()
        assert len(published) > 20
        self.nobody_was_refused()
        for name, lives in self.durable.items():
            seen: dict[bytes, bytes] = {}
            for subscription in lives:
                events = self.in_order(name, subscription)
                assert self.village.missed(name, subscription) == [], name
                again = [event.body for event in events if event.id in seen]
                assert len(again) <= UNWRITTEN, f"{name} got again what it had handled"
                seen.update((event.id, event.body) for event in events)
            lacking = [body for event, body in published.items() if event not in seen]
            assert lacking == [], f"{name} never got what was acknowledged"
        for name, subscription in self.live.items():
            self.no_silent_hole(name, subscription, self.in_order(name, subscription))
        assert self.once("p7", self.unordered)
        self.same_everywhere()
        self.every_miss_is_recorded()

    def nobody_was_refused(self) -> None:
        """Whoever is back after a crash may publish: its chain goes on where it was."""
        answers = self.village.network.answers
        refused = {request: answers.get(request) for request in self.requests}
        assert [each for each in refused.values() if isinstance(each, Declined)] == []

    def once(self, name: str, subscription: int) -> list[Event]:
        items = self.village.items[name, subscription]
        events = [item for item in items if isinstance(item, Event)]
        assert len({event.id for event in events}) == len(events), f"{name} got something twice"
        return events

    def in_order(self, name: str, subscription: int) -> list[Event]:
        events = self.once(name, subscription)
        last: dict[bytes, int] = {}
        for event in events:
            chain = event.author + event.device
            assert event.seq is not None
            assert event.seq > last.get(chain, -1), f"{name} got a chain out of order"
            last[chain] = event.seq
        return events

    def no_silent_hole(self, name: str, subscription: int, events: list[Event]) -> None:
        missed = {
            (item.author + item.device, number)
            for item in self.village.missed(name, subscription)
            for number in range(item.first, item.last + 1)
        }
        last: dict[bytes, int] = {}
        for event in events:
            chain = event.author + event.device
            assert event.seq is not None
            for number in range(last.get(chain, event.seq - 1) + 1, event.seq):
                assert (chain, number) in missed, f"{name} was not told of {number}"
            last[chain] = event.seq

    def same_everywhere(self) -> None:
        """No chain forked: a place in a chain is one event for everyone."""
        places: dict[tuple[bytes, int | None], bytes] = {}
        for items in self.village.items.values():
            for item in items:
                if isinstance(item, Event):
                    place = (item.author + item.device, item.seq)
                    assert places.setdefault(place, item.id) == item.id

    def every_miss_is_recorded(self) -> None:
        dropped = {
            (node, record.device, record.seq)
            for node, record in self.village.notes.records
            if record.kind is Kind.DROPPED and record.reason is not None
        }
        for (name, _), items in self.village.items.items():
            for item in items:
                if isinstance(item, Missed):
                    assert (self.village.peer(name), item.device, item.first) in dropped
