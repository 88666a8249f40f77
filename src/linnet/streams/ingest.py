"""Checks incoming units: drops duplicates, checks cards and the policy, verifies signatures.

The stream's owner signs who may publish, and every node enforces it. Only units that were verified whole
leave this module. A duplicate costs no check, since its numbers were seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec
from msgspec.structs import astuple

from linnet.core.errors import InvalidEvent, RemoteError
from linnet.core.ids import AuthorId, DeviceId, PeerId, TopicId
from linnet.core.limits import LARGEST_COUNT
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.delivery.chain import Chain, ChainKey, EarlyUnits, Range
from linnet.delivery.context import Context
from linnet.delivery.event_archive import known_heads
from linnet.delivery.messages import ChainPlace
from linnet.event.event import Event, Tail, Unverified, Verified
from linnet.event.signing import decode_unit, encode_unit, recall_unit
from linnet.identity.cards import Card
from linnet.streams.commands import Policy

POLICY = "policy"
"""The kind of an event that sets a stream's policy; its body is a `Policy`."""

REFUSED_ALIKE = (Reason.CARD_REVOKED, Reason.NOT_A_PUBLISHER)
"""Reasons to refuse an event, whoever has it."""
_FIRST_FIELDS = 4
"""The fields of a policy that every version knows."""
_POLICIES = "policy"
_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(Policy)


