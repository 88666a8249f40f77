"""The scenario of ``linnet sim places``: a host, guests that come and go, and the messages that reach
them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cached_property, partial

from msgspec import Struct

from linnet.core.ids import AuthorId
from linnet.places.channel.fragment_store import Fragments, Row
from linnet.places.channel.membership import Membership, Verdict
from linnet.places.channel.packet import Modifier
from linnet.places.commands import Announce, Announced, Eject, EnterPlace
from linnet.places.config import PlacesConfig
from linnet.places.deed import Policy
from linnet.places.multicast.fragmentation import KEYS, SEALED
from linnet.places.sealed.epoch_keys import Ring, read_prefix
from linnet.sim.links import LinkModel, named_latency
from linnet.sim.places.world import HOST, PlacesWorld
from linnet.sim.report import Progress, tell_nobody
from linnet.sim.seeded_random import named_luck
from linnet.trace.columns import ColumnTrace
from linnet.trace.records import Kind

_SHOWN = 5
SETTLING = 60.0
"""Seconds at the end whose messages, keep-alives, are not judged, since they may still be under way."""
_WAVE = 20
"""Guests that enter in the same second."""


class PlacesScenario(Struct, frozen=True):
    """One place, and its problems."""

    guests: int = 100
    messages: int = 50
    loss: float = 0.0
    """Share of messages lost on links."""
    churn: float = 0.0
    """Share of guests that do not just stay: a third of them enters late, a third is ejected on the way, and
    a third crashes and comes back."""
    policy: Policy = Policy.PUBLIC
    fanout: int = 8
    seed: int = 1
    latency: str = "aws"
    gap: float = 1.0
    """Seconds between announcements."""
    quiet: float = 200.0
    """Seconds without messages at the end, before the judgement."""


class PlacesReport(Struct, frozen=True, kw_only=True):
    """The outcome of a run."""

    guests: int
    messages: int
    """Messages of the place in all, notices included."""
    late: int
    ejected: int
    crashed: int
    pairs: int
    """Pairs of a message and a guest that may see it, by the membership test at its generation."""
    delivered_share: float
    """Share of pairs where the guest's application was handed the message."""
    undelivered: tuple[str, ...]
    """The first missing pairs, in words."""
    leaked: int
    """Fragments that a guest holds, or has the key to, without permission."""
    distinct_state_hashes: int
    """Different states at the host and at all who are guests in the end."""
    origin_sends_per_message: float
    """Fragments that the host sent, for each fragment of the place."""
    most_sends_per_message: float
    """Fragments sent by the node that sent most, for each fragment of the place."""
    mean_hops: float
    """Links crossed by fragments that arrived for the first time."""
    duplicates_per_message: float
    """Fragments that arrived again, for each new one."""
    virtual_seconds: float
    trace_sha256: str
    wall_seconds: float

    @property
    def ok(self) -> bool:
        """Whether everything holds that must hold."""
        return self.delivered_share == 1.0 and self.leaked == 0 and self.distinct_state_hashes == 1


class _Course:
    """The course of a run: the guests that enter late, are ejected, or crash."""

    def __init__(self, scenario: PlacesScenario, world: PlacesWorld) -> None:
        self.scenario = scenario
        self.world = world
        luck = named_luck(scenario.seed, "course")
        third = round(scenario.guests * scenario.churn / 3)
        moved = luck.sample(world.guests, 3 * third)
        self.late, self.ejected, self.crashed = moved[:third], moved[third : 2 * third], moved[2 * third :]
        self._luck = luck
        self.judged = 0
        """The last message that every guest must have."""

    def enter_all(self, progress: Progress) -> None:
        """Let all guests enter except the late ones, some each second."""
        world = self.world
        early = [name for name in world.guests if name not in self.late]
        for at in range(0, len(early), _WAVE):
            for name in early[at : at + _WAVE]:
                self._enter(name)
            world.network.run(world.network.elapsed + 1.0)
            progress(0.3 * at / len(early), "guests enter")
        world.network.run(world.network.elapsed + 30.0)

    def run(self, progress: Progress) -> None:
        """Send all messages, while guests come and go."""
        world, scenario = self.world, self.scenario
        began = world.network.elapsed
        seconds = scenario.messages * scenario.gap
        for name in self.late:
            world.network.at(began + self._luck.uniform(0.0, 0.8) * seconds, partial(self._enter, name))
        for name in self.ejected:
            nym = world.identities[name].author
            at = began + self._luck.uniform(0.1, 0.9) * seconds
            world.network.at(at, partial(self._eject, nym))
        for name in self.crashed:
            at = began + self._luck.uniform(0.0, 0.7) * seconds
            world.network.at(at, partial(world.crash, name))
            world.network.at(at + self._luck.uniform(1.0, 0.3 * seconds + 1.0), partial(world.restart, name))
        for number in range(scenario.messages):
            state = (Modifier("=", f"_count_{number % 7}", str(number).encode()),)
            text = f"message {number}".encode()
            world.obtain(HOST, Announce(world.place, "_message", state, text), Announced)
            world.network.run(began + (number + 1) * scenario.gap)
            progress(0.3 + 0.5 * number / scenario.messages, "the host speaks")
        world.network.run(world.network.elapsed + scenario.quiet - SETTLING)
        self.judged = world.status(HOST).message
        world.network.run(world.network.elapsed + SETTLING)

    def _eject(self, nym: AuthorId) -> None:
        self.world.ask(HOST, Eject(self.world.place, nym))

    def _enter(self, name: str) -> None:
        world = self.world
        world.ask(name, EnterPlace(world.place, (world.contact(HOST),), patience=600.0))
        world.watch(name)


