"""A bench for peer sampling under attack: nodes that ask each other in rounds, some of them liars.

It runs the very `Sampling` of a node, or one of `linnet.sim.baselines` behind the same protocol.
There is no network between the nodes: what is measured is whom they come to know.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from functools import partial
from math import sqrt
from random import Random

from msgspec import Struct

from linnet.core.ids import PeerId
from linnet.overlay.trackerless.config import TrackerlessConfig
from linnet.sim.baselines.brahms import Brahms, BrahmsConfig
from linnet.sim.baselines.cyclon import Cyclon
from linnet.sim.baselines.gossip import Entries, Gossip, Way, fresh
from linnet.sim.baselines.jelasity import Jelasity, JelasityConfig
from linnet.sim.baselines.shipped import Directory, Shipped


class Attack(StrEnum):
    """What liars do."""

    HUB = "hub"
    """They answer with liars alone."""
    SLEEPER = "sleeper"
    """They are honest until a round, and then do the same."""
    ECLIPSE = "eclipse"
    """They do the same, and all ask one victim, over and over."""
    SYBIL = "sybil"
    """They answer with ever other ids of a large pool, all of which they answer for."""


class AttackPlan(Struct, frozen=True):
    """One run."""

    nodes: int = 1000
    liars: int = 100
    rounds: int = 400
    view: int = 20
    attack: Attack = Attack.HUB
    start: int = 0
    """The round after which liars lie."""
    friends: int = 0
    """Honest nodes that each honest node trusts."""
    sybils: int = 0
    """Ids of the pool that liars invent."""
    are_sybils_up: bool = True
    """Whether liars answer for the ids that they invent, or nobody does."""
    is_asking: bool = False
    """Whether liars ask others too, as often as honest nodes do."""
    seed: int = 1


class Figures(Struct, frozen=True):
    """The views of all honest nodes after a round, in whole numbers."""

    round: int
    places: int
    """Entries in all views."""
    lying: int
    """Those of them that are liars."""
    victim_places: int
    victim_lying: int
    isolated: int
    """Nodes that know liars alone."""
    unknown: int
    """Honest nodes that no honest node knows."""
    most_known: int
    """How many know the honest node that most know."""
    squares: int
    """Sum of the squares of all in-degrees of honest nodes."""
    honest: int

    @property
    def share(self) -> float:
        """The liars' share of all views."""
        return self.lying / self.places if self.places else 0.0

    @property
    def victim_share(self) -> float:
        """The liars' share of the victim's view."""
        return self.victim_lying / self.victim_places if self.victim_places else 0.0

    @property
    def deviation(self) -> float:
        """The standard deviation of in-degrees among honest nodes."""
        mean = (self.places - self.lying) / self.honest
        return sqrt(max(0.0, self.squares / self.honest - mean * mean))


def shipped(config: TrackerlessConfig) -> Way:
    """What nodes do, with these parameters."""
    directory = Directory()

    def make(ours: PeerId, first: Sequence[PeerId], trusted: Sequence[PeerId], rng: Random) -> Gossip:
        return Shipped(ours, first, trusted, rng, config, directory)

    return Way(make, config.answer, sent=1)


def cyclon(size: int = 20, shuffled: int = 10) -> Way:
    """Plain Cyclon."""
    return Way(
        lambda ours, first, trusted, rng: Cyclon(ours, first, size, shuffled, rng), shuffled, sent=shuffled
    )


def jelasity(config: JelasityConfig) -> Way:
    """A corner of the framework of Jelasity et al."""
    return Way(
        lambda ours, first, trusted, rng: Jelasity(ours, first, config, rng),
        config.view // 2,
        sent=config.view // 2 if config.push else 0,
    )


def brahms(config: BrahmsConfig) -> Way:
    """Brahms."""
    return Way(
        lambda ours, first, trusted, rng: Brahms(ours, first, config, rng),
        config.view,
        sent=1,
        asks=config.pushes,
    )