class Governance:
    """The policy of one stream, signed by its owner. A stream without an owner is open."""

    def __init__(self, topic: TopicId, owner: AuthorId | None, cells: Cells) -> None:
        self._topic = topic
        self._cells = cells
        self.owner = owner
        self.policy = Policy()
        self.unit: Unverified | None = None
        """The unit that carries the policy, to be shown to new neighbours."""
        self._at: tuple[int, int] = (-1, -1)
        self._allowed: dict[AuthorId, None] | None = None if owner is None else {owner: None}
        kept = None if owner is None else cells.get(_POLICIES, topic)
        if kept is not None:
            self.read(recall_unit(decode_unit(kept)))

    def admit(self, author: AuthorId) -> None:
        """Raise `InvalidEvent` unless this author may publish.

        While no policy is known, only the owner may.
        """
        if self._allowed is not None and author not in self._allowed:
            raise InvalidEvent(Reason.NOT_A_PUBLISHER, "the stream's owner does not list this author")

    def read(self, verified: Verified) -> bool:
        """Take in a newer policy if the unit holds one from the owner; return whether it did."""
        if self.owner is None or verified.unit.author != self.owner:
            return False
        news = False
        for event in verified.events:
            if event.kind == POLICY:
                news = self._take(event, verified.unit) or news
        return news

    def next_time(self, now: float) -> int:
        """Return the time, in milliseconds, at which the owner's next policy replaces the present one.

        A clock that was ahead for a while would otherwise have the last word for as long.
        """
        return min(max(int(now * 1000), self._at[0] + 1), LARGEST_COUNT)

    def tail(self, policy: Policy, time: int) -> Tail:
        """Return the tail of an event that sets a policy."""
        # Older versions read only a policy without the fields that they do not know.
        fields = list(astuple(policy))
        while len(fields) > _FIRST_FIELDS and not fields[-1]:
            fields.pop()
        return Tail(None, None, None, None, POLICY, "", time, None, _encode(fields))

    def _take(self, event: Event, unit: Unverified) -> bool:
        # The owner's own clock decides which is later; the sequence number breaks ties of one device.
        at = (event.time, event.seq or 0)
        if at <= self._at:
            return False
        try:
            policy = _decoder.decode(event.body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return False
        self._at = at
        self.policy = policy
        self.unit = unit
        if policy.publishers is None:
            self._allowed = None
        else:
            self._allowed = {AuthorId(author): None for author in (event.author, *policy.publishers)}
        self._cells.put(_POLICIES, self._topic, encode_unit(unit))
        return True


class Ingest:
    """The chains of one topic, as far as this node has seen them, and the checks of new units."""

    def __init__(self, topic: TopicId, context: Context, governance: Governance) -> None:
        self._topic = topic
        self._context = context
        self._governance = governance
        self.chains: dict[ChainKey, Chain] = {}
        self._early = EarlyUnits()
        self._hearsay: dict[ChainKey, None] = {}
        """Announced chains of which no event was received: the first to be dropped when there are too
        many."""
        self.forgotten: Callable[[ChainKey], None] = lambda key: None
        """Called with a chain that was announced, and made room for another."""
        self.anchored = False
        """Whether a storage node has told us which chains exist: an unknown chain is new then, and all of it
        is due to us."""
        self.asked: dict[PeerId, None] = {}
        """Peers that are about to say from which number on each chain is due to us; until then, new chains
        are held."""
        self.asks: Callable[[], bool] = lambda: False
        """Returns whether a subscription here asks what was published before the first event that it got."""
        self.resumes = False
        """Whether a durable subscription has resumed and no peer has told yet which events were there before
        it."""
        self.wants_all = False
        """Whether everything ever published is due to us, because a durable subscription asks for it."""

    def is_duplicate(self, unit: Unverified) -> bool:
        """Return whether all events of a unit were seen before. That alone makes nothing in it believed."""
        if unit.seq is None:
            return False
        chain = self.chains.get(unit.author + unit.device)
        return chain is not None and chain.seen.covers(unit.seq, unit.seq + len(unit.tails) - 1)

    def key_of(self, place: ChainPlace) -> ChainKey:
        """Return the key of a place's chain: the chain's own one if we know it, so that it is kept once."""
        key = place.author + place.device
        chain = self.chains.get(key)
        return key if chain is None else chain.key

    def check(self, unit: Unverified, card: Card | None, now: float | None) -> tuple[Verified, Card]:
        """Verify a unit by its device's card; raises a `RemoteError` if the unit cannot be used.

        Without `now` the unit is history: the dates of its card are not checked.
        """
        if unit.topic != self._topic or unit.seq is None:
            raise InvalidEvent(Reason.MALFORMED, "not a unit of this stream's chains")
        self._governance.admit(unit.author)
        return self._context.check(unit, card, now)

    def check_all(
        self, units: tuple[Unverified, ...], cards: tuple[Card, ...], now: float | None
    ) -> tuple[list[Verified], list[RemoteError]]:
        """Verify a page of history; return the good units, and the errors of the rest."""
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
        """Count a verified unit as seen; return its chain, the units whose turn has come, and a lost range.

        `said_at` is another node's word unless the unit is live; with `now`, an impossible time is not noted.
        Raises `InvalidEvent` if the unit contradicts its chain, or if there are too many chains.
        """
        unit = verified.unit
        first = unit.seq or 0
        last = first + len(unit.tails) - 1
        chain = self.chains.get(unit.author + unit.device)
        if chain is None:
            chain = self._begin(unit.author, unit.device, self._base(first, unit.prev is None))
            in_doubt = bool(self.asked) or (live and chain.base > 0 and self.asks())
            chain.held = in_doubt and not self.is_own(chain)
        elif live:
            chain.begin_earlier(first)
        if self._hearsay:
            self._hearsay.pop(chain.key, None)
        lost = chain.accept(verified, first, last)
        chain.moments.note(first, said_at, heard=live, now=now)
        return chain, chain.in_order(verified, first, last), lost

    def note_place(
        self, place: ChainPlace, storage: bool, first_due: int | None = None
    ) -> tuple[Chain | None, list[Verified]]:
        """Note how far a chain goes; return the chain if that is news, and the units whose turn has come.

        `first_due` is the number from which on the chain is due to us, if the peer says so. Raises
        `InvalidEvent` if there are too many chains.
        """
        chain = self.chains.get(place.author + place.device)
        # On the edge, a chain that began while we took part was due to us from its beginning: if the node
        # that keeps it for us has removed that part, it is a gap, which others may fill.
        removed = storage and place.held and not (self.anchored and self._context.config.gap_waits)
        if chain is None:
            if self.wants_all:
                base = place.first if removed else 0
            elif first_due is not None:
                base = min(first_due, place.last + 1)
            else:
                # In doubt, all is due to a subscription that resumes: only version 0.1.0 leaves it in doubt.
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
        """Release the held chains: the peers that were asked have answered, or take too long."""
        self.asked = {}
        return [(chain, chain.release()) for chain in self.chains.values() if chain.held]

    def find_greediest(self) -> Chain | None:
        """Return the chain that holds most units before their turn if all together hold too much."""
        key = self._early.find_greediest()
        return None if key is None else self.chains[key]

    def restore_own(self) -> None:
        """Continue our own chain from where the log ends."""
        context = self._context
        for head in known_heads(self._topic, context.store):
            if (head.author, head.device) == (context.author, context.device):
                self._begin(head.author, head.device, head.first).restore(head.first, head.last, head.head)

    def restore(self, resumed: bool = True) -> dict[ChainKey, int]:
        """Begin with the chains in the log; return, for chains seen further, the number behind that.

        Of chains that the log does not know, everything is due again, except what a resuming subscription had
        passed over.
        """
        before, self.chains = self.chains, {}
        self._early, self._hearsay = EarlyUnits(), {}
        for head in known_heads(self._topic, self._context.store, resumed):
            self._begin(head.author, head.device, head.first).restore(head.first, head.last, head.head)
        floors: dict[ChainKey, int] = {}
        for key, known in before.items():
            chain = self.chains.get(key) or self._begin(known.author, known.device, 0)
            chain.announced = max(known.announced, known.seen.last)
            if known.seen.last > chain.seen.last:
                floors[key] = known.seen.last + 1
        return floors

    def begin_again(self, keys: Iterable[ChainKey]) -> dict[ChainKey, int]:
        """Begin chains again where the log ends, to fetch what came behind; return how far they were seen."""
        before = {key: self.chains.pop(key) for key in keys if key in self.chains}
        if not before:
            return {}
        for head in known_heads(self._topic, self._context.store):
            if head.author + head.device in before:
                self._begin(head.author, head.device, head.first).restore(head.first, head.last, head.head)
        for key, known in before.items():
            self._early.forget(key)
            self._hearsay.pop(key, None)
            chain = self.chains.get(key) or self._begin(known.author, known.device, known.base)
            chain.announced = max(known.announced, known.seen.last)
            chain.news, chain.moments = known.news, known.moments
        return {key: known.seen.last + 1 for key, known in before.items()}

    def is_own(self, chain: Chain) -> bool:
        """Return whether this is our own chain."""
        return chain.key == self._context.author + self._context.device

    def _base(self, first: int, begins: bool) -> int:
        """Return the first number that is due to us of a chain that was unknown before."""
        return 0 if (self.anchored or self.wants_all) and not begins else first

    def _begin(self, author: AuthorId, device: DeviceId, base: int) -> Chain:
        config = self._context.config
        if len(self.chains) >= config.max_chains and self._hearsay:
            # Anyone can announce chains that do not exist; real chains must still find room.
            oldest = next(iter(self._hearsay))
            del self._hearsay[oldest], self.chains[oldest]
            self.forgotten(oldest)
        if len(self.chains) >= config.max_chains:
            raise InvalidEvent(Reason.TOO_MANY, f"{config.max_chains} chains are known already")
        chain = Chain(author, device, base, config.window_ranges, self._early)
        self.chains[chain.key] = chain
        return chain
