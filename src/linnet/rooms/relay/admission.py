"""Becoming a relay of a room: whose rooms are taken, and how one is begun.

A member asks. If policy and capacity allow it, links to those who hold the control DAG are held and the
DAG is fetched, until the room's state names this device as a relay and lets its person in; then it joins.
Nobody answers, or the state never says so: it ends with a reason, and nothing is left behind.
"""

from __future__ import annotations

from linnet.core.effects import CancelTimer, Hold, Release, Send, SetTimer
from linnet.core.errors import InvalidEvent, RemoteError
from linnet.core.ids import AuthorId, Contact, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.delivery.context import Context
from linnet.event.event import Unverified, Verified
from linnet.identity.cards import Card
from linnet.rooms.access.control_dag import ControlDag
from linnet.rooms.config import RelayConfig, RelayPolicy
from linnet.rooms.content import CONTROL_KINDS, JoinRule, Membership
from linnet.rooms.messages import AskControl, ControlPage, Refused
from linnet.rooms.relay.serving import HEADS
from linnet.trace.records import Kind, Record

OWNER = "relay.admission"
LET_GO = "let go"
PATIENCE = 30.0
"""Seconds until the room's state has to name us: the asker writes it once we have said yes."""

LINGER = 5.0
"""Seconds that links stay once we serve the room: our join is written first, then sent along them."""

CONTACTS = 8
"""Contacts that are turned to: enough to find one, too few to make others dial strangers for sport."""
AT_ONCE = 32
"""Rooms that may be on their way in at the same time."""

AdmissionEffect = Send[AskControl | Refused] | Hold | Release | SetTimer[Tick] | CancelTimer[Tick] | Record


def why_not_taken(config: RelayConfig, person: AuthorId | None, rooms: int, kept: int) -> Reason | None:
    """Why a room of this person is not taken; whoever did not show a card is nobody."""
    if config.policy is RelayPolicy.ALLOW and person not in config.allow:
        return Reason.NOT_ALLOWED
    return Reason.QUOTA if rooms >= config.max_rooms or kept >= config.total_bytes else None


