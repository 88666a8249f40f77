"""What comes in from outside: duplicates set aside, cards and policy asked, signatures checked.

Nothing leaves here that was not verified whole. A duplicate costs no check: its numbers were seen.
"""

from __future__ import annotations

from linnet.core.errors import InvalidEvent, RemoteError
from linnet.core.ids import AuthorId, DeviceId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.chain import Chain, ChainKey
from linnet.delivery.context import Context
from linnet.delivery.event_archive import known_heads
from linnet.delivery.messages import ChainPlace
from linnet.delivery.ranges import Range
from linnet.event.event import Unverified, Verified
from linnet.identity.cards import Card
from linnet.streams.policy import Governance


class Ingest:
    """The chains of one topic, as far as this node has seen them."""

    def __init__(self, topic: TopicId, context: Context, governance: Governance) -> None:
        self._topic = topic
        self._context = context
        self._governance = governance
        self.chains: dict[ChainKey, Chain] = {}
        self._hearsay: dict[ChainKey, None] = {}
        """Chains that were announced and never heard: the first to go when there are too many."""
        self.anchored = False
        """Whether a storage node has told us which chains there are: an unknown one is new then,
        and all of it is due to us."""
        self.asked: dict[PeerId, None] = {}
        """Who is about to say which chains are due to us from where on. Until then new ones are held."""
        self.resumes = False
        """Whether a durable subscription came back that nobody has told yet what was there before it."""
        self.wants_all = False
        """Whether everything there ever was is due to us: a durable subscription said so."""

    def is_duplicate(self, unit: Unverified) -> bool:
        """Whether all of a unit was seen. Nothing of it is believed for that."""
        if unit.seq is None:
            return False
        chain = self.chains.get(unit.author + unit.device)
        return chain is not None and chain.seen.covers(unit.seq, unit.seq + len(unit.tails) - 1)

    def check(self, unit: Unverified, card: Card | None, now: float | None) -> tuple[Verified, Card]:
        """Verify a unit by its device's card; a `RemoteError` says why it cannot be used.

        Without a `now` it is history: its card's dates are not judged.
        """
        if unit.topic != self._topic or unit.seq is None:
            raise InvalidEvent(Reason.MALFORMED, "not a unit of this stream's chains")
        self._governance.admit(unit.author)
        cards = self._context.cards
        if card is not None and card is not cards.shown(unit.author, unit.device):
            cards.learn(card)
        known = cards.card_for(unit.author, unit.device, now)
        return self._context.verify(unit, known), known

    def check_all(
        self, units: tuple[Unverified, ...], cards: tuple[Card, ...], now: float | None
    ) -> tuple[list[Verified], list[RemoteError]]:
        """Verify a page of history: what is good, and what was wrong with the rest."""
        good: list[Verified] = []
        errors: list[RemoteError] = []
        for card in cards:
            try:
                self._context.cards.learn(card)
            except RemoteError as error:
                errors.append(error)
        for unit in units:
            try:
                good.append(self.check(unit, None, now)[0])
            except RemoteError as error:
                errors.append(error)
        return good, errors

    def accept(
        self, verified: Verified, said_at: float, live: bool = False, now: float | None = None
    ) -> tuple[Chain, list[Verified], Range | None]:
        """Count a verified unit as seen; gives the units whose turn has come, and a range given up for it.

        When it was said is another's word unless it came live; with a `now`, one that cannot be is not taken.
        `InvalidEvent` if it contradicts its chain, or if there are too many chains.
        """
        unit = verified.unit
        first = unit.seq or 0
        last = first + len(unit.tails) - 1
        chain = self.chains.get(unit.author + unit.device)
        if chain is None:
            chain = self._begin(unit.author, unit.device, self._base(first, unit.prev is None))
            chain.held = bool(self.asked) and not self.is_own(chain)
        elif live:
            chain.begin_earlier(first)
        if self._hearsay:
            self._hearsay.pop(chain.key, None)
        lost = chain.accept(verified, first, last)
        chain.moments.note(first, said_at, heard=live, now=now)
        return chain, chain.in_order(verified, first, last), lost

    def announced(
        self, place: ChainPlace, storage: bool, first_due: int | None = None
    ) -> tuple[Chain | None, list[Verified]]:
        """Somebody says how far a chain goes; gives the chain if that is news, and units whose turn has come.

        It may say from where on the chain is due to us. Raises `InvalidEvent` if there are too many chains.
        """
        chain = self.chains.get(place.author + place.device)
        # On the edge, what began while we took part was due to us from its beginning: if who keeps it for us
        # has removed that, it is missing, and others may have it.
        removed = storage and place.held and not (self.anchored and self._context.config.gap_waits)
        if chain is None:
            if self.wants_all:
                base = place.first if removed else 0
            elif first_due is not None:
                base = min(first_due, place.last + 1)
            else:
                # In doubt all is due to who resumes: only nodes of version 0.1.0 leave it in doubt.
                base = 0 if self.anchored or (self.resumes and not self.asked) else place.last + 1
            chain = self._begin(place.author, place.device, base)
            chain.held = bool(self.asked) and not self.is_own(chain)
            self._hearsay[chain.key] = None
        if first_due is not None and first_due <= place.last:
            chain.promised = max(chain.promised, place.last)
        due: list[Verified] = []
        if removed and place.first > chain.base and not chain.seen.touches(0, place.first - 1):
            due = chain.rebase(place.first)
        if place.last <= max(chain.announced, chain.seen.last) and not due:
            return None, due
        chain.announced = max(chain.announced, place.last)
        return chain, due

    def release(self) -> list[tuple[Chain, list[Verified]]]:
        """Whoever was asked has answered, or takes too long: what was held gets its turn."""
        self.asked = {}
        return [(chain, chain.release()) for chain in self.chains.values() if chain.held]

    def restore_own(self) -> None:
        """Our own chain goes on where the log ends, whatever else is done here."""
        context = self._context
        for head in known_heads(self._topic, context.store):
            if (head.author, head.device) == (context.author, context.device):
                self._begin(head.author, head.device, head.first).restore(head.first, head.last, head.head)

    def restore(self, resumed: bool = True) -> dict[ChainKey, int]:
        """Begin with what the log holds. Gives, for chains that were seen further, how far.

        All of the chains that the log does not know is due again, but for those that a subscription
        which resumes had passed over.
        """
        before, self.chains = self.chains, {}
        self._hearsay = {}
        for head in known_heads(self._topic, self._context.store, resumed):
            self._begin(head.author, head.device, head.first).restore(head.first, head.last, head.head)
        floors: dict[ChainKey, int] = {}
        for key, known in before.items():
            chain = self.chains.get(key) or self._begin(known.author, known.device, 0)
            chain.announced = max(known.announced, known.seen.last)
            if known.seen.last > chain.seen.last:
                floors[key] = known.seen.last + 1
        return floors

    def is_own(self, chain: Chain) -> bool:
        """Whether this is our own chain."""
        return chain.key == self._context.author + self._context.device

    def _base(self, first: int, begins: bool) -> int:
        """The first number that is due to us of a chain that we had not heard of."""
        return 0 if (self.anchored or self.wants_all) and not begins else first

    def _begin(self, author: AuthorId, device: DeviceId, base: int) -> Chain:
        config = self._context.config
        if len(self.chains) >= config.max_chains and self._hearsay:
            # Anyone can announce chains that do not exist; those that do must find their place.
            oldest = next(iter(self._hearsay))
            del self._hearsay[oldest], self.chains[oldest]
        if len(self.chains) >= config.max_chains:
            raise InvalidEvent(Reason.TOO_MANY, f"{config.max_chains} chains are known already")
        chain = Chain(author, device, base, config.window_ranges)
        self.chains[chain.key] = chain
        return chain
