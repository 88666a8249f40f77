"""The parts of one place at one node, made from its store and connected to each other."""

from __future__ import annotations

import msgspec

from linnet.core.errors import RemoteError
from linnet.core.ids import AuthorId, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Entry
from linnet.core.timers import Timer
from linnet.delivery.context import Context
from linnet.event.event import Unverified, Verified
from linnet.event.signing import decode_unit, encode_unit, recall_unit
from linnet.machine.outbox import Outbox
from linnet.places.channel.fragment_store import Fragments
from linnet.places.channel.membership import Membership, Verdict
from linnet.places.channel.reassembly import Began, Reassembly
from linnet.places.channel.state_order import Outcome, StateOrder
from linnet.places.config import PlacesConfig
from linnet.places.deed import Deed, PastTerm, Policy, check_deed
from linnet.places.messages import Replay
from linnet.places.multicast.fragment_repair import RANGES, Found, FragmentRepair, ReplayServer
from linnet.places.multicast.fragmentation import KEYS, Head, head_of
from linnet.places.multicast.sealed_requests import RequestReceiver
from linnet.places.multicast.terms import Base, Opening, Shift, Spoken, Terms
from linnet.places.multicast.tree import RelayFilter, Tree
from linnet.places.sealed.epoch_keys import Ring
from linnet.places.sealed.guest_keys import GuestKeys
from linnet.places.sealed.host_keys import HostKeys
from linnet.trace.records import Kind, Record

DEEDS = "place deed"
_OPENINGS = "place opening"
_BASES = "place base"
_TOLD = "place told"
_YIELDED = "place yielded"
_encode = msgspec.msgpack.Encoder().encode
decode_deed = msgspec.msgpack.Decoder(Deed).decode
_decode_opening = msgspec.msgpack.Decoder(Opening).decode


class PlaceTimer(Timer, frozen=True, gc=False):
    """Base of the timers that a place handles itself."""

    place: TopicId


