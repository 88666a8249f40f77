"""What happens on rings whose nodes are killed: a plan that follows from a seed, how it went, a verdict."""

from __future__ import annotations

import time
from collections.abc import Iterator
from random import Random
from typing import TypeAlias

from msgspec import Struct
from tests.node.killed_course import CourseSize, Kill, KilledCourse
from tests.node.lasting_reader import UNREACHED
from tests.node.ring_world import RingWorld, StreamReader

from linnet.identity.text import event_text
from linnet.node.client import ControlError
from linnet.streams.commands import Publish


class RingSize(CourseSize, frozen=True, kw_only=True):
    """How many of everything."""

    nodes: int
    topics: int
    subscriptions: int
    """Streams that a node reads, at most."""
    keepers: int
    """Readers of a stream who keep it for others."""
    events: int


class Say(Struct, frozen=True):
    """A node publishes in a stream that it reads."""

    who: str
    stream: str


class RingKill(Kill, frozen=True):
    """A node is killed, perhaps just after it was asked to publish."""

    last_word: str | None
    """The stream in which it publishes."""


Act: TypeAlias = Say | RingKill


def interests(size: RingSize, luck: Random) -> list[list[str]]:
    """Which streams each node reads: as many readers for each as can be."""
    names = [f"stream{number}" for number in range(size.topics)]
    pool: list[str] = []
    chosen: list[list[str]] = []
    for _ in range(size.nodes):
        own: list[str] = []
        while len(own) < min(size.subscriptions, size.topics):
            if not pool:
                pool = luck.sample(names, len(names))
            name = pool.pop()
            if name not in own:
                own.append(name)
        chosen.append(own)
    return chosen


def plan(world: RingWorld, size: RingSize, luck: Random) -> list[tuple[float, Act]]:
    """What is to happen at which second."""
    names = list(world.nodes)

    def own(name: str) -> str:
        return luck.choice(world.interests[name])

    acts: list[tuple[float, Act]] = []
    for _ in range(size.events):
        who = luck.choice(names)
        acts.append((luck.uniform(0.0, size.seconds), Say(who, own(who))))
    for _ in range(size.kills):
        who = luck.choice(names)
        last_word = own(who) if luck.random() < 0.5 else None
        when = luck.uniform(0.05, 0.95) * size.seconds
        acts.append((when, RingKill(who, luck.uniform(0.0, 3.0), last_word)))
    return sorted(acts, key=lambda act: act[0])


class RingCourse(KilledCourse[RingWorld, Act]):
    """Performs a plan over a world that is set up, and remembers what was acknowledged."""

    def __init__(self, world: RingWorld, size: RingSize, luck: Random) -> None:
        super().__init__(world, plan(world, size, luck), size.quiet)
        self.said: dict[str, tuple[str, str]] = {}
        """Events that were acknowledged to whoever published them: its node and stream."""

    def _perform(self, act: Act, number: int) -> None:
        if isinstance(act, Say):
            self._calls.submit(self._say, act, number)
            return
        if act.last_word is not None:
            self._calls.submit(self._say, Say(act.who, act.last_word), number)
            time.sleep(0.02)
        self._kill(act)

    def _say(self, act: Say, number: int) -> None:
        try:
            reply = self._world.nodes[act.who].control.ask(
                Publish(act.stream, (f"{act.who} {number}".encode(),))
            )
        except ControlError:
            self.declined += 1
        except UNREACHED:
            self.unanswered += 1
        else:
            for event in reply.ids:
                self.said[event_text(event)] = (act.who, act.stream)

    # The verdict.

    def is_settled(self) -> bool:
        """Whether nobody lacks anything."""
        return not any(True for _ in self.lacking())

    def lacking(self) -> Iterator[str]:
        """Acknowledged events that a reader of their stream has not been handed."""
        for reader in self._world.readers:
            has = {heard.event for heard in list(reader.heard)}
            for event, (who, stream) in list(self.said.items()):
                if stream == reader.stream and event not in has:
                    yield f"{reader.name}: has not {event[:12]} of {who}"

    def problems(self) -> list[str]:
        """All that is wrong, in words; empty if all is as it must be."""
        found = [*self.failures, *self._world.last_words(), *self.lacking()]
        for reader in self._world.readers:
            found += [f"{reader.name}: {strange}" for strange in reader.strange]
            found += wrong_order(reader)
        return found

    @property
    def pairs(self) -> int:
        """Acknowledged events, once for each reader of their stream."""
        streams = [stream for _, stream in self.said.values()]
        return sum(streams.count(reader.stream) for reader in self._world.readers)


def wrong_order(reader: StreamReader) -> Iterator[str]:
    """Events of one publisher that came twice, out of turn, or without the one before.

    What an application has not yet said to be handled may come again, in its next life and from there on.
    """
    places: dict[str, int] = {}
    latest: dict[tuple[int, str], int] = {}
    for heard in reader.heard:
        place = (heard.life, heard.chain)
        before = latest.get(place)
        if before is not None and heard.seq != before + 1:
            yield f"{reader.name}: {heard.seq} of {heard.chain[:12]} after {before}, in life {heard.life}"
        if reader.settled.get(heard.event, heard.life) < heard.life:
            yield f"{reader.name}: {heard.seq} of {heard.chain[:12]} again, though it had been handled"
        if before is None and heard.seq > places.get(heard.chain, 0) + 1:
            yield f"{reader.name}: {heard.seq} of {heard.chain[:12]} first, in life {heard.life}"
        latest[place] = heard.seq
        places[heard.chain] = max(places.get(heard.chain, 0), heard.seq)
