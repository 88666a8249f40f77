"""Admission of a room at a relay, from the request to the join, and the stores of a room with their sweep.

A member asks. If policy and capacity allow it, the relay holds links to peers that have the control DAG and
fetches the DAG, until the room's state names this device as a relay and lets its person in; then it joins. If
nobody answers, or the state never names it, the admission ends with a reason and leaves nothing behind. Once
the state no longer names the relay, it leaves and deletes all that it has stored.
"""

from __future__ import annotations

from typing import NamedTuple

from linnet.core.errors import InvalidEvent, RemoteError
from linnet.core.ids import AuthorId, Contact, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.context import Context
from linnet.event.event import Unverified, Verified
from linnet.identity.cards import Card
from linnet.machine.outbox import Outbox
from linnet.rooms.auth.control_graph import ControlDag
from linnet.rooms.chunk_store import StoredChunks
from linnet.rooms.config import RelayConfig, RelayPolicy, RoomsConfig
from linnet.rooms.event_types import CONTROL_KINDS, JoinRule, Membership
from linnet.rooms.messages import HEADS, AskControl, ControlPage, Refused, RoomTimer
from linnet.rooms.receipts import StoredReceipts
from linnet.rooms.relay.event_cache import EventCache
from linnet.rooms.relay.event_index import Budget
from linnet.trace.records import Kind, Record

PATIENCE = 30.0
"""Seconds within which the room's state has to name us: the asker writes that once we have agreed."""

LINGER = 5.0
"""Seconds that the links stay once we serve the room, so that our join can be sent along them."""

CONTACTS = 8
"""The most contacts to dial: enough to reach one, too few to abuse relays for dialling strangers."""
AT_ONCE = 32
"""The most rooms under admission at the same time."""


class AdmissionDue(RoomTimer, frozen=True, gc=False):
    """Timer: contacts that may hold the control DAG of a room have not answered in time."""


class LingerDue(RoomTimer, frozen=True, gc=False):
    """Timer: the links of an admission have been held long enough after the join."""


def why_not_taken(config: RelayConfig, person: AuthorId | None, rooms: int, kept: int) -> Reason | None:
    """Return why a room of this person is not accepted, or None; an asker without a card has no person."""
    if config.policy is RelayPolicy.ALLOW and person not in config.allow:
        return Reason.NOT_ALLOWED
    return Reason.QUOTA if rooms >= config.max_rooms or kept >= config.total_bytes else None


class RelaySetting(NamedTuple):
    """The setting that all rooms of a relay share."""

    epoch: bytes
    """The epoch of our cursors; those of another epoch belong to a store that was lost."""
    context: Context
    config: RelayConfig
    rooms: RoomsConfig
    budget: Budget
    out: Outbox