class Parts:
    """What one node stores and knows of one place. Nothing here acts by itself."""

    def __init__(
        self, deed: Deed, context: Context, config: PlacesConfig, out: Outbox, keeps: bool = False
    ) -> None:
        self.id: TopicId = deed.place
        self.deed = deed
        self.keeps = keeps
        """Whether we only keep the place for others: then nothing of it is read here."""
        self.context = context
        self.config = config
        self.out = out
        store = context.store
        self.fragments = Fragments(self.id, store.log, store.cells)
        self.membership = Membership(self.id, store.cells, deed.policy)
        self.membership.hosts = deed.voices
        self.order = StateOrder(self.id, store.cells, config)
        self.ring = Ring(self.id, store.cells)
        self.host_keys = HostKeys(context, self.fragments, self.ring)
        self.guest_keys = GuestKeys(context, self.fragments, self.ring, self.host_keys.readers)
        self.reassembly = Reassembly(self.fragments, config, self.guest_keys.opened)
        self.tree = Tree(self.id, context.peer, config, out)
        self.relay_filter = RelayFilter(self.id, self.membership, out)
        self.relay_filter_up = RelayFilter(self.id, self.membership, out)
        """Upstreams whose person is known: they get fragments from below."""
        self.toward: PeerId | None = None
        """The peer that brought the last fragment of the present term: the way to the voice."""
        gaps = self.fragments.missing(RANGES)
        self.fragment_repair = FragmentRepair(self.id, config, out, self.fragments.next, gaps)
        self.replay_server = ReplayServer(self.id, self._find, self.membership, out, config.replay_rate)
        self.request_receiver = RequestReceiver(self.id, context.key, store.cells, config, context.card_check)
        self.terms = self._recall_terms()
        self.yielded = store.cells.get(_YIELDED, self.id)
        """The opening of the last term of ours that we handed over: nothing more is said in it."""
        self.told: tuple[int, int] = (0, -1)
        """The highest term heard of at a door, and its last fragment."""
        self.entry: Head | None = None
        """The latest notice of our entry from a door, in a place that opens nothing before it."""
        self.shift: Shift | None = None
        """A pending change of the line, by a newer deed or by openings heard at a door: everything after this
        point is still to be undone."""

    def record(
        self, kind: Kind, peer: PeerId | None, reason: Reason | None, note: str, event: EventId | None = None
    ) -> None:
        """Record the outcome of something that a peer sent here, or that is ours."""
        self.out.record(Record(kind, self.id, event, peer=peer, reason=reason, note=note[:200]))

    @property
    def term(self) -> int:
        """The last term that is known; 0: none."""
        return 0 if self.terms.voice is None else self.terms.voice.term

    @property
    def opened_by(self) -> EventId | None:
        """The fragment that opened the last known term."""
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
    def holds_line(self) -> bool:
        """Whether the line is known as far as fragments are held. If one between terms was lost, what is held
        behind it stands in no line here, and nothing can be said behind that."""
        return self.fragments.standing.term == self.term

    @property
    def knows_state(self) -> bool:
        """Whether our state includes the last change of state that is held, so that it may be built on."""
        return self.order.applied >= self.fragments.standing.state and not self.order.is_lost

    @property
    def voice(self) -> PeerId | None:
        """The device that speaks now; None if its card is not known or nobody has spoken."""
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
        """Return the first message that is open to a guest."""
        changes = self.membership.changes(nym)
        return max((each.effective_since for each in changes if each.joins), default=0)

    def is_guest(self, nym: AuthorId) -> bool:
        """Return whether a person may come in without a decision, and get keys."""
        if self.deed.policy is Policy.ANONYMOUS or self.deed.rank(nym) is not None:
            return True
        generation = self.membership.known_generation
        return self.membership.test(nym, self.fragments.standing.message, generation) is Verdict.YES

    @property
    def is_in(self) -> bool:
        """Whether we are a guest by the last known change, even if its message is still on its way."""
        changes = self.membership.changes(self.context.author)
        return changes[-1].joins if changes else self.is_guest(self.context.author)

    @property
    def is_out(self) -> bool:
        """Whether we were a guest and no longer are: nobody lets us in unasked, nor do we let others in."""
        changes = self.membership.changes(self.context.author)
        out = bool(changes) and not changes[-1].joins and self.deed.policy.announces
        return out and not self.keeps

    def is_keeper(self, peer: PeerId) -> bool:
        """Return whether the deed names this device as a keeper: it may have everything, and is no guest."""
        return any(each.peer == peer for each in self.deed.keepers)

    @property
    def may_speak(self) -> bool:
        """Whether the deed lets our person speak."""
        return self.deed.rank(self.context.author) is not None

    def past_terms(self, voices: tuple[AuthorId, ...]) -> tuple[PastTerm, ...]:
        """Return the terms of the line by other people: a deed that leaves those out must name the terms."""
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
        """Take a newer deed; `RemoteError` if it is forged, or differs from ours with the same version."""
        if deed.place != self.id or deed.version < self.deed.version or deed == self.deed:
            return
        check_deed(deed)
        if deed.version == self.deed.version:
            raise RemoteError(Reason.EQUIVOCATION, f"two deeds of version {deed.version}")
        self.keep_deed(deed)
        self._note(self.terms.renew(deed))

    def keep_deed(self, deed: Deed) -> None:
        """Use and store a newer deed that was checked."""
        self.deed = deed
        self.membership.policy = deed.policy
        self.membership.hosts = deed.voices
        self.context.store.cells.put(DEEDS, deed.place, _encode(deed))

    def told_opening(self, opening: Opening) -> None:
        """Take an opening heard at a door, which may change the line: see `shift`."""
        self._note(self.terms.offer(opening))
        self.keep_opening(opening)

    def _note(self, shift: Shift | None) -> None:
        is_lower = shift is not None and (self.shift is None or shift.fragment < self.shift.fragment)
        if is_lower and self.fragments.standing.fragment >= 0:
            self.shift = shift

    def keep_opening(self, opening: Opening) -> None:
        """Store an opening, so that it counts after a restart too."""
        key = self.id + opening.term.to_bytes(8, "big") + opening.event
        self.context.store.cells.put(_OPENINGS, key, _encode(opening))

    def keep_yielded(self, opening: EventId) -> None:
        """Store that nothing more will be said in our term with this opening."""
        self.yielded = opening
        self.context.store.cells.put(_YIELDED, self.id, opening)

    def keep_base(self, base: Base) -> None:
        """Store where the line begins for us, as given at the admission."""
        self.context.store.cells.put(_BASES, self.id, _encode(base))
        self.terms = self._recall_terms()

    def begin_at(self, notice: Head) -> None:
        """Begin the line at the notice that we came in: messages and terms before it are closed to us."""
        self.close_before(notice)
        self.keep_base(Base(notice.term, notice.fragment))

    def close_before(self, notice: Head) -> None:
        """Stop asking for fragments from before this notice: those not here are not for us."""
        self.fragments.pass_over(self.fragments.upto, notice.fragment - 1)
        self.fragment_repair.start(notice.fragment)

    def start_over(self) -> None:
        """Forget the line and the membership: as it seems now, nobody let us in."""
        cells = self.context.store.cells
        cells.delete(_BASES, self.id)
        for key in [key for key, _ in cells.scan(_OPENINGS) if key.startswith(self.id)]:
            cells.delete(_OPENINGS, key)
        self.terms = self._recall_terms()
        self.told, self.entry = (0, -1), None
        self.membership.undo(0)
        self.fragment_repair.rewind(0, 0)

    def keep_beside(self, verified: Verified, now: float) -> None:
        """Store a fragment outside of the line that an opening names, for that opening to refer to."""
        unit = verified.unit
        entry = Entry(self.id, unit.author, unit.device, unit.seq, 1, verified.head, now, encode_unit(unit))
        self.context.store.log.append(entry)

    def keep_told(self, verified: Verified, head: Head, now: float) -> None:
        """Store a fragment from our admission beside the line, for those whom we let in in turn."""
        self.keep_beside(verified, now)
        self.context.cards.keep(verified.unit.author, verified.unit.device)
        self.context.store.cells.put(_TOLD, self.id + head.message.to_bytes(8, "big"), verified.head)

    def first_of(self, message: int) -> Unverified | None:
        """Return the first fragment of a message, from the line or from our admission; None if not held."""
        row = self.fragments.get_at(message, 0)
        if row is not None:
            return self.fragments.unit(row)
        event = self.context.store.cells.get(_TOLD, self.id + message.to_bytes(8, "big"))
        return None if event is None else self.unit_of(EventId(event))

    def recall_state(self, message: int) -> list[Outcome]:
        """Offer a held change of state to the order once more, now that the state before it is known."""
        began = next(self.reassembly.historic(message), None)
        if not isinstance(began, Began) or began.header.delta is None:
            return []
        return self.order.offered(message, began.header.delta, began.modifiers, began.header.hash)

    def recall_states(self) -> list[Outcome]:
        """Rebuild the state from held messages alone, if they go back to where it began; else do nothing."""
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
        """Learn from earlier messages of keys to which devices we can seal keys, now that we may speak."""
        for message in range(1, self.fragments.standing.message + 1):
            row = self.fragments.get_at(message, 0)
            if row is not None and row.flags & KEYS:
                self.guest_keys.stored(row, True, now)

    def unit_of(self, event: EventId) -> Unverified | None:
        """Return a fragment that is held, in the line or beside it; None if it is not."""
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

    def _find(self, asked: Replay) -> Found | None:
        """Return the fragment that a peer asks for again; None if it is not held."""
        if asked.fragment is not None:
            row = self.fragments.get(asked.fragment)
        else:
            row = self.fragments.get_at(asked.message, asked.offset)
        verified = None if row is None else self.fragments.verified(row)
        if verified is None:
            return None
        unit = verified.unit
        return Found(unit, head_of(verified.events[0]), self.context.cards.find(unit.author, unit.device))

    def is_in_line(self, event: EventId) -> bool:
        """Return whether this fragment is in the line here; one stored beside the line is not."""
        spoken = self.spoken(event)
        row = None if spoken is None else self.fragments.get(spoken.fragment)
        return row is not None and row.event == event

    def spoken(self, event: EventId) -> Spoken | None:
        """Return where a held fragment stands; None if it is not held."""
        entry = self.context.store.log.get(event)
        if entry is None or entry.topic != self.id:
            return None
        verified = recall_unit(decode_unit(entry.raw))
        head = head_of(verified.events[0])
        return Spoken(head.term, head.fragment, head.message, entry.device, entry.first)
