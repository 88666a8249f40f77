"""What a guest makes of the answers at a door: let in, sent on, turned away; and whom it tells.

With its admission a newcomer is told the notice that it came in, and so where the line begins for it; who
else is in it asks those who send to it (docs/adr/0018-places.md).
"""

from __future__ import annotations

from collections.abc import Iterable

from linnet.core.errors import RemoteError
from linnet.core.ids import AuthorId, Contact, PeerId
from linnet.core.reasons import Reason
from linnet.delivery.commands import Declined
from linnet.event.event import Verified
from linnet.machine.outbox import Outbox
from linnet.places.channel.packet import Modifier, parse
from linnet.places.commands import AtDoor, Entered, Turned
from linnet.places.messages import Decision
from linnet.places.multicast.fragmentation import Flag, Head
from linnet.places.multicast.terms import opening_of
from linnet.places.parts import Parts
from linnet.places.visiting import MADE_UP, Visiting, own_notice, refused_record, told_membership
from linnet.trace.records import Kind, Record

AT_THE_DOOR = (
    "the host decides who comes in, and has not decided yet; "
    "this node goes on to wait at the door, and comes in when it is let in"
)

UNDECIDED = (Reason.NOT_A_MEMBER, Reason.STALE, Reason.MISSING_DEPENDENCY)
"""What is answered by who cannot decide, or does not know enough yet: the host may still let us in."""


class Admission:
    """The doors of one place, from outside."""

    def __init__(self, parts: Parts, visiting: Visiting, out: Outbox) -> None:
        self._parts = parts
        self._visiting = visiting
        self._out = out
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
    ) -> None:
        """Ask to come in; answered when the door opens, or does not."""
        if not self._asked:
            self._is_first = not self._visiting.wants
            if self._is_first:
                self._doors = {}
        self._asked.append(request)
        if not waits:
            self._hurried[request] = None
        self._visiting.enter(contacts, modifiers, text, now)

    def give_up(self, request: int) -> bool:
        """Tell a request that nobody answered in time; whether nobody here means to be in any more."""
        if request not in self._asked:
            return False
        self._asked.remove(request)
        self._hurried.pop(request, None)
        if self._doors:
            self._out.reply(request, Declined(Reason.WAITING, AT_THE_DOOR))
            return False
        is_in = bool(self._parts.tree.upstreams) or self._visiting.is_admitted
        detail = "nobody who lets guests in answered in time; the host of this place may be away"
        if is_in:
            detail = "let in, but the state of the place did not come in time"
        self._out.reply(request, Declined(Reason.TIMEOUT, detail))
        return self._is_first and not self._asked and not is_in

    def handle_decision(self, peer: PeerId, decision: Decision, now: float) -> bool:
        """Follow the answer at a peer's door; whether that peer sends to us from now on."""
        parts, visiting, out = self._parts, self._visiting, self._out
        if not visiting.is_awaited(peer):
            note = "a decision that nobody waits for"
            out.record(Record(Kind.REJECTED, parts.id, peer=peer, reason=Reason.SURPLUS, note=note))
            return False
        before = out.mark()
        try:
            if decision.deed is not None:
                parts.renew(decision.deed)
            if decision.reason is Reason.WAITING and not decision.admitted:
                self._doors[peer] = None
                self._wait_at_door(peer, now)
                return False
            self._doors = {} if decision.admitted else {key: None for key in self._doors if key != peer}
            if not decision.admitted:
                self._handle_refusal(peer, decision, now)
                return False
            self._let_in(told_membership(parts, decision), now)
            if all(each.peer != peer for each in decision.relays):
                visiting.go_on_to(peer, decision.relays, now)
                return False
            nym = self._person(peer, decision)
        except RemoteError as error:
            out.forget_since(before)
            if error.reason in MADE_UP:
                visiting.distrust(peer, now)
            out.record(refused_record(parts, peer, error))
            out.blame(peer, error.reason)
            visiting.handle_refusal(peer, now)
            return False
        for contact in decision.relays:
            visiting.learn(contact)
        visiting.connect(peer, nym, now)
        if decision.next:
            parts.told = max(parts.told, (decision.term, decision.next - 1))
            parts.missing.suspect(decision.next - 1, now)
        return True

    def tell_entered(self) -> None:
        """Tell the application that it is in: as soon as it can look at the state as of its entry."""
        parts = self._parts
        if self._asked and parts.tree.upstreams and self._has_state:
            self._answer(Entered(parts.id, parts.since))

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

    def _wait_at_door(self, peer: PeerId, now: float) -> None:
        """Stand at the door of the host, which decides who comes in."""
        hurried, self._hurried = self._hurried, {}
        self._asked = [each for each in self._asked if each not in hurried]
        self._visiting.wait_at_door(peer, now)
        for request in hurried:
            self._out.committed.reply(request, AtDoor(self._parts.id))

    def _handle_refusal(self, peer: PeerId, decision: Decision, now: float) -> None:
        self._visiting.follow_referral(decision.relays)
        self._visiting.handle_refusal(peer, now)
        reason = decision.reason or Reason.NOT_ALLOWED
        if decision.text:
            packet = parse(decision.text)
            turned = Turned(self._parts.id, reason, packet.method, packet.modifiers, packet.body)
            self.is_rejected = not self._parts.is_in
            self._answer(turned)
            return
        waits = any(self._visiting.is_awaited(each.peer) for each in self._visiting.contacts)
        if waits or self._doors or self._visiting.is_admitted:
            return
        if reason in UNDECIDED and self._asked:
            self._visiting.set_timer(now)
            return
        requests, self._asked, self._hurried = self._asked, [], {}
        for request in requests:
            self._out.reply(request, Declined(reason, "turned away at the door"))

    def _answer(self, result: Entered | Turned) -> None:
        requests, self._asked, self._hurried = self._asked, [], {}
        for request in requests:
            self._out.committed.reply(request, result)
