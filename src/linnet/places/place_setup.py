"""The parts of one place at one node, made from its store and given to each other."""

from __future__ import annotations

import msgspec

from linnet.core.errors import RemoteError
from linnet.core.ids import AuthorId, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Entry
from linnet.delivery.context import Context
from linnet.event.event import Unverified, Verified
from linnet.event.signing import decode_unit, encode_unit, recall_unit
from linnet.machine.outbox import Outbox
from linnet.places.channel.fragment_store import Fragments, Row
from linnet.places.channel.membership import Membership, Verdict
from linnet.places.channel.reassembly import Began, Reassembly
from linnet.places.channel.state_order import Outcome, StateOrder
from linnet.places.config import PlacesConfig
from linnet.places.deed import Deed, PastTerm, Policy, check_deed
from linnet.places.multicast.entry_check import EntryCheck
from linnet.places.multicast.fragment_repair import RANGES, Found, FragmentRepair, ReplayServer
from linnet.places.multicast.fragmentation import KEYS, Head, head_of
from linnet.places.multicast.relay_filter import RelayFilter
from linnet.places.multicast.sealed_requests import RequestReceiver
from linnet.places.multicast.terms import Base, Opening, Shift, Spoken, Terms
from linnet.places.multicast.tree import Tree
from linnet.places.sealed.epoch_keys import Ring
from linnet.places.sealed.guest_keys import GuestKeys
from linnet.places.sealed.host_keys import HostKeys

DEEDS = "place deed"
_OPENINGS = "place opening"
_BASES = "place base"
_TOLD = "place told"
_YIELDED = "place yielded"
_encode = msgspec.msgpack.Encoder().encode
_decode_deed = msgspec.msgpack.Decoder(Deed).decode
_decode_opening = msgspec.msgpack.Decoder(Opening).decode


def kept_deed(raw: bytes) -> Deed:
    """A deed of our own store."""
    return _decode_deed(raw)