class Admission:
    """One room that was said yes to and is not served yet."""

    def __init__(
        self,
        room: TopicId,
        asker: PeerId,
        contacts: tuple[Contact, ...],
        context: Context,
        config: RelayConfig,
        max_control: int,
    ) -> None:
        self.room = room
        self._asker = asker
        self.contacts: dict[PeerId, tuple[str, ...]] = {
            contact.peer: contact.hints for contact in (Contact(asker), *contacts[:CONTACTS])
        }
        self.contacts.pop(context.peer, None)
        self._context = context
        self._config = config
        self._max_control = max_control
        self._dag: ControlDag | None = None
        self.units: list[Verified] = []
        """The control DAG as far as it came, causes first."""
        self._number = 0
        self._until = 0.0
        self._last_reason = Reason.TIMEOUT

    def begin(self, now: float) -> list[AdmissionEffect]:
        """Call everyone who may hold the control DAG."""
        self._until = now + PATIENCE
        holds: list[AdmissionEffect] = [
            Hold(peer, hints, self._purpose) for peer, hints in self.contacts.items()
        ]
        return [*holds, *self._ask_all(), SetTimer(self._config.fetch_timeout, self._tick)]

    def up(self, peer: PeerId) -> list[AdmissionEffect]:
        """A link is open."""
        return self._ask(peer) if peer in self.contacts else []

    def greeted(self, peer: PeerId) -> list[AdmissionEffect]:
        """Somebody may know more than before."""
        return self._ask(peer) if peer in self.contacts else []

    def page(self, peer: PeerId, page: ControlPage) -> list[AdmissionEffect]:
        """Control events, from somebody who was asked."""
        if peer not in self.contacts:
            return []
        if page.reason is not None:
            self._last_reason = page.reason
            return []
        cards = {card.person + card.device: card for card in page.cards}
        before = len(self.units)
        effects: list[AdmissionEffect] = []
        for unit in page.units:
            effects += self._take(peer, unit, cards)
        if page.more and len(self.units) > before:
            effects += self._ask(peer)
        return effects

    def refused(self, peer: PeerId, reason: Reason) -> None:
        """Somebody who was asked has nothing to say to us yet."""
        if peer in self.contacts:
            self._last_reason = reason

    @property
    def why_not(self) -> Reason | None:
        """Why we cannot serve the room yet; None: its state says that we may."""
        dag, context = self._dag, self._context
        if dag is None:
            return self._last_reason
        view = dag.view()
        named = dict(view.relays()).get(context.peer)
        if named is None or named.person != context.author:
            return Reason.NOT_A_RELAY
        standing = view.membership(context.author)
        if standing is Membership.BAN:
            return Reason.BANNED
        public = view.join_rule() is JoinRule.PUBLIC
        return None if public or standing in (Membership.INVITE, Membership.JOIN) else Reason.NOT_INVITED

    def fired(self, now: float) -> tuple[list[AdmissionEffect], Reason | None]:
        """Ask again, or give up for a reason."""
        if now < self._until:
            return [*self._ask_all(), SetTimer(self._config.fetch_timeout, self._tick)], None
        reason = self.why_not or Reason.TIMEOUT
        record = Record(Kind.REJECTED, self.room, peer=self._asker, reason=reason, note="admission")
        refused = Refused(self.room, None, reason, "the relay could not begin to serve the room")
        told = [Send(self._asker, refused)] if self._asker in self._context.links else []
        return [record, *told, *self.end()], reason

    def end(self) -> list[AdmissionEffect]:
        """It has failed."""
        return [CancelTimer(self._tick), *self.let_go()]

    def linger(self) -> list[AdmissionEffect]:
        """We serve the room; whoever is at the other ends is yet to hear of it."""
        return [CancelTimer(self._tick), SetTimer(LINGER, Tick(OWNER, LET_GO, self.room))]

    def let_go(self) -> list[AdmissionEffect]:
        """The links are no longer needed for this."""
        return [Release(peer, self._purpose) for peer in self.contacts]

    def _take(self, peer: PeerId, unit: Unverified, cards: dict[bytes, Card]) -> list[AdmissionEffect]:
        try:
            self._learn(unit, cards)
        except RemoteError as error:
            return [Record(Kind.REJECTED, self.room, peer=peer, reason=error.reason, note="admission")]
        return []

    def _learn(self, unit: Unverified, cards: dict[bytes, Card]) -> None:
        book = self._context.cards
        card = cards.get(unit.author + unit.device)
        if card is not None:
            book.learn(card)
        verified = self._context.verify(unit, book.card_for(unit.author, unit.device, None))
        event = verified.events[0]
        if self._dag is None:
            if TopicId(event.id) != self.room:
                raise InvalidEvent(Reason.MISSING_DEPENDENCY, "the create event comes first")
            self._dag = ControlDag(event, self._context.card_check)
        elif self._dag.knows(event.id):
            return
        elif len(verified.events) != 1 or event.kind not in CONTROL_KINDS or event.seq is None:
            raise InvalidEvent(Reason.MALFORMED, "no control event")
        elif self._dag.missing(event.tail.control or ()):
            raise InvalidEvent(Reason.MISSING_DEPENDENCY, "its control heads come first")
        elif len(self.units) >= self._max_control:
            raise InvalidEvent(Reason.QUOTA, f"more than {self._max_control} control events")
        else:
            refusal = self._dag.add(event)
            if refusal is not None:
                raise InvalidEvent(refusal.reason, refusal.rule)
        self.units.append(verified)

    def _ask_all(self) -> list[AdmissionEffect]:
        links = self._context.links
        return [effect for peer in self.contacts if peer in links for effect in self._ask(peer)]

    def _ask(self, peer: PeerId) -> list[AdmissionEffect]:
        self._number += 1
        heads: tuple[EventId, ...] = () if self._dag is None else self._dag.heads[:HEADS]
        return [Send(peer, AskControl(self.room, self._number, heads, None, self._context.card))]

    @property
    def _purpose(self) -> str:
        return f"admission {self.room.hex()[:16]}"

    @property
    def _tick(self) -> Tick:
        return Tick(OWNER, "ask", self.room)
