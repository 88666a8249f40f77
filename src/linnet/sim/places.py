"""The scenario of ``linnet sim places``: a host, guests who come and go, and what arrives at whom."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
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
from linnet.places.sealed.epoch_keys import Ring
from linnet.places.sealed.fragment_crypto import read_prefix
from linnet.sim.links import LinkModel, named_latency
from linnet.sim.luck import named_luck
from linnet.sim.places_world import HOST, PlacesWorld
from linnet.trace.columns import ColumnTrace
from linnet.trace.records import Kind

Progress = Callable[[float, str], None]
_SHOWN = 5
SETTLING = 60.0
"""Seconds at the end: what is said in them, keep-alives, is not judged, since it may still be on its way."""
_WAVE = 20
"""Guests who enter in the same second."""


class PlacesScenario(Struct, frozen=True):
    """One place, and what goes wrong in it."""

    guests: int = 100
    messages: int = 50
    loss: float = 0.0
    """Share of messages on links that vanish."""
    churn: float = 0.0
    """Share of guests who do not just stay: a third of them enters late, a third is put out on the way, and
    a third crashes and comes back."""
    policy: Policy = Policy.PUBLIC
    fanout: int = 8
    seed: int = 1
    latency: str = "aws"
    gap: float = 1.0
    """Seconds between announcements."""
    quiet: float = 200.0
    """Seconds at the end with nothing said, before it is judged."""


class PlacesReport(Struct, frozen=True, kw_only=True):
    """What came of it."""

    guests: int
    messages: int
    """Messages of the place in all, notices included."""
    late: int
    ejected: int
    crashed: int
    pairs: int
    """Pairs of a message and a guest who may see it, by the membership test at its generation."""
    delivered_share: float
    """Of these, handed to the guest's application."""
    undelivered: tuple[str, ...]
    """The first of those that are missing, in words."""
    leaked: int
    """Fragments that somebody holds, or has the key to, who may not."""
    distinct_state_hashes: int
    """At the host and at all who are guests in the end."""
    origin_sends_per_message: float
    """Fragments that the host sent, for each that it said."""
    most_sends_per_message: float
    """The same for the node that sent most."""
    mean_hops: float
    """Of fragments that came for the first time, over how many links."""
    duplicates_per_message: float
    """Fragments that came again, for each that came."""
    virtual_seconds: float
    trace_sha256: str
    wall_seconds: float

    @property
    def ok(self) -> bool:
        """Whether everything that has to hold does."""
        return self.delivered_share == 1.0 and self.leaked == 0 and self.distinct_state_hashes == 1


class _Course:
    """Who enters when, who is put out, who crashes."""

    def __init__(self, scenario: PlacesScenario, world: PlacesWorld) -> None:
        self.scenario = scenario
        self.world = world
        luck = named_luck(scenario.seed, "course")
        third = round(scenario.guests * scenario.churn / 3)
        moved = luck.sample(world.guests, 3 * third)
        self.late, self.ejected, self.crashed = moved[:third], moved[third : 2 * third], moved[2 * third :]
        self._luck = luck
        self.judged = 0
        """The last message that everyone must have."""

    def enter_all(self, tell: Progress) -> None:
        """All but those who come late, some each second."""
        world = self.world
        early = [name for name in world.guests if name not in self.late]
        for at in range(0, len(early), _WAVE):
            for name in early[at : at + _WAVE]:
                self._enter(name)
            world.network.run(world.network.elapsed + 1.0)
            tell(0.3 * at / len(early), "guests enter")
        world.network.run(world.network.elapsed + 30.0)

    def run(self, tell: Progress) -> None:
        """Everything that is said, and who comes and goes meanwhile."""
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
            tell(0.3 + 0.5 * number / scenario.messages, "the host speaks")
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
    scenario: PlacesScenario, trace: ColumnTrace | None = None, progress: Progress | None = None
) -> PlacesReport:
    """Run a scenario to its end and judge it. Equal scenarios give equal reports and traces."""
    tell = progress or _silent
    began = time.perf_counter()
    kept = ColumnTrace() if trace is None else trace
    links = LinkModel(named_latency(scenario.latency), loss=scenario.loss)
    config = PlacesConfig(fanout=scenario.fanout)
    world = PlacesWorld(scenario.guests, scenario.seed, links, config, kept)
    world.welcomes = True
    world.found(scenario.policy)
    course = _Course(scenario, world)
    course.enter_all(tell)
    course.run(tell)
    tell(0.9, "judging")
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
    """Knows what the host knows: every fragment, and who was a guest when."""

    def __init__(self, world: PlacesWorld, last: int) -> None:
        self._world = world
        self._last = last
        store = world.stores[HOST]
        self.fragments = Fragments(world.place, store.log, store.cells)
        policy = world.status(HOST).deed.policy
        self._membership = Membership(world.place, store.cells, policy)

    def deliveries(self) -> tuple[int, list[str]]:
        """How many pairs count, and those that are missing, in words."""
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
        """What is said to applications, with the generations in which its fragments were sent."""
        rows = {message: list(self.fragments.message(message)) for message in range(1, self._last + 1)}
        return {
            message: [row.generation for row in pieces]
            for message, pieces in rows.items()
            if pieces and not pieces[0].flags & KEYS  # those are for devices
        }

    def leaked(self) -> int:
        """Fragments at somebody who may not have them, or who has the key to them."""
        held = sum(
            not self._allowed(self._world.identities[name].author, row)
            for name in self._world.guests
            for row in self._held(name)
        )
        return held + sum(self._readable(name) for name in self._world.guests)

    def _readable(self, name: str) -> int:
        """Sealed fragments that somebody could read, were it handed them, and may not have."""
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
        """The states at the host and at all who are guests in the end."""
        names = [
            name
            for name in self._world.guests
            if self._membership.changes(self._world.identities[name].author)
            and self._membership.changes(self._world.identities[name].author)[-1].joins
        ]
        return {each.state_hash for each in self._world.statuses((HOST, *names))}

    def _allowed(self, nym: AuthorId, row: Row) -> bool:
        """Now, or while it was a guest: whoever is out by now keeps what it got until then."""
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


def _silent(done: float, what: str) -> None:
    """Nobody watches."""
