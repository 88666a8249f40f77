"""Tells other nodes about a stream apart from its events: heads, policy, revocations.

Prev references cannot show that the last event of a chain was lost. So neighbours tell each other how far
they know the chains, when they become neighbours and after news, until each of them was told. A node that
learns of an event only in this way tells others in turn, so no node that has a neighbour is left out. If the
heads of a neighbour do not show what it was told, it is told again, a few times and at growing intervals:
the message may have been lost, and a node whose only neighbour we are learns of the event from nobody else.

A storage node is asked once which chains there are: the anchor (docs/adr/0009-what-is-due.md).

A subscriber may find other nodes only later. It tells them for how long it has subscribed, and they tell it
from which number on each chain was published in that time: that part is due to it (docs/adr/0027-made-at.md).
While an answer is on its way, new chains are held, so that nothing overtakes an earlier event that is due.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable

from msgspec import Struct

from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.limits import CHAINS_PER_MESSAGE
from linnet.core.reasons import Reason
from linnet.core.timers import TopicTimer
from linnet.delivery.chain import SLACK, Chain, ChainKey, Range
from linnet.delivery.context import Context
from linnet.delivery.event_archive import Archive
from linnet.delivery.flood import Flood
from linnet.delivery.messages import ChainPlace, Heads, Revoked
from linnet.identity.cards import Revocation
from linnet.machine.outbox import Outbox
from linnet.streams.ingest import Governance, Ingest
from linnet.streams.messages import PolicyIs
from linnet.streams.subscribe import Readers
from linnet.trace.records import Kind, Record

REPEATS = (2, 4, 8)
"""Rounds after which a neighbour is told again about a chain that its heads have not shown."""
LAST_ROUND = 16
"""The round after which we stop telling it: it is not interested, or rejects the events."""


class _Told(Struct, eq=False, gc=False):
    """How far a neighbour was told that a chain goes, and for how many rounds it has not shown that."""

    last: int
    rounds: int = 0


def _joined(place: ChainPlace) -> ChainKey:
    return place.author + place.device


class Unheard:
    """Tracks the chains that neighbours of one stream were told about and have not shown in their heads."""

    def __init__(self, most: int, key_of: Callable[[ChainPlace], ChainKey] = _joined) -> None:
        """`key_of` may return a key that is kept anyway, in place of an equal one."""
        self._most = most
        self._key_of = key_of
        self._told: dict[PeerId, dict[ChainKey, _Told]] = {}
        self._shown: dict[PeerId, dict[ChainKey, int]] = {}
        """What neighbours showed before we told them: they will not show it a second time."""

    def __bool__(self) -> bool:
        return bool(self._told)

    def note_told(self, peer: PeerId, places: Iterable[ChainPlace]) -> None:
        """Note how far a neighbour was told that chains go."""
        shown = self._shown.pop(peer, {})
        lacking = self._told.get(peer, {})
        for place in places:
            key = self._key_of(place)
            if shown.get(key, -1) >= place.last:
                continue
            known = lacking.get(key)
            if known is None:
                lacking[key] = _Told(place.last)
            else:
                known.last = max(known.last, place.last)
        if lacking:
            self._told[peer] = lacking

    def note_shown(
        self, peer: PeerId, places: Iterable[ChainPlace], will_tell: Callable[[ChainPlace], bool]
    ) -> None:
        """Note how far a neighbour knows chains; we may not have told it about some of them yet."""
        lacking = self._told.get(peer, {})
        early = self._shown.setdefault(peer, {})
        for place in places:
            key = self._key_of(place)
            known = lacking.get(key)
            if known is not None and place.last >= known.last:
                del lacking[key]
            if len(early) < self._most and will_tell(place):
                early[key] = max(place.last, early.get(key, -1))
        if not lacking:
            self._told.pop(peer, None)
        if not early:
            del self._shown[peer]

    def forget(self, peer: PeerId) -> None:
        """Forget a neighbour that is gone; when it returns, it is told everything."""
        self._told.pop(peer, None)
        self._shown.pop(peer, None)

    def next_round(self) -> tuple[dict[PeerId, list[ChainKey]], dict[PeerId, int]]:
        """Count a round; return the chains to tell each neighbour again, and how many it is given up on."""
        again: dict[PeerId, list[ChainKey]] = {}
        ended: dict[PeerId, int] = {}
        for peer, lacking in list(self._told.items()):
            for key, told in list(lacking.items()):
                told.rounds += 1
                if told.rounds in REPEATS:
                    again.setdefault(peer, []).append(key)
                elif told.rounds >= LAST_ROUND:
                    del lacking[key]
                    ended[peer] = ended.get(peer, 0) + 1
            if not lacking:
                del self._told[peer]
        return again, ended


_ROUND = 5
"""Heads periods in a round of `Unheard`: within one, a neighbour with few others shows what it has."""


class HeadsDue(TopicTimer, frozen=True, gc=False):
    """Time to tell a neighbour that lacks news of a stream how far the chains go."""


class AnswersDue(TopicTimer, frozen=True, gc=False):
    """The time is up in which peers could answer which events of a stream are due."""


class UnheardDue(TopicTimer, frozen=True, gc=False):
    """A round is over in which neighbours could show what they were told about a stream."""


class Announcements:
    """Tells neighbours and storage nodes of one stream what they may not know yet."""

    def __init__(
        self,
        topic: TopicId,
        context: Context,
        flood: Flood,
        ingest: Ingest,
        archive: Archive,
        governance: Governance,
        out: Outbox,
        readers: Readers,
    ) -> None:
        self._topic = topic
        self._context = context
        self._flood = flood
        self._ingest = ingest
        self._archive = archive
        self._governance = governance
        self._out = out
        self._readers = readers
        self._asked_of_us: dict[PeerId, float] = {}
        """When each peer that asked us began to read the topic, by our clock."""
        self._asked_by_us: dict[PeerId, None] = {}
        self._began_at: float | None = None
        """When we first told anybody anything; what the log held when the stream was opened is older."""
        self._news = 0
        self._is_armed = False
        self._unheard = Unheard(context.config.max_chains, ingest.key_of)
        self._is_counting = False

    @property
    def asks(self) -> bool:
        """Whether a subscription here asks for what was published since it was made."""
        return self._readers.since is not None

    def has_asked(self, peer: PeerId) -> bool:
        """Return whether we told this peer since when we read."""
        return peer in self._asked_by_us

    def note_question(self, peer: PeerId, waited_ms: int, now: float) -> None:
        """Note for how long a peer has read; from now on, heads tell it what was published in that time."""
        self._asked_of_us[peer] = now - waited_ms / 1000

    def handle_link_down(self, peer: PeerId) -> None:
        """Forget what a peer asked us and what we asked it: both ask again over another link."""
        self._asked_of_us.pop(peer, None)
        self._asked_by_us.pop(peer, None)
        self._unheard.forget(peer)

    def forget_neighbor(self, peer: PeerId) -> None:
        """Forget what a neighbour was told; others will tell it about the chains."""
        self._unheard.forget(peer)

    def note_heads(self, peer: PeerId, heads: Heads) -> None:
        """Note how far a neighbour's heads show that it knows the chains."""
        neighbor = self._flood.neighbors.get(peer)
        if neighbor is None:
            return
        chains, told = self._ingest.chains, neighbor.told

        def will_tell(place: ChainPlace) -> bool:
            chain = chains.get(place.author + place.device)
            return chain is not None and (chain.news > told or chain.seen.last < place.last)

        self._unheard.note_shown(peer, heads.chains, will_tell)

    def greet_neighbor(self, peer: PeerId, keeps: bool, now: float) -> None:
        """Tell a new neighbour everything, the policy first, since it may reject events without it."""
        self._asked_by_us.pop(peer, None)
        neighbor = self._flood.neighbors.get(peer)
        if neighbor is not None:
            neighbor.told = self._news
        self.send_policy((peer,))
        self.send_revocations(peer, self._ingest.chains)
        self.send_heads(peer, keeps, now)

    def note_news(self, chain: Chain) -> None:
        """Note news of a chain, and tell neighbours its new end after a while, in case they missed it."""
        self._news += 1
        chain.news = self._news
        if not self._is_armed:
            self._is_armed = True
            self._out.set_timer(self._context.config.heads_period, HeadsDue(self._topic))

    def tell_news(self, keeps: bool, now: float) -> None:
        """Send heads to one random neighbour that lacks news, and to all that depend on us alone."""
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
        """Send neighbours again the heads that they have not shown, and record for which we give up."""
        again, ended = self._unheard.next_round()
        for peer, keys in again.items():
            self.send_places(peer, self.places(-1, keeps, dict.fromkeys(keys)), now)
        note = "told how far chains go, and shows them not"
        for peer, count in ended.items():
            self._out.record(
                Record(Kind.CONTROL, self._topic, events=count, peer=peer, reason=Reason.TIMEOUT, note=note)
            )
        self._is_counting = False
        self._count_rounds()

    def send_heads(self, peer: PeerId, keeps: bool, now: float, since: int = -1) -> None:
        """Tell a peer how far the chains with news since then go, and which of them we can resend.

        Heads say for how long we have read; a peer that told us the same is also told what is due to it.
        """
        places = self.places(since, keeps)
        if not places and since >= 0:
            return
        neighbor = self._flood.neighbors.get(peer)
        # A newcomer need not want the older chains. A neighbour that depends on us must learn of them all.
        if neighbor is not None and (since >= 0 or neighbor.is_served):
            self._unheard.note_told(peer, places)
        self.send_places(peer, places, now)
        self._count_rounds()

    def send_places(self, peer: PeerId, places: list[ChainPlace], now: float) -> None:
        """Send a peer these ends of chains; heads say for how long we have read, and what is due to it."""
        if self._began_at is None:
            self._began_at = now
        waited = self._waited(peer, now)
        # The last message is never full: that tells the receiver that it has them all.
        for start in range(0, len(places) + 1, CHAINS_PER_MESSAGE):
            page = tuple(places[start : start + CHAINS_PER_MESSAGE])
            self._out.send(peer, self._heads(peer, page, waited))

    def _count_rounds(self) -> None:
        """Count rounds while a neighbour has not shown what it was told."""
        if not self._is_counting and self._unheard:
            self._is_counting = True
            self._out.set_timer(_ROUND * self._context.config.heads_period, UnheardDue(self._topic))

    def _heads(self, peer: PeerId, places: tuple[ChainPlace, ...], waited_ms: int) -> Heads:
        moment = self._asked_of_us.get(peer)
        due = None if moment is None else tuple(self._due(place, moment) for place in places)
        return Heads(self._topic, places, waited_ms, due)

    def ask_again(self, peer: PeerId, keeps: bool, now: float) -> None:
        """Tell a peer once more since when we read, so that it says again what is due."""
        self._asked_by_us.pop(peer, None)
        self.send_heads(peer, keeps, now)

    def _waited(self, peer: PeerId, now: float) -> int:
        """Return for how long we have read, in milliseconds; 0 if the peer knows that or we do not ask."""
        since = self._readers.since
        if since is None or peer in self._asked_by_us:
            return 0
        self._asked_by_us[peer] = None
        return max(1, int((now - since) * 1000))

    def _due(self, place: ChainPlace, moment: float) -> int:
        """Return the first number of a chain published since a moment, or one past its end if none was."""
        chain = self._ingest.chains.get(place.author + place.device)
        if chain is not None and chain.held:
            return 0  # We ask others ourselves. In doubt, all is due.
        first = None if chain is None else chain.moments.since(moment)
        found = place.last + 1 if first is None else min(first, place.last + 1)
        if chain is not None and not self._ingest.wants_all:
            # We lack these, and they are due to us: in doubt, to others too.
            found = min([found, *(lacking for lacking, _ in chain.missing()[:1])])
        if self._began_at is not None and moment > self._began_at:
            return found  # Most who ask came later than we did: the log need not be searched.
        stored = place.last if chain is None else min(place.last, chain.restored)
        first = self._archive.stored_since(place.author, place.device, place.first, stored, moment)
        return found if first is None else min(first, found)

    def send_policy(self, peers: Iterable[PeerId]) -> None:
        """Send peers the owner's policy, if there is one."""
        unit = self._governance.unit
        card = None if unit is None else self._context.cards.current_card(unit.author, unit.device)
        if unit is None or card is None:
            return
        message = PolicyIs(self._topic, unit, card)
        for peer in peers:
            self._out.send(peer, message)

    def send_revocation(
        self, revocation: Revocation, source: PeerId | None, others: Iterable[PeerId] = ()
    ) -> None:
        """Tell the neighbours and these others, except the source, of a revocation."""
        message = Revoked(self._topic, revocation)
        for peer in dict.fromkeys((*self._flood.neighbors, *others)):
            if peer != source:
                self._out.send(peer, message)

    def wait_for_answers(self) -> None:
        """Set the time within which the peers that we asked must answer."""
        self._out.set_timer(self._context.config.gap_timeout, AnswersDue(self._topic))

    def stop(self) -> None:
        """Stop all announcements."""
        self._is_armed = self._is_counting = False
        self._out.cancel_timer(HeadsDue(self._topic))
        self._out.cancel_timer(AnswersDue(self._topic))
        self._out.cancel_timer(UnheardDue(self._topic))

    def send_revocations(self, peer: PeerId, keys: Iterable[ChainKey]) -> None:
        """Tell a peer which devices were revoked, among those of these chains."""
        chains = self._ingest.chains
        for chain in (chains[key] for key in keys if key in chains):
            revocation = self._context.cards.revocation_of(chain.author, chain.device)
            if revocation is not None:
                self._out.send(peer, Revoked(self._topic, revocation))

    def places(self, since: int, keeps: bool, only: Container[ChainKey] | None = None) -> list[ChainPlace]:
        """Return how far we know the chains. Unless we keep the stream, we can resend only our own."""
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


