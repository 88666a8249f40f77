"""The door of a place, from inside: who comes in, who waits, who is turned away or sent on to others.

Whoever is a guest already is let in by anyone who knows so. Others are let in by the voice alone: at once if
the policy admits all, otherwise when the application says so (Toth 2013, section 4.4).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from msgspec import Struct

from linnet.core.effects import AfterCommit, Send
from linnet.core.errors import Refused, RemoteError
from linnet.core.ids import AuthorId, Contact, PeerId
from linnet.core.reasons import Reason
from linnet.event.event import Unverified
from linnet.identity.cards import Card
from linnet.places.channel.psyc import Modifier, Packet, parse, render
from linnet.places.effects import PlacePromise
from linnet.places.items import Knocked
from linnet.places.messages import Away, Decision, Enter
from linnet.places.parts import Parts
from linnet.trace.records import Kind, Record

VISITORS = 4096

DoorEffect: TypeAlias = Send[Decision | Away] | AfterCommit[PlacePromise] | Record


class Waiting(Struct, frozen=True, gc=False):
    """Somebody at the door."""

    peer: PeerId
    enter: Enter
    packet: Packet


class ToAdmit(Struct, frozen=True, gc=False):
    """Somebody who comes in by the policy: the voice is to say so, then to call `Door.let_in`."""

    waiting: Waiting


class ToKey(Struct, frozen=True, gc=False):
    """A guest's device that may lack the keys: the voice is to tell it, others who may speak to know how."""

    waiting: Waiting


class Ahead(Struct, frozen=True, gc=False):
    """Somebody at the door knows of terms that are not known here, so it has to be asked."""

    contact: Contact
    later: bool
    """Whether they are later than ours: then it is not let in below us, we have to go to it."""


ToDo: TypeAlias = ToAdmit | ToKey | Knocked | Ahead
"""What follows inside from who stands at the door."""