class AttackBench:
    """All nodes of one run."""

    def __init__(self, way: Way, plan: AttackPlan) -> None:
        self._way = way
        self._plan = plan
        self._rng = rng = Random(plan.seed)
        named = partial(rng.randbytes, 32)
        everyone = [PeerId(named()) for _ in range(plan.nodes)]
        self._liars = everyone[: plan.liars]
        self._honest = everyone[plan.liars :]
        self.victim = self._honest[0]
        self._pool = [PeerId(named()) for _ in range(plan.sybils)] or self._liars
        self._lying = dict.fromkeys(self._liars + self._pool)
        self._answering = self._lying if plan.are_sybils_up else dict.fromkeys(self._liars)
        self.nodes = {peer: self._make(peer, everyone) for peer in everyone}

    def run(self) -> list[Figures]:
        """All rounds; what the views are after each."""
        return [self.round(number) for number in range(1, self._plan.rounds + 1)]

    def view(self, peer: PeerId) -> tuple[PeerId, ...]:
        """Whom a node knows."""
        return self.nodes[peer].view

    def join(self, peer: PeerId, first: Sequence[PeerId]) -> None:
        """An honest node comes that nobody has heard of; it knows these."""
        self._honest.append(peer)
        self.nodes[peer] = self._way.make(peer, first, (), Random(self._rng.getrandbits(64)))

    def round(self, number: int) -> Figures:
        """One round of everyone, in a random order."""
        is_attacking = number > self._plan.start
        active = self._honest if is_attacking else list(self.nodes)
        for peer in self._rng.sample(active, len(active)):
            self._ask(peer, is_attacking)
        if is_attacking:
            self._lie()
        for peer in active:
            self.nodes[peer].end()
        return self._figures(number)

    def _make(self, peer: PeerId, everyone: list[PeerId]) -> Gossip:
        first = [other for other in self._rng.sample(everyone, self._plan.view + 1) if other != peer]
        trusted = [other for other in self._rng.sample(self._honest, self._plan.friends) if other != peer]
        return self._way.make(peer, first[: self._plan.view], trusted, Random(self._rng.getrandbits(64)))

    def _ask(self, peer: PeerId, is_attacking: bool) -> None:
        node = self.nodes[peer]
        for ask in node.begin():
            if is_attacking and ask.peer in self._answering:
                answer = self._lies(ask.peer)
            elif ask.peer in self.nodes:
                answer = self.nodes[ask.peer].asked(peer, ask.entries)
            else:
                node.unanswered(ask.peer)
                continue
            if ask.is_answered:
                node.answered(ask.peer, answer)

    def _lies(self, liar: PeerId) -> Entries:
        """An answer of liars, no matter who is asked."""
        return fresh(self._rng.sample(self._pool, min(self._way.answer, len(self._pool))))

    def _lie(self) -> None:
        """What liars do without being asked; a victim is asked by all, in as many names as there are."""
        is_eclipse = self._plan.attack is Attack.ECLIPSE
        if not (self._plan.is_asking or is_eclipse):
            return
        for _ in range(len(self._liars) * self._way.asks):
            peer = self.victim if is_eclipse else self._rng.choice(self._honest)
            liar = self._rng.choice(self._pool)
            others = self._rng.sample(self._pool, min(self._way.sent, len(self._pool)))
            sent = list(dict.fromkeys([liar, *others]))[: self._way.sent]
            self.nodes[peer].asked(liar, fresh(sent))

    def _figures(self, number: int) -> Figures:
        known = dict.fromkeys(self._honest, 0)
        places = isolated = honestly = 0
        for peer in self._honest:
            view = self.nodes[peer].view
            honest = [other for other in view if other not in self._lying]
            for other in honest:
                known[other] += 1
            places += len(view)
            honestly += len(honest)
            isolated += bool(view) and not honest
        victim = self.nodes[self.victim].view
        return Figures(
            round=number,
            places=places,
            lying=places - honestly,
            victim_places=len(victim),
            victim_lying=sum(other in self._lying for other in victim),
            isolated=isolated,
            unknown=sum(not many for many in known.values()),
            most_known=max(known.values()),
            squares=sum(many * many for many in known.values()),
            honest=len(self._honest),
        )
