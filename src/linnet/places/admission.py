"""What a guest makes of the answers at a door: let in, sent on, turned away; and whom it tells.

With its admission a newcomer is told the notice that it came in, and so where the line begins for it; who
else is in it asks those who send to it (docs/adr/0018-places.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from linnet.core.effects import AfterCommit, Blame, Reply
from linnet.core.errors import RemoteError
from linnet.core.ids import AuthorId, Contact, PeerId
from linnet.core.reasons import Reason
from linnet.delivery.commands import Declined
from linnet.event.event import Verified
from linnet.places.channel.psyc import Modifier, parse
from linnet.places.commands import AtDoor, Entered, Turned
from linnet.places.effects import PlacePromise
from linnet.places.messages import Decision
from linnet.places.multicast.head import Flag, Head
from linnet.places.multicast.terms import opening_of
from linnet.places.parts import Parts
from linnet.places.visiting import (
    MADE_UP,
    Visiting,
    VisitingEffect,
    own_notice,
    refused_record,
    told_membership,
)
from linnet.trace.records import Kind, Record

AT_THE_DOOR = (
    "the host decides who comes in, and has not decided yet; "
    "this node goes on to wait at the door, and comes in when it is let in"
)

UNDECIDED = (Reason.NOT_A_MEMBER, Reason.STALE, Reason.MISSING_DEPENDENCY)
"""What is answered by who cannot decide, or does not know enough yet: the host may still let us in."""

AdmissionEffect: TypeAlias = VisitingEffect | AfterCommit[PlacePromise] | Reply[Declined] | Blame | Record


class Admission:
    """The doors of one place, from outside."""

    def __init__(self, parts: Parts, visiting: Visiting) -> None:
        self._parts = parts
        self._visiting = visiting
        self._asked: list[int] = []
        """Requests of the application that wait for the door to open, and for the state behind it."""
        self._hurried: dict[int, None] = {}
        """Those of them that want to know at once that the host decides."""
        self._doors: dict[PeerId, None] = {}
        """Where the host was told of us, and decides. What is said at other doors does not change that."""
        self.is_rejected = False
        """Whether the host said no to us: nobody knocks again unasked."""
        self._is_first = True
        """Whether nobody meant to be in before the first of these."""

    def enter(
        self,
        request: int,
        contacts: Iterable[Contact],
        modifiers: tuple[Modifier, ...],
        text: bytes,
        waits: bool,
        now: float,
    ) -> list[AdmissionEffect]:
        """Ask to come in; answered when the door opens, or does not."""
        if not self._asked:
            self._is_first = not self._visiting.wants
            if self._is_first:
                self._doors = {}
        self._asked.append(request)
        if not waits:
            self._hurried[request] = None
        return [*self._visiting.enter(contacts, modifiers, text, now)]

    def give_up(self, request: int) -> tuple[bool, list[AdmissionEffect]]:
        """Nobody answered in time; whether nobody here means to be in any more."""
        if request not in self._asked:
            return False, []
        self._asked.remove(request)
        self._hurried.pop(request, None)
        if self._doors:
            return False, [Reply(request, Declined(Reason.WAITING, AT_THE_DOOR))]
        is_in = bool(self._parts.tree.upstreams) or self._visiting.is_admitted
        detail = "nobody who lets guests in answered in time; the host of this place may be away"
        if is_in:
            detail = "let in, but the state of the place did not come in time"
        is_over = self._is_first and not self._asked and not is_in
        return is_over, [Reply(request, Declined(Reason.TIMEOUT, detail))]

    def decided(self, peer: PeerId, decision: Decision, now: float) -> tuple[bool, list[AdmissionEffect]]:
        """An answer at somebody's door; whether that one sends to us from now on."""
        parts, visiting = self._parts, self._visiting
        if not visiting.is_awaited(peer):
            note = "a decision that nobody waits for"
            return False, [Record(Kind.REJECTED, parts.id, peer=peer, reason=Reason.SURPLUS, note=note)]
        try:
            if decision.deed is not None:
                parts.renew(decision.deed)
            if decision.reason is Reason.WAITING and not decision.admitted:
                self._doors[peer] = None
                return False, self._told_to_wait(peer, now)
            self._doors = {} if decision.admitted else {key: None for key in self._doors if key != peer}
            if not decision.admitted:
                return False, self._turned(peer, decision, now)
            self._let_in(told_membership(parts, decision), now)
            if all(each.peer != peer for each in decision.relays):
                return False, [*visiting.sent_on(peer, decision.relays, now)]
            nym = self._person(peer, decision)
        except RemoteError as error:
            record = refused_record(parts, peer, error)
            if error.reason in MADE_UP:
                visiting.distrust(peer, now)
            return False, [record, Blame(peer, error.reason), *visiting.turned_away(peer, now)]
        for contact in decision.relays:
            visiting.learn(contact)
        effects: list[AdmissionEffect] = [*visiting.connected(peer, nym, now)]
        if decision.next:
            parts.told = max(parts.told, (decision.term, decision.next - 1))
            parts.missing.suspect(decision.next - 1, now)
        return True, effects

    def entered(self) -> list[AdmissionEffect]:
        """Tell the application that it is in: as soon as it can look at the state as of its entry."""
        parts = self._parts
        if not self._asked or not parts.tree.upstreams or not self._has_state:
            return []
        return self._answer(Entered(parts.id, parts.since))

    @property
    def _has_state(self) -> bool:
        parts = self._parts
        changes = parts.membership.changes(parts.context.author)
        if changes and changes[-1].joins:
            return parts.order.applied >= changes[-1].announced_at  # the notice carries the hash of the state
        return parts.is_whole and not parts.missing.count

    def _person(self, peer: PeerId, decision: Decision) -> AuthorId | None:
        """Who has let us in, if the answer proves it."""
        card = decision.card
        if card is None or card.device_key != peer:
            return None
        self._parts.context.cards.learn(card)
        return card.person

    def _let_in(self, told: list[tuple[Verified, Head]], now: float) -> None:
        """Where the line begins for us, and since when we are a guest; the rest of the roll is asked for."""
        parts = self._parts
        notice = own_notice(told, parts.context.author)
        is_new = parts.fragments.standing.fragment < 0 and not parts.terms.line
        if notice is not None and parts.deed.policy.restricts:
            if is_new or (parts.is_out and notice.message > parts.fragments.standing.message):
                parts.begin_at(notice)
            parts.entry = notice
        for verified, head in told:
            parts.keep_told(verified, head, now)
            if head.flags & Flag.OPENING:
                unit = verified.unit
                parts.told_opening(opening_of(head, unit.author, unit.device, verified.head, unit.seq))
        if notice is not None and notice.change is not None and notice.message > parts.membership.since:
            parts.membership.enter(notice.change, notice.message, notice.generation)

    def _told_to_wait(self, peer: PeerId, now: float) -> list[AdmissionEffect]:
        """The host decides who comes in: we stand at its door."""
        hurried, self._hurried = self._hurried, {}
        self._asked = [each for each in self._asked if each not in hurried]
        told = tuple(Reply(request, AtDoor(self._parts.id)) for request in hurried)
        return [*self._visiting.stand(peer, now), *([AfterCommit(told)] if told else [])]

    def _turned(self, peer: PeerId, decision: Decision, now: float) -> list[AdmissionEffect]:
        self._visiting.referred(decision.relays)
        effects: list[AdmissionEffect] = [*self._visiting.turned_away(peer, now)]
        reason = decision.reason or Reason.NOT_ALLOWED
        if decision.text:
            packet = parse(decision.text)
            turned = Turned(self._parts.id, reason, packet.method, packet.modifiers, packet.body)
            self.is_rejected = not self._parts.is_in
            return [*effects, *self._answer(turned)]
        waits = any(self._visiting.is_awaited(each.peer) for each in self._visiting.contacts)
        if waits or self._doors or self._visiting.is_admitted:
            return effects
        if reason in UNDECIDED and self._asked:
            return [*effects, self._visiting.look_again(now)]
        requests, self._asked, self._hurried = self._asked, [], {}
        declined = Declined(reason, "turned away at the door")
        return [*effects, *(Reply(request, declined) for request in requests)]

    def _answer(self, result: Entered | Turned) -> list[AdmissionEffect]:
        requests, self._asked, self._hurried = self._asked, [], {}
        return [AfterCommit(tuple(Reply(request, result) for request in requests))] if requests else []