class Door:
    """The door of one place at one node."""

    def __init__(
        self, parts: Parts, contacts: dict[PeerId, Contact], known: Callable[[PeerId], Contact]
    ) -> None:
        self._parts = parts
        self._known = known
        """Where somebody could be dialled whom we know from elsewhere."""
        self._contacts = contacts
        """Where each peer says that it can be dialled."""
        self.waiting: dict[AuthorId, Waiting] = {}
        self.visitors: dict[PeerId, AuthorId] = {}
        """Guests who were sent on to others, and may still ask for what those do not have."""

    def knock(self, peer: PeerId, enter: Enter, now: float) -> list[DoorEffect | ToDo]:
        """Somebody asks to come in, or to be connected again."""
        parts = self._parts
        try:
            parts.entering.check(enter, peer, now)
            packet = parse(enter.text) if enter.text else Packet((), "_request_place_enter", b"", ())
            parts.context.cards.learn(enter.card)
        except RemoteError as error:
            note = f"at the door: {error.detail}"[:200]
            record = Record(Kind.REJECTED, parts.id, peer=peer, reason=error.reason, note=note)
            return [record, self._no(peer, error.reason)]
        asking = Waiting(peer, enter, packet)
        if parts.is_out:
            return [self._no(peer, Reason.NOT_A_MEMBER)]
        if parts.is_keeper(peer) and parts.deed.rank(enter.card.person) is None:
            note = "a keeper at the door: it is no guest, and is sent what is said without being one"
            record = Record(Kind.REJECTED, parts.id, peer=peer, reason=Reason.NOT_ALLOWED, note=note)
            return [record, self._no(peer, Reason.NOT_ALLOWED, known=enter.known)]
        if self.is_guest(enter.card.person):
            self.waiting.pop(enter.card.person, None)
            return self._let_in_or_follow(asking, now)
        if not parts.is_voice:
            return [self._no(peer, Reason.NOT_A_MEMBER, known=enter.known, relays=self._voice())]
        if not parts.deed.policy.admits:
            return [ToAdmit(asking)]
        if len(self.waiting) >= parts.config.entries_waiting and enter.card.person not in self.waiting:
            note = f"{len(self.waiting)} wait at the door"
            record = Record(Kind.REJECTED, parts.id, peer=peer, reason=Reason.TOO_MANY, note=note)
            return [record, self._no(peer, Reason.TOO_MANY)]
        is_new = enter.card.person not in self.waiting
        self.waiting[enter.card.person] = asking
        told = [self._no(peer, Reason.WAITING, known=enter.known)] if enter.patient else []
        if not is_new:
            return [*told]
        return [*told, Knocked(parts.id, enter.card.person, packet.method, packet.modifiers, packet.body)]

    def _let_in_or_follow(self, asking: Waiting, now: float) -> list[DoorEffect | ToDo]:
        parts, enter = self._parts, asking.enter
        keys = [ToKey(asking)] if parts.may_speak and parts.deed.policy.seals else []
        contact = self._contacts.get(asking.peer, Contact(asking.peer))
        if enter.term > parts.term and not parts.keeps:
            note = f"it knows term {enter.term}, and we {parts.term}"
            record = Record(Kind.CONTROL, parts.id, peer=asking.peer, reason=Reason.STALE, note=note)
            return [record, self._no(asking.peer, Reason.STALE), Ahead(contact, True)]
        parted = self._make_room(asking.peer, now) if enter.stranded else []
        let_in: list[DoorEffect | ToDo] = [*parted, *keys, *self.let_in(asking, now)]
        is_known = enter.opening is None or parts.terms.knows(enter.term, enter.opening)
        return let_in if is_known else [*let_in, Ahead(contact, False)]

    def _make_room(self, newcomer: PeerId, now: float) -> list[DoorEffect]:
        """Somebody who was taken in need, and has had its time, goes for the next one in need."""
        parts = self._parts
        gone = parts.tree.outstayed(newcomer, now)
        if gone is None:
            return []
        parts.tree.disconnect(gone)
        parts.relaying.leave(gone)
        note = "its time in the reserve is over, and somebody else is in need"
        record = Record(Kind.DROPPED, parts.id, peer=gone, reason=Reason.NOT_NEEDED, note=note)
        return [record, Send(gone, Away(parts.id, Reason.NOT_NEEDED))]

    def is_guest(self, nym: AuthorId) -> bool:
        """Whether somebody may come in without being asked about."""
        return self._parts.is_guest(nym)

    def take_waiting(self, nym: AuthorId) -> Waiting:
        """Whoever waits under this name; `Refused` if nobody does."""
        waiting = self.waiting.pop(nym, None)
        if waiting is None:
            raise Refused(Reason.UNKNOWN, "nobody of this name waits at the door")
        return waiting

    def let_in(self, asking: Waiting, now: float) -> list[DoorEffect]:
        """Connect a guest below us, or send it on to those below."""
        parts, enter = self._parts, asking.enter
        if not self._can_tell(enter):
            return [self._no(asking.peer, Reason.MISSING_DEPENDENCY)]
        contact = self._contacts.get(asking.peer, Contact(asking.peer))
        own = Contact(parts.context.peer)
        if asking.peer in parts.tree.upstreams and enter.opening != parts.opened_by:
            # What it would bring us is not the line that counts: it is to be below us instead.
            parts.tree.disconnect(asking.peer)
            parts.missing.disconnect(asking.peer)
            parts.relaying_up.leave(asking.peer)
        if parts.tree.connect_down(contact, enter.card.person, now if enter.stranded else None):
            parts.relaying.join(asking.peer, enter.card.person)
            # Others, too: for a second upstream, and for when we are away.
            relays: tuple[Contact, ...] = (own, *parts.tree.redirect(asking.peer))
        else:
            self._visited(asking.peer, enter.card.person)
            relays = parts.tree.redirect(asking.peer)
            if not relays:
                note = "no room below us, and nobody below us can be dialled"
                record = Record(Kind.REJECTED, parts.id, peer=asking.peer, reason=Reason.TOO_MANY, note=note)
                return [record, self._no(asking.peer, Reason.TOO_MANY)]
        standing = parts.fragments.standing
        deed = parts.deed if enter.known < parts.deed.version else None
        units = self._notices(enter.card.person)
        cards = self._cards(units)
        number, term = standing.fragment + 1, standing.term
        told = (units, cards, parts.opened_by, parts.context.card)
        answer = Decision(parts.id, True, None, deed, relays, b"", number, term, *told)
        return [AfterCommit((Send(asking.peer, answer),))]

    def reject(self, asking: Waiting, method: str, modifiers: Iterable[Modifier], text: bytes) -> DoorEffect:
        """Turn somebody away, with a word."""
        return self._no(asking.peer, Reason.NOT_ALLOWED, render(modifiers, method) + text)

    def gone(self, peer: PeerId) -> None:
        """Whoever waited there is gone."""
        self.visitors.pop(peer, None)
        for nym in [nym for nym, each in self.waiting.items() if each.peer == peer]:
            del self.waiting[nym]

    def _visited(self, peer: PeerId, nym: AuthorId) -> None:
        self.visitors.pop(peer, None)
        self.visitors[peer] = nym
        if len(self.visitors) > VISITORS:
            del self.visitors[next(iter(self.visitors))]

    def _no(
        self,
        peer: PeerId,
        reason: Reason,
        text: bytes = b"",
        known: int | None = None,
        relays: tuple[Contact, ...] = (),
    ) -> Send[Decision | Away]:
        deed = self._parts.deed
        told = deed if known is not None and known < deed.version else None
        return Send(peer, Decision(self._parts.id, False, reason, told, relays, text, 0, 0, (), ()))

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