class Admission:
    """One room that this relay has agreed to serve and does not serve yet."""

    def __init__(
        self, room: TopicId, asker: PeerId, contacts: tuple[Contact, ...], setting: RelaySetting
    ) -> None:
        self.room = room
        self._setting = setting
        self._out = setting.out
        self._asker = asker
        self.contacts: dict[PeerId, tuple[str, ...]] = {
            contact.peer: contact.hints for contact in (Contact(asker), *contacts[:CONTACTS])
        }
        self.contacts.pop(setting.context.peer, None)
        self._dag: ControlDag | None = None
        self.units: list[Verified] = []
        """The part of the control DAG that has come so far, causes first."""
        self._number = 0
        self._until = 0.0
        self._last_reason = Reason.TIMEOUT

    def begin(self, now: float) -> None:
        """Dial all contacts that may hold the control DAG, and ask for it."""
        self._until = now + PATIENCE
        for peer, hints in self.contacts.items():
            self._out.hold(peer, hints, self._purpose)
        self._ask_all()

    def ask_contact(self, peer: PeerId) -> None:
        """Ask a peer for the control DAG, if it is a contact: it is newly linked, or may know more now."""
        if peer in self.contacts:
            self._ask(peer)

    def handle_page(self, peer: PeerId, page: ControlPage) -> None:
        """Take in control events of a contact, and ask it for more."""
        if peer not in self.contacts:
            return
        if page.reason is not None:
            self._last_reason = page.reason
            return
        cards = {card.person + card.device: card for card in page.cards}
        before = len(self.units)
        for unit in page.units:
            self._take_unit(peer, unit, cards)
        if page.more and len(self.units) > before:
            self._ask(peer)

    def handle_refusal(self, peer: PeerId, reason: Reason) -> None:
        """Note why a contact refuses to answer us yet."""
        if peer in self.contacts:
            self._last_reason = reason

    @property
    def why_not(self) -> Reason | None:
        """The reason why we cannot serve the room yet; None: its state says that we may."""
        dag, context = self._dag, self._setting.context
        if dag is None:
            return self._last_reason
        view = dag.view()
        named = view.relay_of(context.peer)
        if named is None or named.person != context.author:
            return Reason.NOT_A_RELAY
        standing = view.membership(context.author)
        if standing is Membership.BAN:
            return Reason.BANNED
        public = view.join_rule() is JoinRule.PUBLIC
        return None if public or standing in (Membership.INVITE, Membership.JOIN) else Reason.NOT_INVITED

    def ask_again(self, now: float) -> Reason | None:
        """Ask all contacts again, or give up; return the reason if so."""
        if now < self._until:
            self._ask_all()
            return None
        reason = self.why_not or Reason.TIMEOUT
        self._reject(self._asker, reason)
        if self._asker in self._setting.context.links:
            detail = "the relay could not begin to serve the room"
            self._out.send(self._asker, Refused(self.room, None, reason, detail))
        self._out.cancel_timer(AdmissionDue(self.room))
        self.release_links()
        return reason

    def linger(self) -> None:
        """Hold the links a while after we serve the room, so that the peers receive our join."""
        self._out.cancel_timer(AdmissionDue(self.room))
        self._out.set_timer(LINGER, LingerDue(self.room))

    def release_links(self) -> None:
        """Release the links to the contacts."""
        for peer in self.contacts:
            self._out.release(peer, self._purpose)

    def _take_unit(self, peer: PeerId, unit: Unverified, cards: dict[bytes, Card]) -> None:
        try:
            self._learn(unit, cards)
        except RemoteError as error:
            self._reject(peer, error.reason)

    def _reject(self, peer: PeerId, reason: Reason) -> None:
        self._out.record(Record(Kind.REJECTED, self.room, peer=peer, reason=reason, note="admission"))

    def _learn(self, unit: Unverified, cards: dict[bytes, Card]) -> None:
        verified, _ = self._setting.context.check(unit, cards.get(unit.author + unit.device), None)
        event = verified.events[0]
        if self._dag is None:
            if TopicId(event.id) != self.room:
                raise InvalidEvent(Reason.MISSING_DEPENDENCY, "the create event comes first")
            self._dag = ControlDag(event, self._setting.context.card_check)
        elif self._dag.knows(event.id):
            return
        elif len(verified.events) != 1 or event.kind not in CONTROL_KINDS or event.seq is None:
            raise InvalidEvent(Reason.MALFORMED, "no control event")
        elif self._dag.missing(event.tail.control or ()):
            raise InvalidEvent(Reason.MISSING_DEPENDENCY, "its control heads come first")
        elif len(self.units) >= self._setting.rooms.max_control:
            raise InvalidEvent(Reason.QUOTA, f"more than {self._setting.rooms.max_control} control events")
        else:
            refusal = self._dag.add(event)
            if refusal is not None:
                raise InvalidEvent(refusal.reason, refusal.rule)
        self.units.append(verified)

    def _ask_all(self) -> None:
        links = self._setting.context.links
        for peer in self.contacts:
            if peer in links:
                self._ask(peer)
        self._out.set_timer(self._setting.config.fetch_timeout, AdmissionDue(self.room))

    def _ask(self, peer: PeerId) -> None:
        self._number += 1
        heads: tuple[EventId, ...] = () if self._dag is None else self._dag.heads[:HEADS]
        self._out.send(peer, AskControl(self.room, self._number, heads, None, self._setting.context.card))

    @property
    def _purpose(self) -> str:
        return f"admission {self.room.hex()[:16]}"


class RoomStores:
    """The stores of one room at a relay."""

    def __init__(self, room: TopicId, setting: RelaySetting) -> None:
        context, config, out = setting.context, setting.config, setting.out
        store = context.store
        self.room = room
        self.cache = EventCache(room, store, context.cards, setting.budget, config.tombstones, out)
        self.receipts = StoredReceipts(room, context, config.receipts)
        self.chunks = StoredChunks(room, store.cells, config.chunk_bytes, out)

    def forget_some(self) -> bool:
        """Delete a bounded part of a room that is not served any more; return False if nothing was left.

        It needs no control DAG, which may be gone in part after a restart.
        """
        self.receipts.retain(frozenset())
        had_chunks = self.chunks.expire_before(float("inf"), Reason.NOT_A_RELAY)
        return self.cache.forget_some(Reason.NOT_A_RELAY) or had_chunks
