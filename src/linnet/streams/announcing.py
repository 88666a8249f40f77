"""What a node tells others of a stream beside its events: heads, policy, revocations.

Prev references cannot show that a chain's last event is lost. So neighbours tell each other how
far they know the chains, when they become neighbours and for a few rounds after there was news.
"""

from __future__ import annotations

from collections.abc import Iterable

from linnet.core.effects import CancelTimer, Send, SetTimer
from linnet.core.ids import PeerId, TopicId
from linnet.core.limits import CHAINS_PER_MESSAGE
from linnet.core.timers import Tick
from linnet.delivery.archive import Archive
from linnet.delivery.chain import Chain
from linnet.delivery.context import Context
from linnet.delivery.flood import Flood
from linnet.delivery.messages import ChainPlace, Heads, Revoked
from linnet.identity.cards import Revocation
from linnet.streams.intake import Intake
from linnet.streams.messages import PolicyIs
from linnet.streams.policy import Governance

OWNER = "announcing"
_ROUNDS = 3
"""Neighbours that are told of news, one each period: enough that a lost last event is noticed."""

AnnouncingEffect = Send[Heads | Revoked | PolicyIs] | SetTimer[Tick] | CancelTimer[Tick]


class Announcing:
    """Tells neighbours and storage nodes of one stream what they may not know."""

    def __init__(
        self,
        topic: TopicId,
        context: Context,
        flood: Flood,
        intake: Intake,
        archive: Archive,
        governance: Governance,
    ) -> None:
        self._topic = topic
        self._context = context
        self._flood = flood
        self._intake = intake
        self._archive = archive
        self._governance = governance
        self._rounds = 0
        self._news = 0

    def greet(self, peer: PeerId, keeps: bool) -> list[AnnouncingEffect]:
        """Tell a new neighbour everything; the policy first, since it may reject without it."""
        return [*self.policy((peer,)), *self._revocations(peer), *self.heads(peer, keeps)]

    def news(self, chain: Chain) -> list[AnnouncingEffect]:
        """Something was said: tell neighbours in a while how far the chain goes, in case one missed it."""
        self._news += 1
        chain.news = self._news
        armed, self._rounds = self._rounds > 0, _ROUNDS
        return [] if armed else [self._timer()]

    def fired(self, keeps: bool) -> list[AnnouncingEffect]:
        """Tell one neighbour, by chance, how far the chains go; and those who hear of it from us alone."""
        self._rounds = max(0, self._rounds - 1)
        peers = list(self._flood.neighbors)
        if not peers:
            self._rounds = 0
            return []
        served = (each for each in peers if self._flood.neighbors[each].is_served)
        told: list[AnnouncingEffect] = []
        for peer in dict.fromkeys((self._context.rng.choice(peers), *served)):
            told += self.heads(peer, keeps, since=self._flood.neighbors[peer].told)
            self._flood.neighbors[peer].told = self._news
        return [*told, self._timer()] if self._rounds else told

    def heads(self, peer: PeerId, keeps: bool, since: int = -1) -> list[AnnouncingEffect]:
        """Tell a peer how far the chains go that had news since, and which of them we can resend."""
        places = self._places(since, self._archive.places() if keeps else None)
        if not places and since >= 0:
            return []
        return [
            Send(peer, Heads(self._topic, tuple(places[start : start + CHAINS_PER_MESSAGE])))
            # The last message is never full: that is how the other end knows that it had all.
            for start in range(0, len(places) + 1, CHAINS_PER_MESSAGE)
        ]

    def policy(self, peers: Iterable[PeerId]) -> list[AnnouncingEffect]:
        """Show peers the owner's policy, if there is one."""
        unit = self._governance.unit
        card = None if unit is None else self._context.cards.find(unit.author, unit.device)
        if unit is None or card is None:
            return []
        message = PolicyIs(self._topic, unit, card)
        return [Send(peer, message) for peer in peers]

    def revocation(self, revocation: Revocation, source: PeerId | None) -> list[AnnouncingEffect]:
        """Tell the neighbours of a revocation."""
        message = Revoked(self._topic, revocation)
        return [Send(peer, message) for peer in self._flood.neighbors if peer != source]

    def stop(self) -> list[AnnouncingEffect]:
        """Nobody is told anything any more."""
        self._rounds = 0
        return [CancelTimer(Tick(OWNER, "heads", self._topic))]

    def _revocations(self, peer: PeerId) -> list[AnnouncingEffect]:
        if not self._intake.chains:
            return []
        known = (
            self._context.cards.revocation_of(chain.author, chain.device)
            for chain in self._intake.chains.values()
        )
        return [
            Send(peer, Revoked(self._topic, revocation)) for revocation in known if revocation is not None
        ]

    def _places(self, since: int, kept: list[ChainPlace] | None) -> list[ChainPlace]:
        """How far we know the chains. Where we do not keep the stream, we can resend our own alone."""
        chains = self._intake.chains
        if kept is not None:
            known = ((place, chains.get(place.author + place.device)) for place in kept)
            return [place for place, chain in known if chain is None or chain.news > since]
        ours = self._context.author + self._context.device
        places = []
        for key, chain in chains.items():
            last = chain.seen.last
            if last >= 0 and chain.news > since:
                first = 0 if key == ours else min(chain.base, last)
                places.append(ChainPlace(chain.author, chain.device, first, last, key == ours))
        return places

    def _timer(self) -> SetTimer[Tick]:
        return SetTimer(self._context.config.heads_period, Tick(OWNER, "heads", self._topic))