class Parts:
    """What one node keeps and knows of one place. Nothing here acts by itself."""

    def __init__(
        self, deed: Deed, context: Context, config: PlacesConfig, out: Outbox, keeps: bool = False
    ) -> None:
        self.id: TopicId = deed.place
        self.deed = deed
        self.keeps = keeps
        """Whether we only keep it for others: then nothing of it is read here."""
        self.context = context
        self.config = config
        store = context.store
        self.fragments = Fragments(self.id, store.log, store.cells)
        self.membership = Membership(self.id, store.cells, deed.policy)
        self.membership.hosts = deed.voices
        self.order = StateOrder(self.id, store.cells, config)
        self.ring = Ring(self.id, store.cells)
        self.host_keys = HostKeys(self.id, context, self.fragments, self.ring)
        self.guest_keys = GuestKeys(self.id, context, self.fragments, self.ring, self.host_keys.readers)
        self.reassembly = Reassembly(self.fragments, config, self.guest_keys.opened)
        self.tree = Tree(self.id, context.peer, config, out)
        self.relay_filter = RelayFilter(self.id, self.membership, out)
        self.relay_filter_up = RelayFilter(self.id, self.membership, out)
        """Upstreams, as far as we know who they are: they get what comes from below."""
        self.toward: PeerId | None = None
        """Who brought the last fragment of the present term: the way to the voice."""
        gaps = self.fragments.missing(RANGES)
        self.fragment_repair = FragmentRepair(self.id, config, out, self.fragments.next, gaps)
        self.replay_server = ReplayServer(self.id, _Shelf(self), self.membership, out, config.replay_rate)
        self.entry_check = EntryCheck(self.id, context.card_check)
        self.request_receiver = RequestReceiver(self.id, context.key, store.cells, config, context.card_check)
        self.terms = self._recall_terms()
        self.yielded = store.cells.get(_YIELDED, self.id)
        """The opening of the last term of ours that we handed over: nothing more is said in it."""
        self.told: tuple[int, int] = (0, -1)
        """The highest term, and its last fragment, that somebody told at a door."""
        self.entry: Head | None = None
        """The notice of our entry that was told at a door last, in a place that opens nothing before it."""
        self.shift: Shift | None = None
        """A newer deed, or what was told at a door, made the line another: what is behind this point is to
        be undone yet."""

    @property
    def term(self) -> int:
        """The last term that is known; 0: none."""
        return 0 if self.terms.voice is None else self.terms.voice.term

    @property
    def opened_by(self) -> EventId | None:
        """The fragment that opened it."""
        return None if self.terms.voice is None else self.terms.voice.event

    @property
    def is_whole(self) -> bool:
        """Whether nothing is known to be missing here: neither fragments nor changes of state."""
        standing = self.fragments.standing
        return (
            self.knows_state
            and not self.order.missing
            and self.fragments.upto > standing.fragment
            and not self.terms.awaited
        )

    @property
    def knows_state(self) -> bool:
        """Whether the state is that behind the last change of it that is held, so that it may be built on."""
        return self.order.applied >= self.fragments.standing.state and not self.order.is_lost

    @property
    def voice(self) -> PeerId | None:
        """The device that speaks now, as far as its card is known."""
        opening = self.terms.voice
        if opening is None:
            return None
        card = self.context.cards.find(opening.person, opening.device)
        return None if card is None else card.device_key

    @property
    def is_voice(self) -> bool:
        """Whether this device speaks."""
        opening = self.terms.voice
        if opening is None or self.yielded == opening.event:
            return False
        return opening.device == self.context.device and self.may_speak

    @property
    def since(self) -> int:
        """The first message that is open to us as a guest."""
        return self.since_of(self.context.author)

    def since_of(self, nym: AuthorId) -> int:
        """The first message that is open to a guest."""
        changes = self.membership.changes(nym)
        return max((each.effective_since for each in changes if each.joins), default=0)

    def is_guest(self, nym: AuthorId) -> bool:
        """Whether somebody may come in without being asked about, and is told keys."""
        if self.deed.policy is Policy.ANONYMOUS or self.deed.rank(nym) is not None:
            return True
        generation = self.membership.known_generation
        return self.membership.test(nym, self.fragments.standing.message, generation) is Verdict.YES

    @property
    def is_in(self) -> bool:
        """Whether we are a guest by the last word on us, which may be of a message that is on its way."""
        changes = self.membership.changes(self.context.author)
        return changes[-1].joins if changes else self.is_guest(self.context.author)

    @property
    def is_out(self) -> bool:
        """Whether we were a guest, and are none any more: nobody lets us in unasked, nor do we others."""
        changes = self.membership.changes(self.context.author)
        out = bool(changes) and not changes[-1].joins and self.deed.policy.announces
        return out and not self.keeps

    def is_keeper(self, peer: PeerId) -> bool:
        """Whether the deed names this device as a keeper: it may have all that is said, and is no guest."""
        return any(each.peer == peer for each in self.deed.keepers)

    @property
    def may_speak(self) -> bool:
        """Whether the deed lets our person speak."""
        return self.deed.rank(self.context.author) is not None

    def past_terms(self, voices: tuple[AuthorId, ...]) -> tuple[PastTerm, ...]:
        """The terms of the line that others opened than these: what a deed that leaves them out must name."""
        last = self.fragments.standing.fragment
        return tuple(
            PastTerm(
                each.opening.term,
                each.opening.person,
                each.opening.event,
                last if each.end is None else each.end,
            )
            for each in self.terms.line
            if each.opening.person not in voices
        )

    def renew(self, deed: Deed) -> None:
        """A newer deed; `RemoteError` if it is forged, or another one of the version that we have."""
        if deed.place != self.id or deed.version < self.deed.version or deed == self.deed:
            return
        check_deed(deed)
        if deed.version == self.deed.version:
            raise RemoteError(Reason.EQUIVOCATION, f"two deeds of version {deed.version}")
        self.keep_deed(deed)
        self._note(self.terms.renew(deed))

    def keep_deed(self, deed: Deed) -> None:
        """A newer deed that was checked."""
        self.deed = deed
        self.membership.policy = deed.policy
        self.membership.hosts = deed.voices
        self.context.store.cells.put(DEEDS, deed.place, _encode(deed))

    def told_opening(self, opening: Opening) -> None:
        """An opening that was told at a door: the line may be another now, see `shift`."""
        self._note(self.terms.offer(opening))
        self.keep_opening(opening)

    def _note(self, shift: Shift | None) -> None:
        is_lower = shift is not None and (self.shift is None or shift.fragment < self.shift.fragment)
        if is_lower and self.fragments.standing.fragment >= 0:
            self.shift = shift

    def keep_opening(self, opening: Opening) -> None:
        """An opening that counts after a restart too."""
        key = self.id + opening.term.to_bytes(8, "big") + opening.event
        self.context.store.cells.put(_OPENINGS, key, _encode(opening))

    def keep_yielded(self, opening: EventId) -> None:
        """Nothing more will be said in the term of ours that begins so."""
        self.yielded = opening
        self.context.store.cells.put(_YIELDED, self.id, opening)

    def keep_base(self, base: Base) -> None:
        """Where the line begins for us, as told at the admission."""
        self.context.store.cells.put(_BASES, self.id, _encode(base))
        self.terms = self._recall_terms()

    def begin_at(self, notice: Head) -> None:
        """The notice that we came in: what was said before is closed to us, and so are the terms of it."""
        self.close_before(notice)
        self.keep_base(Base(notice.term, notice.fragment))

    def close_before(self, notice: Head) -> None:
        """What was said before this notice and is not here is not for us: nobody is asked for it any more."""
        self.fragments.pass_over(self.fragments.upto, notice.fragment - 1)
        self.fragment_repair.start(notice.fragment)

    def start_over(self) -> None:
        """Nobody let us in as it seems now: know nothing of the line and of who is in."""
        cells = self.context.store.cells
        cells.delete(_BASES, self.id)
        for key in [key for key, _ in cells.scan(_OPENINGS) if key.startswith(self.id)]:
            cells.delete(_OPENINGS, key)
        self.terms = self._recall_terms()
        self.told, self.entry = (0, -1), None
        self.membership.undo(0)
        self.fragment_repair.rewind(0, 0)

    def keep_beside(self, verified: Verified, now: float) -> None:
        """A fragment that is not in the line, and that an opening names: it stands where that one says."""
        unit = verified.unit
        entry = Entry(self.id, unit.author, unit.device, unit.seq, 1, verified.head, now, encode_unit(unit))
        self.context.store.log.append(entry)

    def keep_told(self, verified: Verified, head: Head, now: float) -> None:
        """A fragment that was told with our admission: beside the line, for whom we let in in turn."""
        self.keep_beside(verified, now)
        self.context.cards.keep(verified.unit.author, verified.unit.device)
        self.context.store.cells.put(_TOLD, self.id + head.message.to_bytes(8, "big"), verified.head)

    def first_of(self, message: int) -> Unverified | None:
        """The first fragment of a message, be it in the line or told with our admission."""
        row = self.fragments.get_at(message, 0)
        if row is not None:
            return self.fragments.unit(row)
        event = self.context.store.cells.get(_TOLD, self.id + message.to_bytes(8, "big"))
        return None if event is None else self.unit_of(EventId(event))

    def recall_state(self, message: int) -> list[Outcome]:
        """Offer a change of state that is held to the order once more: the state before it is known now."""
        began = next(self.reassembly.historic(message), None)
        if not isinstance(began, Began) or began.header.delta is None:
            return []
        return self.order.offered(message, began.header.delta, began.modifiers, began.header.hash)

    def recall_states(self) -> list[Outcome]:
        """The state from what is held alone, if that goes back to where it began; else nothing."""
        messages: list[int] = []
        at = self.fragments.standing.state
        while at:
            began = next(self.reassembly.historic(at), None)
            if not isinstance(began, Began) or began.header.delta is None:
                return []  # it is not held, or its key is not
            messages.append(at)
            at = at - began.header.delta if began.header.delta else 0
        return [outcome for each in reversed(messages) for outcome in self.recall_state(each)]

    def learn_readers(self, now: float) -> None:
        """We may speak from now on: learn to whom keys can be sealed, from the keys that were told before."""
        for message in range(1, self.fragments.standing.message + 1):
            row = self.fragments.get_at(message, 0)
            if row is not None and row.flags & KEYS:
                self.guest_keys.stored(row, True, now)

    def unit_of(self, event: EventId) -> Unverified | None:
        """A fragment that is held, in the line or beside it."""
        entry = self.context.store.log.get(event)
        return None if entry is None else decode_unit(entry.raw)

    def _recall_terms(self) -> Terms:
        cells = self.context.store.cells
        raw = cells.get(_BASES, self.id)
        base = None if raw is None else msgspec.msgpack.decode(raw, type=Base)
        kept = [_decode_opening(raw) for key, raw in cells.scan(_OPENINGS) if key.startswith(self.id)]
        former = [each.person for each in kept if self.deed.rank(each.person) is None]
        terms = Terms(self.deed, self.spoken, base, former)
        for opening in kept:
            if base is None or opening.term >= base.term:
                terms.offer(opening)
        return terms

    def is_in_line(self, event: EventId) -> bool:
        """Whether this fragment is in the line here: one that was told beside it is not."""
        spoken = self.spoken(event)
        row = None if spoken is None else self.fragments.get(spoken.fragment)
        return row is not None and row.event == event

    def spoken(self, event: EventId) -> Spoken | None:
        """Where a fragment that is held stands."""
        entry = self.context.store.log.get(event)
        if entry is None or entry.topic != self.id:
            return None
        verified = recall_unit(decode_unit(entry.raw))
        head = head_of(verified.events[0])
        return Spoken(head.term, head.fragment, head.message, entry.device, entry.first)


class _Shelf:
    """Fragments as those see them who answer replays."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def get(self, fragment: int) -> Found | None:
        """By its number."""
        return self._found(self._parts.fragments.get(fragment))

    def get_at(self, message: int, offset: int) -> Found | None:
        """By its message, and the bytes of it that come before."""
        return self._found(self._parts.fragments.get_at(message, offset))

    def _found(self, row: Row | None) -> Found | None:
        verified = None if row is None else self._parts.fragments.verified(row)
        if verified is None:
            return None
        unit = verified.unit
        card = self._parts.context.cards.find(unit.author, unit.device)
        return Found(unit, head_of(verified.events[0]), card)