def run_places(
    scenario: PlacesScenario, trace: ColumnTrace | None = None, progress: Progress = tell_nobody
) -> PlacesReport:
    """Run a scenario to its end and judge it. Equal scenarios give equal reports and traces."""
    began = time.perf_counter()
    kept = ColumnTrace() if trace is None else trace
    links = LinkModel(named_latency(scenario.latency), loss=scenario.loss)
    config = PlacesConfig(fanout=scenario.fanout)
    world = PlacesWorld(scenario.guests, scenario.seed, links, config, kept)
    world.welcomes = True
    world.found(scenario.policy)
    course = _Course(scenario, world)
    course.enter_all(progress)
    course.run(progress)
    progress(0.9, "judging")
    judge = _Judge(world, course.judged)
    pairs, missing = judge.deliveries()
    return PlacesReport(
        guests=scenario.guests,
        messages=judge.fragments.standing.message,
        late=len(course.late),
        ejected=len(course.ejected),
        crashed=len(course.crashed),
        pairs=pairs,
        delivered_share=1.0 - len(missing) / pairs if pairs else 1.0,
        undelivered=tuple(missing[:_SHOWN]),
        leaked=judge.leaked(),
        distinct_state_hashes=len(judge.hashes()),
        **_traffic(world, kept, judge.fragments.standing.fragment + 1),
        virtual_seconds=world.network.elapsed,
        trace_sha256=kept.sha256(),
        wall_seconds=time.perf_counter() - began,
    )


class _Judge:
    """The judge: it knows every fragment and every membership, as the host does."""

    def __init__(self, world: PlacesWorld, last: int) -> None:
        self._world = world
        self._last = last
        store = world.stores[HOST]
        self.fragments = Fragments(world.place, store.log, store.cells)
        policy = world.status(HOST).deed.policy
        self._membership = Membership(world.place, store.cells, policy)

    def deliveries(self) -> tuple[int, list[str]]:
        """Return how many pairs count, and the missing ones in words."""
        pairs, missing = 0, []
        told, test = self._told(), self._membership.test
        for name in self._world.guests:
            nym = self._world.identities[name].author
            said = self._world.said.get(name, {})
            for message, generations in told.items():
                if any(test(nym, message, each) is not Verdict.YES for each in generations):
                    continue
                pairs += 1
                if message not in said:
                    missing.append(f"message {message} at {name}")
        return pairs, missing

    def _told(self) -> dict[int, list[int]]:
        """Return messages for applications, with the generations in which their fragments were sent."""
        rows = {message: list(self.fragments.message(message)) for message in range(1, self._last + 1)}
        return {
            message: [row.generation for row in pieces]
            for message, pieces in rows.items()
            if pieces and not pieces[0].flags & KEYS  # those are for devices
        }

    def leaked(self) -> int:
        """Count fragments at guests that may not have them, or that hold the key to them."""
        held = sum(
            not self._allowed(self._world.identities[name].author, row)
            for name in self._world.guests
            for row in self._held(name)
        )
        return held + sum(self._readable(name) for name in self._world.guests)

    def _readable(self, name: str) -> int:
        """Count sealed fragments that a guest could decrypt, if it got them, and may not have."""
        ring = Ring(self._world.place, self._world.stores[name].cells)
        nym = self._world.identities[name].author
        closed = [row for row in self._sealed if not self._allowed(nym, row)]
        return sum(ring.find(*self._needs(row)) is not None for row in closed)

    @cached_property
    def _sealed(self) -> list[Row]:
        rows = (self.fragments.get(number) for number in range(self.fragments.standing.fragment + 1))
        return [row for row in rows if row is not None and row.flags & SEALED]

    def _needs(self, row: Row) -> tuple[bytes, int]:
        verified = self.fragments.verified(row)
        prefix = None if verified is None else read_prefix(verified.events[0].body)
        return (b"", 0) if prefix is None else (prefix.epoch, prefix.step)

    def hashes(self) -> set[bytes]:
        """Return the states at the host and at all who are guests in the end."""
        names = [
            name
            for name in self._world.guests
            if self._membership.changes(self._world.identities[name].author)
            and self._membership.changes(self._world.identities[name].author)[-1].joins
        ]
        return {each.state_hash for each in self._world.statuses((HOST, *names))}

    def _allowed(self, nym: AuthorId, row: Row) -> bool:
        """Return whether a guest may have a fragment now, or could while it was a guest: it keeps what it
        got."""
        if self._membership.test(nym, row.message, row.generation) is Verdict.YES:
            return True
        changes = self._membership.changes(nym)
        for at, change in enumerate(changes):
            if change.joins and change.effective_since <= row.message:
                end = next((each for each in changes[at:] if not each.joins), None)
                if end is None or row.generation <= end.generation:
                    return True
        return False

    def _held(self, name: str) -> Iterator[Row]:
        store = self._world.stores[name]
        fragments = Fragments(self._world.place, store.log, store.cells)
        for number in range(fragments.standing.fragment + 1):
            row = fragments.get(number)
            if row is not None:
                yield row


def _traffic(world: PlacesWorld, kept: ColumnTrace, said: int) -> dict[str, float]:
    host = world.identities[HOST].peer
    sent: dict[bytes, int] = {}
    received = hops = duplicates = 0
    for row in kept.rows():
        if row.topic != world.place:
            continue
        if row.kind == Kind.SENT:
            sent[row.node] = sent.get(row.node, 0) + 1
        elif row.kind == Kind.RECEIVED:
            received += 1
            hops += row.hops or 0
        elif row.kind == Kind.DUPLICATE:
            duplicates += 1
    return {
        "origin_sends_per_message": sent.get(host, 0) / said,
        "most_sends_per_message": max(sent.values(), default=0) / said,
        "mean_hops": hops / received if received else 0.0,
        "duplicates_per_message": duplicates / received if received else 0.0,
    }
