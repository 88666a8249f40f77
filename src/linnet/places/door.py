"""The door of a place, from inside: peers are let in, kept waiting, turned away, or sent on to other peers.

A peer that is already a guest is let in by any node that knows so. Others are let in by the voice alone: at
once if the policy admits all, otherwise when the application says so (Toth 2013, section 4.4). While the
voice is unreachable, a node that may speak by the deed takes its turn to decide.

The first message at the door is signed, for this place, by the device at the other end of the link. Toth
2013, section 3.5, has a join request that names the peer it comes from, so that nobody can replay it from
elsewhere. Here the card's device is that peer, and the message must be fresh and not older than the device's
last one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from msgspec import Struct, msgpack

from linnet.core.errors import Refused, RemoteError
from linnet.core.ids import AuthorId, Contact, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.event.event import Unverified
from linnet.identity.cards import Card, CardCheck, check_card, check_dates
from linnet.identity.keys import SigningKey, verify
from linnet.places.channel.packet import Modifier, Packet, parse, render
from linnet.places.items import Knocked
from linnet.places.messages import Away, Decision, Enter
from linnet.places.place_setup import Parts
from linnet.trace.records import Kind

FRESH_MS = 120_000
"""The most milliseconds between the two clocks, the message's time on the way included."""
DEVICES = 65_536
"""The devices whose last request is remembered; each needs to be only while that request is fresh."""

_TAG = b"linnet/place/enter/1"
_encode = msgpack.Encoder().encode


def make_enter(
    key: SigningKey,
    card: Card,
    place: TopicId,
    at_ms: int,
    *,
    known: int = 0,
    upto: int = 0,
    state: int = 0,
    text: bytes = b"",
    prekeys: bytes | None = None,
    term: int = 0,
    opening: EventId | None = None,
    stranded: bool = False,
) -> Enter:
    """Return a request to be let in, signed by the device of this card."""
    fields = (place, card, at_ms, known, upto, state, text, prekeys)
    more = (term, opening, stranded)
    return Enter(*fields, key.sign(_TAG + _encode((*fields, *more))), *more, patient=True)


class EntryCheck:
    """Checks the requests of peers at the door of one place."""

    def __init__(self, place: TopicId, check: CardCheck = check_card) -> None:
        self._place = place
        self._check = check
        self._last: dict[PeerId, int] = {}
        """When each device last asked, by its own clock; the latest to ask are at the end."""

    def __len__(self) -> int:
        return len(self._last)

    def check(self, enter: Enter, link: PeerId, now: float) -> None:
        """Return if the request may be answered; raise `RemoteError` with the reason otherwise."""
        card = enter.card
        if enter.place != self._place:
            raise RemoteError(Reason.UNKNOWN, "another place")
        if card.device_key != link:
            raise RemoteError(Reason.REPLAYING, "the card is of another device than the one on this link")
        now_ms = int(now * 1000)
        if abs(enter.at_ms - now_ms) > FRESH_MS:
            reason = Reason.FUTURE_TIME if enter.at_ms > now_ms else Reason.STALE
            raise RemoteError(reason, f"said {abs(enter.at_ms - now_ms)} ms from now")
        if enter.at_ms < self._last.get(link, 0):
            raise RemoteError(Reason.STALE, "older than what this device said before")
        check_dates(card, now)
        self._check(card)
        fields = (
            enter.place,
            card,
            enter.at_ms,
            enter.known,
            enter.upto,
            enter.state,
            enter.text,
            enter.prekeys,
            enter.term,
            enter.opening,
            enter.stranded,
        )
        verify(card.device_key, _TAG + _encode(fields), enter.sig)
        self._remember(link, enter.at_ms, now_ms)

    def _remember(self, device: PeerId, at_ms: int, now_ms: int) -> None:
        self._last.pop(device, None)
        while self._last and next(iter(self._last.values())) < now_ms - FRESH_MS:
            del self._last[next(iter(self._last))]  # nothing as old is taken any more
        if len(self._last) >= DEVICES:
            raise RemoteError(Reason.TOO_MANY, f"{DEVICES} devices at the door")
        self._last[device] = at_ms


VISITORS = 4096


