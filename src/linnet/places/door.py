"""The door of a place, from inside: who comes in, who waits, who is turned away or sent on to others.

Whoever is a guest already is let in by anyone who knows so. Others are let in by the voice alone: at once if
the policy admits all, otherwise when the application says so (Toth 2013, section 4.4). While the voice is not
within reach, whoever the deed lets speak takes its turn to decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from msgspec import Struct

from linnet.core.errors import Refused, RemoteError
from linnet.core.ids import AuthorId, Contact, PeerId
from linnet.core.reasons import Reason
from linnet.event.event import Unverified
from linnet.identity.cards import Card
from linnet.machine.outbox import Outbox
from linnet.places.channel.packet import Modifier, Packet, parse, render
from linnet.places.items import Knocked
from linnet.places.messages import Away, Decision, Enter
from linnet.places.place_setup import Parts
from linnet.trace.records import Kind, Record

VISITORS = 4096


class Waiting(Struct, frozen=True, gc=False):
    """Somebody at the door."""

    peer: PeerId
    enter: Enter
    packet: Packet


class ToAdmit(Struct, frozen=True, gc=False):
    """Somebody who comes in by the policy: the voice is to say so, then to call `Door.let_in`."""

    waiting: Waiting


class ToLetIn(Struct, frozen=True, gc=False):
    """A guest who comes back: it is to be connected by `Door.connect`, told keys, and answered."""

    waiting: Waiting


class Ahead(Struct, frozen=True, gc=False):
    """Somebody at the door knows later terms than we do: it is not let in below us, we have to go to it."""

    contact: Contact


class Undecided(Struct, frozen=True, gc=False):
    """Somebody at the door while the voice, which would decide, is away: we do when it is our turn."""


ToDo: TypeAlias = ToAdmit | ToLetIn | Knocked | Ahead | Undecided
"""What follows inside from who stands at the door."""


class Door:
    """The door of one place at one node."""

    def __init__(
        self,
        parts: Parts,
        contacts: dict[PeerId, Contact],
        known: Callable[[PeerId], Contact],
        out: Outbox,
    ) -> None:
        self._parts = parts
        self._out = out
        self._known = known
        """Where somebody could be dialled whom we know from elsewhere."""
        self._contacts = contacts
        """Where each peer says that it can be dialled."""
        self.waiting: dict[AuthorId, Waiting] = {}
        self.undecided: dict[AuthorId, Waiting] = {}
        """Strangers who knocked while the voice was away: to be decided about by `decide` in our turn."""
        self.visitors: dict[PeerId, AuthorId] = {}
        """Guests who were sent on to others, and may still ask for what those do not have."""

    def handle_enter(self, peer: PeerId, enter: Enter, now: float) -> ToDo | None:
        """Answer a peer that asks to come in, or to be connected again; or tell what follows inside."""
        parts = self._parts
        try:
            parts.entry_check.check(enter, peer, now)
            packet = parse(enter.text) if enter.text else Packet((), "_request_place_enter", b"", ())
            parts.context.cards.learn(enter.card)
        except RemoteError as error:
            self._record(Kind.REJECTED, peer, error.reason, f"at the door: {error.detail}"[:200])
            self._refuse(peer, error.reason)
            return None
        asking = Waiting(peer, enter, packet)
        if parts.is_out:
            self._refuse(peer, Reason.NOT_A_MEMBER)
            return None
        if parts.is_keeper(peer) and parts.deed.rank(enter.card.person) is None:
            note = "a keeper at the door: it is no guest, and is sent what is said without being one"
            self._record(Kind.REJECTED, peer, Reason.NOT_ALLOWED, note)
            self._refuse(peer, Reason.NOT_ALLOWED, known=enter.known)
            return None
        if self.is_guest(enter.card.person):
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
        self._record(Kind.CONTROL, peer, Reason.UNREACHABLE, note)
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
        """Whether whoever decides about strangers has a link to us. If that was us, and we handed over, it is
        somebody who has not spoken yet."""
        voice, context = self._parts.voice, self._parts.context
        return voice != context.peer and voice in context.links

    def refer(self, asking: Waiting, refused: Refused | None = None) -> None:
        """Send a stranger on to the voice; or turn it away for now, if it is not known where that is.

        With `refused` we wanted to decide about it ourselves, and could not.
        """
        if refused is not None:
            note = f"we cannot decide: {refused.detail}"[:200]
            self._record(Kind.REJECTED, asking.peer, refused.reason, note)
        self._refuse(asking.peer, Reason.NOT_A_MEMBER, known=asking.enter.known, relays=self._voice())

    def turn_away(self, asking: Waiting, refused: Refused) -> None:
        """Tell a stranger why nobody can decide about it now."""
        self._record(Kind.REJECTED, asking.peer, refused.reason, f"at the door: {refused.detail}"[:200])
        self._refuse(asking.peer, refused.reason, known=asking.enter.known)

    def take_undecided(self) -> list[Waiting]:
        """The strangers who are still to be decided about; none from now on."""
        undecided, self.undecided = self.undecided, {}
        return list(undecided.values())

    def _is_full(self, strangers: dict[AuthorId, Waiting], asking: Waiting) -> bool:
        """Whether there is no room for one more at the door; then it is told so."""
        if len(strangers) < self._parts.config.entries_waiting or asking.enter.card.person in strangers:
            return False
        self._record(Kind.REJECTED, asking.peer, Reason.TOO_MANY, f"{len(strangers)} wait at the door")
        self._refuse(asking.peer, Reason.TOO_MANY)
        return True

    def _let_in_or_follow(self, asking: Waiting) -> ToLetIn | Ahead:
        parts, enter = self._parts, asking.enter
        if enter.term <= parts.term or parts.keeps:
            return ToLetIn(asking)
        note = f"it knows term {enter.term}, and we {parts.term}"
        self._record(Kind.CONTROL, asking.peer, Reason.STALE, note)
        self._refuse(asking.peer, Reason.STALE)
        return Ahead(self._contacts.get(asking.peer, Contact(asking.peer)))

    def make_room(self, newcomer: PeerId, now: float) -> None:
        """Send somebody away who was taken in need, and has had its time, for the next one in need."""
        parts = self._parts
        gone = parts.tree.outstayed(newcomer, now)
        if gone is None:
            return
        parts.tree.disconnect(gone)
        parts.relay_filter.leave(gone)
        note = "its time in the reserve is over, and somebody else is in need"
        self._record(Kind.DROPPED, gone, Reason.NOT_NEEDED, note)
        self._out.send(gone, Away(parts.id, Reason.NOT_NEEDED))

    def is_guest(self, nym: AuthorId) -> bool:
        """Whether somebody may come in without being asked about."""
        return self._parts.is_guest(nym)

    def take_waiting(self, nym: AuthorId) -> Waiting:
        """Whoever waits under this name; `Refused` if nobody does."""
        waiting = self.waiting.pop(nym, None)
        if waiting is None:
            raise Refused(Reason.UNKNOWN, "nobody of this name waits at the door")
        return waiting

    def let_in(self, asking: Waiting, now: float) -> None:
        """Connect a guest below us, or send it on to those below, and tell it so."""
        self.answer_guest(asking.peer, self.connect(asking, now))

    def answer_guest(self, peer: PeerId, answer: Decision) -> None:
        """Tell a guest what `connect` made of it."""
        if answer.admitted:
            self._out.committed.send(peer, answer)
            return
        if answer.reason is Reason.TOO_MANY:
            note = "no room below us, and nobody below us can be dialled"
            self._record(Kind.REJECTED, peer, Reason.TOO_MANY, note)
        self._out.send(peer, answer)

    def connect(self, asking: Waiting, now: float) -> Decision:
        """Connect a guest below us, or send it on to those below; what it is to be answered.

        From now on it is sent what is said. What is said before the answer goes out comes to it first.
        """
        parts, enter = self._parts, asking.enter
        if not self._can_tell(enter):
            return self._refusal(Reason.MISSING_DEPENDENCY)
        contact = self._contacts.get(asking.peer, Contact(asking.peer))
        own = Contact(parts.context.peer)
        if asking.peer in parts.tree.upstreams and enter.opening != parts.opened_by:
            # What it would bring us is not the line that counts: it is to be below us instead.
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
        """Turn somebody away, with a word."""
        self._refuse(asking.peer, Reason.NOT_ALLOWED, render(modifiers, method) + text)

    def handle_link_down(self, peer: PeerId) -> None:
        """Forget who waited at the other end of a link that is down."""
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
        self._out.send(peer, self._refusal(reason, text, known, relays))

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

    def _record(self, kind: Kind, peer: PeerId, reason: Reason, note: str) -> None:
        self._out.record(Record(kind, self._parts.id, peer=peer, reason=reason, note=note))

    def _voice(self) -> tuple[Contact, ...]:
        """Who decides about strangers, if we know where to dial it: for those who knock at the wrong door."""
        voice = self._parts.voice
        if voice is None or voice == self._parts.context.peer:
            return ()
        found = self._contacts.get(voice) or self._known(voice)
        return (found,) if found.hints else ()

    def _can_tell(self, enter: Enter) -> bool:
        """Whether we have what somebody must know who has nothing yet: the notice that it came in."""
        parts, nym = self._parts, enter.card.person
        if enter.upto or not parts.deed.policy.announces or parts.deed.rank(nym) is not None:
            return True
        notice = self._notice_of(nym)
        return notice is not None and parts.first_of(notice) is not None

    def _notice_of(self, nym: AuthorId) -> int | None:
        changes = self._parts.membership.changes(nym)
        return changes[-1].announced_at if changes and changes[-1].joins else None

    def _notices(self, nym: AuthorId) -> tuple[Unverified, ...]:
        """The opening of the present term, and the notice that this one came in."""
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
