"""A bench for peer sampling under attack: nodes that ask each other in rounds, some of them liars.

It runs the shipped `PeerSampling`, or one of `linnet.sim.baselines` behind the same protocol. There is no
network between the nodes: the bench measures which nodes they come to know.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from functools import partial
from math import sqrt
from random import Random

from msgspec import Struct

from linnet.core.errors import RemoteError
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.overlay.gossip.config import TrackerlessConfig
from linnet.overlay.gossip.known_peers import KnownPeers
from linnet.overlay.gossip.messages import Descriptor, Pull
from linnet.overlay.gossip.peer_sampling import PeerSampling
from linnet.overlay.gossip.trust import Trust
from linnet.sim.baselines.brahms import Brahms, BrahmsConfig
from linnet.sim.baselines.gossip import Ask, Entries, Gossip, Way, fresh
from linnet.sim.baselines.view_exchange import Cyclon, Jelasity, JelasityConfig
from linnet.store.memory import MemoryStore

_FAR = 2**40


class Directory:
    """Descriptors of all nodes of a bench, one each; they carry no real signatures."""

    def __init__(self) -> None:
        self._descriptors: dict[PeerId, Descriptor] = {}

    def __getitem__(self, peer: PeerId) -> Descriptor:
        descriptor = self._descriptors.get(peer)
        if descriptor is None:
            descriptor = Descriptor(peer, 1, 1, b"", 0, 1, (), _FAR, bytes(64))
            self._descriptors[peer] = descriptor
        return descriptor


class Shipped:
    """A node with the shipped sampling."""

    def __init__(
        self,
        ours: PeerId,
        first: Sequence[PeerId],
        trusted: Sequence[PeerId],
        rng: Random,
        config: TrackerlessConfig,
        directory: Directory,
    ) -> None:
        self._ours = ours
        self._config = config
        self._directory = directory
        self._rounds = 0
        self.trusted = tuple(trusted)
        """The peers that the node's user trusts."""
        self.refused: dict[Reason, int] = {}
        """Pulls that the node refused, by reason."""
        acquaintances = KnownPeers()
        trust = Trust(MemoryStore().cells, config)
        key = rng.randbytes(32)
        self.sampling = PeerSampling(
            ours, config, acquaintances, trust, rng, key, lambda descriptor, now: None
        )
        for peer in first:
            self.sampling.add_descriptor(directory[peer], 0.0)
        for peer in trusted:
            acquaintances.learn_descriptor(directory[peer], 0.0)
            trust.set_trust(peer, 1.0)

    @property
    def view(self) -> tuple[PeerId, ...]:
        """The peers in the node's view."""
        return self.sampling.view

    def begin(self) -> list[Ask]:
        """Begin a round: pull from one peer, and introduce the node."""
        target = self.sampling.choose_target(self._now)
        return [] if target is None else [Ask(target, fresh([self._ours]), is_answered=True)]

    def asked(self, peer: PeerId, entries: Entries) -> Entries:
        """Answer a pull; return nothing if it is refused."""
        pull = Pull(0, self._directory[entries[0].peer])
        try:
            answer, _ = self.sampling.answer_pull(peer, pull, self._directory[self._ours], self._now)
        except RemoteError as error:
            self.refused[error.reason] = self.refused.get(error.reason, 0) + 1
            return ()
        return fresh([descriptor.peer for descriptor in answer.nodes])

    def answered(self, peer: PeerId, entries: Entries) -> None:
        """Take in an answer."""
        nodes = tuple([self._directory[entry.peer] for entry in entries])
        self.sampling.handle_pulled(peer, nodes, self._now)

    def unanswered(self, peer: PeerId) -> None:
        """Note that no answer came."""
        self.sampling.note_failure(peer, self._now)

    def end(self) -> None:
        """End the round."""
        self._rounds += 1
        self.sampling.begin_round(self._now)

    @property
    def _now(self) -> float:
        return self._rounds * self._config.period


class Attack(StrEnum):
    """The behaviour of liars."""

    HUB = "hub"
    """Liars answer with liars alone."""
    SLEEPER = "sleeper"
    """Liars are honest until a round, and then answer with liars alone."""
    ECLIPSE = "eclipse"
    """Liars answer with liars alone, and all ask one victim, over and over."""
    SYBIL = "sybil"
    """Liars answer with changing ids of a large pool, and answer for all of these."""


class AttackPlan(Struct, frozen=True):
    """The parameters of one run."""

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
    """Ids in the pool that liars invent."""
    are_sybils_up: bool = True
    """Whether liars answer for the ids that they invent, or nobody does."""
    is_asking: bool = False
    """Whether liars ask other nodes too, as often as honest nodes do."""
    seed: int = 1


class Figures(Struct, frozen=True):
    """The views of all honest nodes after a round, in whole numbers."""

    round: int
    places: int
    """Entries in all views."""
    lying: int
    """Entries in all views that are liars."""
    victim_places: int
    victim_lying: int
    isolated: int
    """Nodes that know liars alone."""
    unknown: int
    """Honest nodes that no honest node knows."""
    most_known: int
    """How many nodes know the best-known honest node."""
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
    """Return the shipped way of sampling, with these parameters."""
    directory = Directory()

    def make(ours: PeerId, first: Sequence[PeerId], trusted: Sequence[PeerId], rng: Random) -> Gossip:
        return Shipped(ours, first, trusted, rng, config, directory)

    return Way(make, config.answer, sent=1)


def cyclon(size: int = 20, shuffled: int = 10) -> Way:
    """Return plain Cyclon."""
    return Way(
        lambda ours, first, trusted, rng: Cyclon(ours, first, size, shuffled, rng), shuffled, sent=shuffled
    )


def jelasity(config: JelasityConfig) -> Way:
    """Return one configuration of the framework of Jelasity et al."""
    return Way(
        lambda ours, first, trusted, rng: Jelasity(ours, first, config, rng),
        config.view // 2,
        sent=config.view // 2 if config.push else 0,
    )


def brahms(config: BrahmsConfig) -> Way:
    """Return Brahms."""
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
        """Run all rounds; return the figures after each."""
        return [self.round(number) for number in range(1, self._plan.rounds + 1)]

    def view(self, peer: PeerId) -> tuple[PeerId, ...]:
        """Return the peers in a node's view."""
        return self.nodes[peer].view

    def join(self, peer: PeerId, first: Sequence[PeerId]) -> None:
        """Add an honest node that no other node knows; it knows these peers."""
        self._honest.append(peer)
        self.nodes[peer] = self._way.make(peer, first, (), Random(self._rng.getrandbits(64)))

    def round(self, number: int) -> Figures:
        """Run one round of all nodes, in a random order."""
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
        """Make an answer of liars, whichever liar is asked."""
        return fresh(self._rng.sample(self._pool, min(self._way.answer, len(self._pool))))

    def _lie(self) -> None:
        """Let liars ask: under an eclipse all of them ask the victim, under as many ids as there are."""
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