class Waiting(Struct, frozen=True, gc=False):
    """A peer at the door."""

    peer: PeerId
    enter: Enter
    packet: Packet


class ToAdmit(Struct, frozen=True, gc=False):
    """A peer that the policy admits: the voice has to announce it, then call `Door.let_in`."""

    waiting: Waiting


class ToLetIn(Struct, frozen=True, gc=False):
    """A returning guest: it is to be connected by `Door.connect`, given keys, and answered."""

    waiting: Waiting


class Ahead(Struct, frozen=True, gc=False):
    """The peer at the door knows later terms than we do: it is not let in below us, we connect to it."""

    contact: Contact


class Undecided(Struct, frozen=True, gc=False):
    """A stranger at the door while the voice is away: we decide in our own turn."""


ToDo: TypeAlias = ToAdmit | ToLetIn | Knocked | Ahead | Undecided
"""What the rest of the place has to do about a peer at the door."""


class Door:
    """The door of one place at one node."""

    def __init__(
        self,
        parts: Parts,
        contacts: dict[PeerId, Contact],
        known: Callable[[PeerId], Contact],
    ) -> None:
        self._parts = parts
        self._known = known
        """Returns where a peer can be dialled that we know from elsewhere."""
        self._contacts = contacts
        """Where each peer says that it can be dialled."""
        self._entry_check = EntryCheck(parts.id, parts.context.card_check)
        self.waiting: dict[AuthorId, Waiting] = {}
        self.undecided: dict[AuthorId, Waiting] = {}
        """Strangers who knocked while the voice was away; `decide` handles them in our turn."""
        self.visitors: dict[PeerId, AuthorId] = {}
        """Guests who were sent on to other peers, and may still ask for what those do not have."""

    def handle_enter(self, peer: PeerId, enter: Enter, now: float) -> ToDo | None:
        """Answer a peer that asks to come in or to reconnect; return what is left to do inside."""
        parts = self._parts
        try:
            self._entry_check.check(enter, peer, now)
            packet = parse(enter.text) if enter.text else Packet((), "_request_place_enter", b"", ())
            parts.context.cards.learn(enter.card)
        except RemoteError as error:
            self._parts.record(Kind.REJECTED, peer, error.reason, f"at the door: {error.detail}")
            self._refuse(peer, error.reason)
            return None
        asking = Waiting(peer, enter, packet)
        if parts.is_out:
            self._refuse(peer, Reason.NOT_A_MEMBER)
            return None
        if parts.is_keeper(peer) and parts.deed.rank(enter.card.person) is None:
            note = "a keeper at the door: it is no guest, and is sent what is said without being one"
            self._parts.record(Kind.REJECTED, peer, Reason.NOT_ALLOWED, note)
            self._refuse(peer, Reason.NOT_ALLOWED, known=enter.known)
            return None
        if parts.is_guest(enter.card.person):
            self.waiting.pop(enter.card.person, None)
            return self._let_in_or_follow(asking)
        if parts.is_voice:
            return self.decide(asking)
        if not parts.may_speak or parts.terms.voice is None or self.is_voice_there:
            self.refer(asking)
            return None
        if self._is_full(self.undecided, asking):
            return None
        note = "the voice is not within reach: we decide when it is our turn"
        self._parts.record(Kind.CONTROL, peer, Reason.UNREACHABLE, note)
        self.undecided[enter.card.person] = asking
        return Undecided()

    def decide(self, asking: Waiting) -> ToAdmit | Knocked | None:
        """Decide about a stranger, as the voice."""
        parts, peer, enter = self._parts, asking.peer, asking.enter
        if not parts.deed.policy.admits:
            return ToAdmit(asking)
        if self._is_full(self.waiting, asking):
            return None
        is_new = enter.card.person not in self.waiting
        self.waiting[enter.card.person] = asking
        if enter.patient:
            self._refuse(peer, Reason.WAITING, known=enter.known)
        if not is_new:
            return None
        packet = asking.packet
        return Knocked(parts.id, enter.card.person, packet.method, packet.modifiers, packet.body)

    @property
    def is_voice_there(self) -> bool:
        """Whether the device that decides about strangers has a link to us. If that was us and we handed
        over, it is one that has not spoken yet."""
        voice, context = self._parts.voice, self._parts.context
        return voice != context.peer and voice in context.links

    def refer(self, asking: Waiting, refused: Refused | None = None) -> None:
        """Refer a stranger to the voice; or turn it away for now, if we do not know where to dial the voice.

        With `refused` we wanted to decide about it ourselves, and could not.
        """
        if refused is not None:
            note = f"we cannot decide: {refused.detail}"
            self._parts.record(Kind.REJECTED, asking.peer, refused.reason, note)
        self._refuse(asking.peer, Reason.NOT_A_MEMBER, known=asking.enter.known, relays=self._voice())

    def turn_away(self, asking: Waiting, refused: Refused) -> None:
        """Tell a stranger why nobody can decide about it now."""
        self._parts.record(Kind.REJECTED, asking.peer, refused.reason, f"at the door: {refused.detail}")
        self._refuse(asking.peer, refused.reason, known=asking.enter.known)

    def take_undecided(self) -> list[Waiting]:
        """Remove and return the strangers that still have to be decided about."""
        undecided, self.undecided = self.undecided, {}
        return list(undecided.values())

    def _is_full(self, strangers: dict[AuthorId, Waiting], asking: Waiting) -> bool:
        """Return whether the door is full, and tell the peer so if it is."""
        if len(strangers) < self._parts.config.entries_waiting or asking.enter.card.person in strangers:
            return False
        self._parts.record(Kind.REJECTED, asking.peer, Reason.TOO_MANY, f"{len(strangers)} wait at the door")
        self._refuse(asking.peer, Reason.TOO_MANY)
        return True

    def _let_in_or_follow(self, asking: Waiting) -> ToLetIn | Ahead:
        parts, enter = self._parts, asking.enter
        if enter.term <= parts.term or parts.keeps:
            return ToLetIn(asking)
        note = f"it knows term {enter.term}, and we {parts.term}"
        self._parts.record(Kind.CONTROL, asking.peer, Reason.STALE, note)
        self._refuse(asking.peer, Reason.STALE)
        return Ahead(self._contacts.get(asking.peer, Contact(asking.peer)))

    def make_room(self, newcomer: PeerId, now: float) -> None:
        """Disconnect a peer whose time in the reserve is over, to make room for another stranded one."""
        parts = self._parts
        gone = parts.tree.outstayed(newcomer, now)
        if gone is None:
            return
        parts.tree.disconnect(gone)
        parts.relay_filter.leave(gone)
        note = "its time in the reserve is over, and somebody else is in need"
        self._parts.record(Kind.DROPPED, gone, Reason.NOT_NEEDED, note)
        self._parts.out.send(gone, Away(parts.id, Reason.NOT_NEEDED))

    def take_waiting(self, nym: AuthorId) -> Waiting:
        """Remove and return the stranger who waits under this name; `Refused` if there is none."""
        waiting = self.waiting.pop(nym, None)
        if waiting is None:
            raise Refused(Reason.UNKNOWN, "nobody of this name waits at the door")
        return waiting

    def let_in(self, asking: Waiting, now: float) -> None:
        """Connect a guest below us, or redirect it to our downstreams, and tell it so."""
        self.answer_guest(asking.peer, self.connect(asking, now))

    def answer_guest(self, peer: PeerId, answer: Decision) -> None:
        """Send a guest the answer that `connect` returned."""
        if answer.admitted:
            self._parts.out.committed.send(peer, answer)
            return
        if answer.reason is Reason.TOO_MANY:
            note = "no room below us, and nobody below us can be dialled"
            self._parts.record(Kind.REJECTED, peer, Reason.TOO_MANY, note)
        self._parts.out.send(peer, answer)

    def connect(self, asking: Waiting, now: float) -> Decision:
        """Connect a guest below us, or redirect it to our downstreams; return the answer for it.

        From now on it is sent every new fragment. Fragments sent before the answer leaves reach it first.
        """
        parts, enter = self._parts, asking.enter
        if not self._can_tell(enter):
            return self._refusal(Reason.MISSING_DEPENDENCY)
        contact = self._contacts.get(asking.peer, Contact(asking.peer))
        own = Contact(parts.context.peer)
        if asking.peer in parts.tree.upstreams and enter.opening != parts.opened_by:
            # It would not bring us the line that counts: it is to be below us instead.
            parts.tree.disconnect(asking.peer)
            parts.fragment_repair.disconnect(asking.peer)
            parts.relay_filter_up.leave(asking.peer)
        if parts.tree.connect_down(contact, enter.card.person, now if enter.stranded else None):
            parts.relay_filter.join(asking.peer, enter.card.person)
            # Others, too: for a second upstream, and for when we are away.
            relays: tuple[Contact, ...] = (own, *parts.tree.redirect(asking.peer))
        else:
            self._visited(asking.peer, enter.card.person)
            relays = parts.tree.redirect(asking.peer)
            if not relays:
                return self._refusal(Reason.TOO_MANY)
        standing = parts.fragments.standing
        deed = parts.deed if enter.known < parts.deed.version else None
        units = self._notices(enter.card.person)
        cards = self._cards(units)
        number, term = standing.fragment + 1, standing.term
        told = (units, cards, parts.opened_by, parts.context.card)
        return Decision(parts.id, True, None, deed, relays, b"", number, term, *told)

    def reject(self, asking: Waiting, method: str, modifiers: Iterable[Modifier], text: bytes) -> None:
        """Turn a peer away, with a message."""
        self._refuse(asking.peer, Reason.NOT_ALLOWED, render(modifiers, method) + text)

    def handle_link_down(self, peer: PeerId) -> None:
        """Forget the strangers behind a link that is down."""
        self.visitors.pop(peer, None)
        for strangers in (self.waiting, self.undecided):
            for nym in [nym for nym, each in strangers.items() if each.peer == peer]:
                del strangers[nym]

    def _visited(self, peer: PeerId, nym: AuthorId) -> None:
        self.visitors.pop(peer, None)
        self.visitors[peer] = nym
        if len(self.visitors) > VISITORS:
            del self.visitors[next(iter(self.visitors))]

    def _refuse(
        self,
        peer: PeerId,
        reason: Reason,
        text: bytes = b"",
        known: int | None = None,
        relays: tuple[Contact, ...] = (),
    ) -> None:
        self._parts.out.send(peer, self._refusal(reason, text, known, relays))

    def _refusal(
        self,
        reason: Reason,
        text: bytes = b"",
        known: int | None = None,
        relays: tuple[Contact, ...] = (),
    ) -> Decision:
        deed = self._parts.deed
        told = deed if known is not None and known < deed.version else None
        return Decision(self._parts.id, False, reason, told, relays, text, 0, 0, (), ())

    def _voice(self) -> tuple[Contact, ...]:
        """The device that decides about strangers, if we know where to dial it: for those at our door."""
        voice = self._parts.voice
        if voice is None or voice == self._parts.context.peer:
            return ()
        found = self._contacts.get(voice) or self._known(voice)
        return (found,) if found.hints else ()

    def _can_tell(self, enter: Enter) -> bool:
        """Return whether we hold what a newcomer has to know first: the notice that it came in."""
        parts, nym = self._parts, enter.card.person
        if enter.upto or not parts.deed.policy.announces or parts.deed.rank(nym) is not None:
            return True
        notice = self._notice_of(nym)
        return notice is not None and parts.first_of(notice) is not None

    def _notice_of(self, nym: AuthorId) -> int | None:
        changes = self._parts.membership.changes(nym)
        return changes[-1].announced_at if changes and changes[-1].joins else None

    def _notices(self, nym: AuthorId) -> tuple[Unverified, ...]:
        """Return the opening of the present term, and the notice that this guest came in."""
        voice = self._parts.terms.voice
        messages = (None if voice is None else voice.message, self._notice_of(nym))
        found = (self._parts.first_of(each) for each in dict.fromkeys(messages) if each is not None)
        return tuple(unit for unit in found if unit is not None)

    def _cards(self, units: Iterable[Unverified]) -> tuple[Card, ...]:
        found: dict[bytes, Card] = {}
        for unit in units:
            card = self._parts.context.cards.find(unit.author, unit.device)
            if card is not None:
                found[unit.author + unit.device] = card
        return tuple(found.values())