class AnchorDue(TopicTimer, frozen=True, gc=False):
    """The time is up in which the anchor, a storage node, could answer."""


class Anchor:
    """Holds a link to one storage node until it answers; if it does not, to another one."""

    def __init__(self, topic: TopicId, context: Context, out: Outbox) -> None:
        self._context = context
        self._out = out
        self._timer = AnchorDue(topic)
        self._purpose = f"anchor {topic.hex()[:16]}"
        self.peer: PeerId | None = None
        """The storage node that we ask."""

    def hold_one(self, nodes: Iterable[Contact]) -> PeerId:
        """Hold a link to a random storage node, so that not all subscribers ask the same one."""
        chosen = self._context.rng.choice(list(nodes))
        self.peer = chosen.peer
        self._out.hold(chosen.peer, chosen.hints, self._purpose)
        self._out.set_timer(self._context.config.history_timeout, self._timer)
        return chosen.peer

    def release(self) -> None:
        """Release the storage node: it answered, it was too slow, or the answer is no longer needed."""
        if self.peer is not None:
            peer, self.peer = self.peer, None
            self._out.cancel_timer(self._timer)
            self._out.release(peer, self._purpose)


class Due:
    """Works out from the word of neighbours and storage nodes which events of one stream are due to us."""

    def __init__(
        self, ingest: Ingest, archive: Archive, readers: Readers, announcements: Announcements
    ) -> None:
        self._ingest = ingest
        self._archive = archive
        self._readers = readers
        self._announcements = announcements

    def handle_question(self, peer: PeerId, heads: Heads, keeps: bool, now: float) -> None:
        """Note a peer's question; if the peer is about to answer ours, hold new chains until it does."""
        if heads.waited_ms is None:
            return
        if heads.waited_ms:
            self._announcements.note_question(peer, heads.waited_ms, now)
        if self.is_final(heads):
            return
        waits = not self._ingest.asked
        self._ingest.asked[peer] = None
        if not heads.waited_ms and not self._announcements.has_asked(peer):
            self._announcements.send_heads(peer, keeps, now)
        if waits:
            self._announcements.wait_for_answers()

    def ask(self, peer: PeerId, keeps: bool, now: float) -> None:
        """Ask a peer that sent the first event of a chain how much of the chain before it is due to us."""
        self._ingest.asked[peer] = None
        self._announcements.ask_again(peer, keeps, now)
        self._announcements.wait_for_answers()

    def is_final(self, heads: Heads) -> bool:
        """Return whether these heads are a peer's last word: it has answered, it cannot, or we do not ask."""
        return heads.due is not None or heads.waited_ms is None or not self._announcements.asks

    def is_answered(self, peer: PeerId) -> bool:
        """Note that a peer has said what is due; return whether it was the last one that we waited for."""
        if peer not in self._ingest.asked:
            return False
        del self._ingest.asked[peer]
        return not self._ingest.asked

    def settle(self, place: ChainPlace, first: int) -> tuple[Chain | None, list[Range]]:
        """Begin a chain at the first number that a peer says was published in our time.

        Returns the chain if it now begins earlier, and the ranges of it that have lost their turn, since
        later events were handed over already.
        """
        chain = self._ingest.chains.get(place.author + place.device)
        if chain is None or self._ingest.wants_all or self._ingest.is_own(chain):
            return None, []
        base = chain.base
        if chain.promised < 0 and first > base and not len(chain.seen):
            # The peers that spoke before knew less of the chain; this one says that the rest is old.
            chain.rebase(first)
        if first > place.last:
            return None, []  # Nothing in our time, as far as this one knows.
        if chain.due_from(first):
            if chain.base == base:
                return None, []
            chain.announced = max(chain.announced, place.last)
            return chain, []
        chain.base = max(first, chain.told)
        return chain, chain.seen.missing(chain.base, base - 1)

    def remember(self, place: ChainPlace) -> None:
        """Store from which number on a chain is due, for durable subscriptions that resume later."""
        chain = self._ingest.chains.get(place.author + place.device)
        if chain is None or len(chain.seen) or self._ingest.wants_all or not self._readers.durable:
            return
        self._archive.due_from(chain.author, chain.device, chain.base)

    def note_answer(self, peer: PeerId, place: ChainPlace, first: int | None) -> None:
        """Note what a peer says about when events were published: events that most call new stay new."""
        since, chain = self._readers.since, self._ingest.chains.get(place.author + place.device)
        if first is not None and since is not None and chain is not None:
            chain.moments.note_answer(peer, place.first, first, place.last, since)

    def look_back(self, key: ChainKey, now: float) -> None:
        """Date the events that follow the last one in the log after that one, whatever peers say."""
        chain = self._ingest.chains.get(key)
        if chain is None or chain.restored < 0:
            return
        said_at = self._archive.said_at(chain.author, chain.device, chain.restored)
        if said_at is not None:
            chain.moments.not_before(chain.restored + 1, min(said_at, now))

    def note_late(self, chain: Chain, keeps: bool, now: float) -> None:
        """Store the date of late events: after a restart, peers that ask must not take them for new."""
        said_at = chain.moments.at(chain.next - 1) if keeps else None
        if said_at is not None and said_at < now - SLACK:
            self._archive.came_late(chain.author, chain.device, chain.next - 1, said_at)
