"""What a node tells others of a stream beside its events: heads, policy, revocations.

Prev references cannot show that a chain's last event is lost. So neighbours tell each other how
far they know the chains, when they become neighbours and after there was news, until each was told: who
hears of an event only by this tells others in turn, and so nobody who has a neighbour is left out. What a
neighbour does not show to have in its own heads, it is told again (`linnet.streams.unheard`).

A storage node is asked once which chains there are: the anchor (docs/adr/0009-what-is-due.md).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable

from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.limits import CHAINS_PER_MESSAGE
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.delivery.chain import Chain, ChainKey
from linnet.delivery.context import Context
from linnet.delivery.event_archive import Archive
from linnet.delivery.flood import Flood
from linnet.delivery.messages import ChainPlace, Heads, Revoked
from linnet.identity.cards import Revocation
from linnet.machine.outbox import Outbox
from linnet.streams.ingest import Ingest
from linnet.streams.messages import PolicyIs
from linnet.streams.policy import Governance
from linnet.streams.unheard import Unheard
from linnet.trace.records import Kind, Record

_ROUND = 5
"""Periods of heads in a round of `Unheard`: a neighbour with a few others shows within one what it has."""


class HeadsDue(Timer, frozen=True, gc=False):
    """A neighbour that lacks news of a stream is to be told how far the chains go."""

    topic: TopicId


class AnswersDue(Timer, frozen=True, gc=False):
    """Those who were asked what is due of a stream had the time to answer."""

    topic: TopicId


class UnheardDue(Timer, frozen=True, gc=False):
    """A round is over in which neighbours could show what they were told of a stream."""

    topic: TopicId


class Announcements:
    """Tells neighbours and storage nodes of one stream what they may not know."""

    def __init__(
        self,
        topic: TopicId,
        context: Context,
        flood: Flood,
        ingest: Ingest,
        archive: Archive,
        governance: Governance,
        out: Outbox,
        reading_since: Callable[[], float | None] = lambda: None,
    ) -> None:
        self._topic = topic
        self._context = context
        self._flood = flood
        self._ingest = ingest
        self._archive = archive
        self._governance = governance
        self._out = out
        self._reading_since = reading_since
        self._asked_of_us: dict[PeerId, float] = {}
        """Since when each peer has read the topic that told us so, by our clock."""
        self._asked_by_us: dict[PeerId, None] = {}
        self._began_at: float | None = None
        """When somebody was first told anything: what the log held when the stream was opened is older."""
        self._news = 0
        self._is_armed = False
        self._unheard = Unheard(context.config.max_chains)
        self._is_counting = False

    @property
    def asks(self) -> bool:
        """Whether somebody here reads and wants to know what was said since."""
        return self._reading_since() is not None

    def has_asked(self, peer: PeerId) -> bool:
        """Whether this peer was told since when we read."""
        return peer in self._asked_by_us

    def note_question(self, peer: PeerId, waited_ms: int, now: float) -> None:
        """This peer has read the topic for so long: from now on it is told what was said in that time."""
        self._asked_of_us[peer] = now - waited_ms / 1000

    def handle_link_down(self, peer: PeerId) -> None:
        """The link to a peer is gone: it will ask anew, and so shall we."""
        self._asked_of_us.pop(peer, None)
        self._asked_by_us.pop(peer, None)
        self._unheard.forget(peer)

    def forget_neighbor(self, peer: PeerId) -> None:
        """A peer is our neighbour no longer: others tell it what there is."""
        self._unheard.forget(peer)

    def note_heads(self, peer: PeerId, heads: Heads) -> None:
        """A neighbour says how far it knows chains."""
        neighbor = self._flood.neighbors.get(peer)
        if neighbor is None:
            return
        chains, told = self._ingest.chains, neighbor.told

        def will_tell(place: ChainPlace) -> bool:
            chain = chains.get(place.author + place.device)
            return chain is not None and (chain.news > told or chain.seen.last < place.last)

        self._unheard.shown(peer, heads.chains, will_tell)

    def greet_neighbor(self, peer: PeerId, keeps: bool, now: float) -> None:
        """Tell a new neighbour everything; the policy first, since it may reject without it."""
        self._asked_by_us.pop(peer, None)
        neighbor = self._flood.neighbors.get(peer)
        if neighbor is not None:
            neighbor.told = self._news
        self.send_policy((peer,))
        self._send_revocations(peer)
        self.send_heads(peer, keeps, now)

    def note_news(self, chain: Chain) -> None:
        """Something was said: tell neighbours in a while how far the chain goes, in case one missed it."""
        self._news += 1
        chain.news = self._news
        if not self._is_armed:
            self._is_armed = True
            self._out.set_timer(self._context.config.heads_period, HeadsDue(self._topic))

    def tell_news(self, keeps: bool, now: float) -> None:
        """Tell one neighbour that lacks news how far the chains go; and all who hear from us alone."""
        neighbors = self._flood.neighbors
        lacking = [peer for peer, each in neighbors.items() if each.told < self._news]
        if not lacking:
            self._is_armed = False
            return
        served = (peer for peer in lacking if neighbors[peer].is_served)
        chosen = dict.fromkeys((self._context.rng.choice(lacking), *served))
        for peer in chosen:
            self.send_heads(peer, keeps, now, since=neighbors[peer].told)
            neighbors[peer].told = self._news
        self._is_armed = len(chosen) < len(lacking)
        if self._is_armed:
            self._out.set_timer(self._context.config.heads_period, HeadsDue(self._topic))

    def repeat_heads(self, keeps: bool, now: float) -> None:
        """Tell neighbours again what they have not shown, and say of whom we give that up."""
        again, ended = self._unheard.next_round()
        for peer, keys in again.items():
            self._send_places(peer, self._places(-1, keeps, dict.fromkeys(keys)), now)
        note = "told how far chains go, and shows them not"
        for peer, count in ended.items():
            self._out.record(
                Record(Kind.CONTROL, self._topic, events=count, peer=peer, reason=Reason.TIMEOUT, note=note)
            )
        self._is_counting = False
        self._count_rounds()

    def send_heads(self, peer: PeerId, keeps: bool, now: float, since: int = -1) -> None:
        """Tell a peer how far the chains go that had news since, and which of them we can resend.

        Whoever reads says for how long it has; to whom that was said, we tell what is due since.
        """
        places = self._places(since, keeps)
        if not places and since >= 0:
            return
        neighbor = self._flood.neighbors.get(peer)
        # A newcomer need not want what was there before. Who hears from us alone is told all of it, surely.
        if neighbor is not None and (since >= 0 or neighbor.is_served):
            self._unheard.told(peer, places)
        self._send_places(peer, places, now)
        self._count_rounds()

    def _send_places(self, peer: PeerId, places: list[ChainPlace], now: float) -> None:
        if self._began_at is None:
            self._began_at = now
        waited = self._waited(peer, now)
        # The last message is never full: that is how the other end knows that it had all.
        for start in range(0, len(places) + 1, CHAINS_PER_MESSAGE):
            page = tuple(places[start : start + CHAINS_PER_MESSAGE])
            self._out.send(peer, self._heads(peer, page, waited))

    def _count_rounds(self) -> None:
        """As long as somebody has not shown what it was told, rounds are counted."""
        if not self._is_counting and self._unheard:
            self._is_counting = True
            self._out.set_timer(_ROUND * self._context.config.heads_period, UnheardDue(self._topic))

    def _heads(self, peer: PeerId, places: tuple[ChainPlace, ...], waited_ms: int) -> Heads:
        moment = self._asked_of_us.get(peer)
        due = None if moment is None else tuple(self._due(place, moment) for place in places)
        return Heads(self._topic, places, waited_ms, due)

    def _waited(self, peer: PeerId, now: float) -> int:
        """For how long we have read, in milliseconds, unless the peer knows; 0 if we do not ask."""
        since = self._reading_since()
        if since is None or peer in self._asked_by_us:
            return 0
        self._asked_by_us[peer] = None
        return max(1, int((now - since) * 1000))

    def _due(self, place: ChainPlace, moment: float) -> int:
        """The first number of a chain that was said since a moment; behind its end if none was."""
        chain = self._ingest.chains.get(place.author + place.device)
        first = None if chain is None else chain.moments.since(moment)
        found = place.last + 1 if first is None else min(first, place.last + 1)
        if self._began_at is not None and moment > self._began_at:
            return found  # Most who ask came later than we did: the log need not be searched.
        stored = place.last if chain is None else min(place.last, chain.restored)
        first = self._archive.stored_since(place.author, place.device, place.first, stored, moment)
        return found if first is None else min(first, found)

    def send_policy(self, peers: Iterable[PeerId]) -> None:
        """Show peers the owner's policy, if there is one."""
        unit = self._governance.unit
        card = None if unit is None else self._context.cards.shown(unit.author, unit.device)
        if unit is None or card is None:
            return
        message = PolicyIs(self._topic, unit, card)
        for peer in peers:
            self._out.send(peer, message)

    def send_revocation(self, revocation: Revocation, source: PeerId | None) -> None:
        """Tell the neighbours of a revocation."""
        message = Revoked(self._topic, revocation)
        for peer in self._flood.neighbors:
            if peer != source:
                self._out.send(peer, message)

    def wait_for_answers(self) -> None:
        """Give those who are asked the time to answer."""
        self._out.set_timer(self._context.config.gap_timeout, AnswersDue(self._topic))

    def stop(self) -> None:
        """Nobody is told anything any more."""
        self._is_armed = self._is_counting = False
        self._out.cancel_timer(HeadsDue(self._topic))
        self._out.cancel_timer(AnswersDue(self._topic))
        self._out.cancel_timer(UnheardDue(self._topic))

    def _send_revocations(self, peer: PeerId) -> None:
        for chain in self._ingest.chains.values():
            revocation = self._context.cards.revocation_of(chain.author, chain.device)
            if revocation is not None:
                self._out.send(peer, Revoked(self._topic, revocation))

    def _places(self, since: int, keeps: bool, only: Container[ChainKey] | None = None) -> list[ChainPlace]:
        """How far we know the chains. Where we do not keep the stream, we can resend our own alone."""
        places = self._kept_places(since) if keeps else self._seen_places(since)
        return places if only is None else [each for each in places if each.author + each.device in only]

    def _kept_places(self, since: int) -> list[ChainPlace]:
        chains = self._ingest.chains
        known = ((place, chains.get(place.author + place.device)) for place in self._archive.places())
        return [place for place, chain in known if chain is None or chain.news > since]

    def _seen_places(self, since: int) -> list[ChainPlace]:
        ours = self._context.author + self._context.device
        places = []
        for key, chain in self._ingest.chains.items():
            last = chain.seen.last
            if last >= 0 and chain.news > since:
                first = 0 if key == ours else min(chain.base, last)
                places.append(ChainPlace(chain.author, chain.device, first, last, key == ours))
        return places


class AnchorDue(Timer, frozen=True, gc=False):
    """The storage node that is the anchor had the time to answer."""

    topic: TopicId


class Anchor:
    """Holds a link to one storage node until it has answered, or to another if it does not."""

    def __init__(self, topic: TopicId, context: Context, out: Outbox) -> None:
        self._context = context
        self._out = out
        self._timer = AnchorDue(topic)
        self._purpose = f"anchor {topic.hex()[:16]}"
        self.peer: PeerId | None = None
        """Whom we ask."""

    def hold_one(self, nodes: Iterable[Contact]) -> PeerId:
        """Choose a storage node by chance, so that no single one is asked by all, and hold a link to it."""
        chosen = self._context.rng.choice(list(nodes))
        self.peer = chosen.peer
        self._out.hold(chosen.peer, chosen.hints, self._purpose)
        self._out.set_timer(self._context.config.history_timeout, self._timer)
        return chosen.peer

    def release(self) -> None:
        """Let the storage node go: it has answered, it does not, or nobody wants to know any more."""
        if self.peer is not None:
            peer, self.peer = self.peer, None
            self._out.cancel_timer(self._timer)
            self._out.release(peer, self._purpose)
