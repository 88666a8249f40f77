"""One room that this node serves as a relay: connects the room's components."""

from __future__ import annotations

from collections.abc import Container, Iterable
from functools import partial

import msgspec

from linnet.core.errors import RemoteError
from linnet.core.ids import AuthorId, DeviceId, EventId, PeerId, TopicId
from linnet.core.limits import DEPENDENCIES
from linnet.core.reasons import Reason
from linnet.delivery.context import Context
from linnet.delivery.messages import Data, Given, Want
from linnet.event.event import Event, Spot, Tail, Unverified, Verified
from linnet.event.signing import recall_unit, sign_unit
from linnet.identity.cards import Card
from linnet.machine.outbox import Outbox
from linnet.rooms.auth.control_graph import NO_TOPIC, ControlDag
from linnet.rooms.auth.room_state import View
from linnet.rooms.commands import RelayKnowledge, RelayRoomReport, RoomStatus
from linnet.rooms.event_types import MEMBER, Member, Membership, body_of, member_key
from linnet.rooms.messages import (
    HEADS,
    AskControl,
    ChunkIs,
    ChunkPut,
    ChunkTaken,
    ChunkWant,
    ControlPage,
    Greet,
    RelayForward,
    RelaySend,
    RelayTaken,
    RoomReceipt,
)
from linnet.rooms.relay.access_control import (
    Caller,
    Presence,
    stale_answer,
    why_not_member,
    why_not_reader,
)
from linnet.rooms.relay.admission import RelaySetting, RoomStores
from linnet.rooms.relay.control_fetch import ControlFetch
from linnet.rooms.relay.event_cache import EventCache, EventRetention, GroupRetention
from linnet.rooms.relay.forwarding import Forwarding
from linnet.rooms.relay.frontier import Statements
from linnet.rooms.relay.ingest import Answers, Fresh, Ingest, Origin, Turn
from linnet.rooms.relay.mailbox import Followers, Mailbox, Pages, Resyncs
from linnet.rooms.relay_statements import NotHeld
from linnet.trace.records import Kind, Record


class RelayRoom(RoomStores):
    """A room whose control DAG is in the store, where this device is named as a relay."""

    def __init__(self, room: TopicId, setting: RelaySetting) -> None:
        super().__init__(room, setting)
        context, config, rooms, out = setting.context, setting.config, setting.rooms, setting.out
        self._context = context
        self._out = out
        self._answers = Answers(room)
        self.dag = _restore_dag(self.cache, context)
        pages = Pages(context.cards, rooms.page_events, rooms.page_bytes)
        self._statements = Statements(self.cache.frontier, context)
        self._mailbox = Mailbox(setting.epoch, self.cache, self.dag, pages, self.receipts, self._statements)
        self._followers = Followers(self._mailbox, pages, self.cache.frontier)
        self._fetch = ControlFetch(room, config, context.card, lambda: self.dag.heads[:HEADS], out)
        patience = config.fetch_tries * config.fetch_timeout + rooms.relay_timeout
        self._forwarding = Forwarding(
            context.store.cells, self.cache, pages, context.links, patience, rooms.relay_retry, out
        )
        groups = GroupRetention(self.dag, self.cache, config)
        self._ingest = Ingest(setting, self._fetch, groups)
        self._retention = EventRetention(groups, self.chunks, config.max_lifetime, out)
        self._own = OwnMembership(context, self.dag, self.cache, out)
        self._presence = Presence(room, context, self.dag, self.cache.usage, out)
        self.resyncs = Resyncs(self._mailbox, self._followers, self._retention, self._presence, out)

    @property
    def view(self) -> View:
        """The current state of the room."""
        return self.dag.view()

    @property
    def is_dropped(self) -> bool:
        """Whether the room's state no longer names this device as a relay, or has removed its person.

        False while control events of the log are damaged, since the state is then unknown.
        """
        if self.cache.lacking:
            return False
        gone = self._own.standing in (Membership.LEAVE, Membership.BAN)
        return gone or not self.view.is_relay(self._context.peer)

    def start(self, now: float) -> None:
        """Hold links to the other relays, and go on forwarding."""
        turn = self._begin_turn(now)
        turn.changed = True
        turn.forwards = True
        lacking = len(self.cache.lacking)
        if lacking:
            note = "control events, until a member or relay has given them again"
            self._out.record(
                Record(Kind.DROPPED, self.room, events=lacking, reason=Reason.DAMAGED, note=note)
            )
        self._finish_turn(turn, now)

    def join(self, contacts: tuple[PeerId, ...], now: float) -> None:
        """Publish our join to these members and all other relays."""
        turn = self._begin_turn(now)
        before = self.cache.end
        turn.changed = True
        if self._own.standing is not Membership.JOIN:
            self._own.say_membership(Membership.JOIN, turn, contacts, self._others(), now)
        self._greet_linked(peer for peer in contacts if peer not in self._others())
        self._finish_turn(turn, now, before)

    # What peers and relays send.

    def keep_events(self, caller: Caller, message: RelaySend | RelayForward, now: float) -> list[RelayTaken]:
        """Take in events to be kept; return the answers for a caller that is not linked."""
        turn = self._begin_turn(now)
        relay = isinstance(message, RelayForward)
        signed = isinstance(message, RelaySend) and message.signed
        number = message.request
        turn.give_answer(caller, self._answers.open_request(caller, number, len(message.units), signed))
        self._presence.note_seen(caller, now)
        cards = {card.person + card.device: card for card in message.cards}
        self._take_units(message.units, cards, Origin(caller, relay, message.request), turn, now)
        self._finish_turn(turn, now)
        return turn.replies

    def why_not_relay(self, caller: Caller) -> Reason | None:
        """Return why a caller is not a relay of this room; None if it is."""
        return None if self.view.is_relay(caller.peer) else Reason.NOT_A_RELAY

    def why_not(
        self, caller: Caller | None, asked: AskControl | Want | ChunkWant, now: float
    ) -> Reason | None:
        """Return why a caller is refused an answer; None if it is not."""
        if isinstance(asked, AskControl):
            return self._presence.why_not_visitor(caller, asked.ticket, now)
        return why_not_reader(self.view, caller, asked)

    def give_events(self, caller: Caller, want: Want, now: float) -> Given:
        """Return the events that a caller wants by their ids."""
        self._presence.note_seen(caller, now)
        return self._mailbox.give_events(want, self._retention.since(now))

    def give_control(self, caller: Caller | None, asked: AskControl, now: float) -> ControlPage:
        """Return the control events that a caller asks for."""
        if caller is not None:
            self._presence.note_seen(caller, now)
        return self._mailbox.control_page(asked, self._presence.contacts())

    def removal_page(self, caller: Caller, asked: AskControl) -> ControlPage | None:
        """Return a page for a former member with the event that removed it, and those that this builds on."""
        event = self.dag.removal_of(caller.person)
        return None if event is None else self._mailbox.control_page(asked, (), event)

    def handle_receipt(self, caller: Caller, receipt: RoomReceipt, now: float) -> None:
        """Store a receipt, from its device or passed on by another member or relay, and pass it on."""
        giver = Caller(receipt.card.device_key, receipt.card.person)
        reason = why_not_reader(self.view, caller) or why_not_member(self.view, giver)
        if reason is None:
            try:
                news = self.receipts.learn(receipt)
            except RemoteError as error:
                reason = error.reason
            else:
                if news:
                    self._tell_receipt(caller, receipt, now)
                return
        self._out.record(Record(Kind.REJECTED, self.room, peer=caller.peer, reason=reason, note="receipt"))

    def put_chunk(self, caller: Caller, put: ChunkPut, now: float) -> ChunkTaken:
        """Store a piece of an attachment, if that is allowed; return the answer."""
        reason = why_not_member(self.view, caller)
        taken = ChunkTaken(self.room, put.digest, reason) if reason is not None else self.chunks.put(put, now)
        if taken.reason is None:
            self._retention.arm_timer(now)
        else:
            self._out.record(
                Record(Kind.REJECTED, self.room, peer=caller.peer, reason=taken.reason, note="chunk")
            )
        return taken

    def get_chunks(self, want: ChunkWant, now: float) -> list[ChunkIs]:
        """Return the wanted pieces of attachments."""
        return self.chunks.give(want, self._retention.since(now))

    # Callers that are online.

    def handle_greet(self, caller: Caller, greet: Greet, now: float) -> bool:
        """Take in the greeting of a caller, and fetch control events it names; return whether we answered."""
        missing = self.dag.missing(greet.control)
        if missing and why_not_reader(self.view, caller) is None:
            self._fetch.ask_beyond_heads(caller.peer, now)
        elif missing:
            self._fetch.ask_stranger(caller.peer, missing, now)
        is_greeted = self._presence.handle_greet(caller, greet, bool(missing), now)
        self._forwarding.resume(caller.peer)
        return is_greeted

    def handle_link_up(self, peer: PeerId) -> None:
        """Greet another relay whose link is open, and forward to it; members greet first."""
        if peer in self._forwarding.relays:
            self._out.send(peer, self._presence.own_greeting(answer=False))
            self._forwarding.resume(peer)

    def handle_link_down(self, peer: PeerId) -> None:
        """Forget what we owe to a peer whose link is gone."""
        self._presence.handle_link_down(peer)
        self._answers.handle_link_down(peer)
        self.resyncs.handle_link_down(peer)
        self._followers.remove(peer)
        self._mailbox.handle_link_down(peer)
        self._fetch.handle_link_down(peer)
        self._forwarding.handle_link_down(peer)

    # Answers to our own requests.

    def handle_page(self, caller: Caller, page: ControlPage, now: float) -> None:
        """Take in control events that we asked for."""
        if not self._fetch.expects_answer(caller.peer, page.request):
            self._out.record(stale_answer(self.room, caller.peer, page))
            return
        turn = self._begin_turn(now)
        before = len(self.dag)
        self._learn_units(caller, page.units, page.cards, turn, now)
        is_done = self._fetch.handle_page(caller.peer, page, len(self.dag) > before, now)
        self._finish_turn(turn, now)
        if is_done:
            self._answer_waiting(caller.peer, now)

    def handle_given(self, caller: Caller, given: Given, now: float) -> None:
        """Take in single events that we asked for."""
        if not self._fetch.expects_answer(caller.peer, given.request):
            self._out.record(stale_answer(self.room, caller.peer, given))
            return
        turn = self._begin_turn(now)
        self._learn_units(caller, given.units, given.cards, turn, now)
        self._fetch.handle_given(caller.peer, now)
        self._finish_turn(turn, now)
        if not self._fetch.is_asking(caller.peer):
            self._answer_waiting(caller.peer, now)

    def handle_taken(self, peer: PeerId, taken: RelayTaken) -> None:
        """Take in another relay's answer to the events that we forwarded."""
        if self._forwarding.expects_answer(peer, taken.request):
            self._forwarding.handle_taken(peer, taken)
        else:
            self._out.record(stale_answer(self.room, peer, taken))

    # Time.

    def fetch_again(self, now: float) -> None:
        """Ask the next peer for control events that we lack."""
        turn = self._begin_turn(now)
        relays = [peer for peer in self._forwarding.relays if peer in self._context.links]
        members = [peer for peer in self._presence.here if peer not in relays]
        lost = self._fetch.ask_next([*relays, *members], now)
        self._ingest.give_up(lost, turn)
        self._finish_turn(turn, now)
        for peer in self._presence.waiting:
            if not self._fetch.is_asking(peer):
                self._answer_waiting(peer, now)

    def forward_again(self, peer: PeerId) -> None:
        """Forward again to a relay that gave no answer in time, or that must be tried again."""
        self._forwarding.try_again(peer)

    def expire_events(self, now: float) -> None:
        """Expire events that were kept long enough, and tell their authors among the followers."""
        turn = self._begin_turn(now)
        self._retention.handle_expiry(now)
        self._finish_turn(turn, now)

    # The end.

    def leave(self, now: float) -> None:
        """Publish our leave, if we are in the room, and stop: it has other relays."""
        turn = self._begin_turn(now)
        self._ingest.stop(turn, Reason.NOT_A_RELAY)
        self._followers.expel(lambda _: Reason.NOT_A_RELAY, turn.promise_send)
        if self._own.standing in (Membership.JOIN, Membership.INVITE):
            members, relays = self._presence.here, self._forwarding.relays
            self._own.say_membership(Membership.LEAVE, turn, members, relays, now)
        self._fetch.stop()
        self._forwarding.stop()
        self._retention.stop()
        turn.finish()

    @property
    def here(self) -> tuple[PeerId, ...]:
        """The online devices of members, and relays, that have greeted."""
        return tuple(self._presence.here)

    def status(self) -> RoomStatus:
        """Return a short status of the room here."""
        return RoomStatus(
            self.room,
            None,
            self._own.standing,
            True,
            len(self.view.joined()),
            tuple(self._presence.here),
            self._forwarding.status(),
            self.cache.usage.events + self.cache.shelf.usage.events,
            len(self.dag),
            len(self.dag.heads),
            self._ingest.waiting,
            len(self._fetch.sought),
            self._ingest.soft_failed,
            self._ingest.rejected,
            0,
            self.view.is_encrypted,
        )

    def report(self) -> RelayRoomReport:
        """Return all that this relay knows of the room."""
        log = self._context.store.log
        seen = self._presence.seen
        control: dict[AuthorId, int] = {}
        devices: dict[AuthorId, dict[DeviceId, None]] = {}
        for event in self.cache.control:
            fact = self.dag.fact(event)
            control[fact.sender] = control.get(fact.sender, 0) + 1
            devices.setdefault(fact.sender, {})[fact.device] = None
        for topic in (*self.cache.topics, *self.cache.group_topics):
            for head in log.heads(topic):
                devices.setdefault(head.author, {})[head.device] = None
        view = self.dag.view()
        usage, keys = self.cache.usage, self.cache.shelf.usage
        members = (person for person, _ in view.members())
        known = dict.fromkeys((*members, *control, *usage.shares, *keys.shares, *seen))
        people = tuple(
            RelayKnowledge(
                person,
                view.membership(person),
                control.get(person, 0),
                usage.share_of(person).events + keys.share_of(person).events,
                usage.share_of(person).bytes + keys.share_of(person).bytes,
                len(devices.get(person, ())),
                max(usage.share_of(person).last_ms or 0, keys.share_of(person).last_ms or 0) or None,
                seen.get(person),
                self.receipts.count_of(person),
                self.cache.devices.count_of(person),
            )
            for person in sorted(known)
        )
        return RelayRoomReport(
            self.room,
            len(self.dag),
            usage.events + keys.events,
            usage.bytes + keys.bytes,
            self.chunks.bytes,
            self.cache.oldest,
            self.cache.expired,
            self.cache.evicted,
            usage.states,
            people,
            keys.events,
            keys.bytes,
        )

    def _finish_turn(self, turn: Turn, now: float, begin_at: int | None = None) -> None:
        """Forward, push and answer the results of an input."""
        if turn.changed:
            self._apply_state(begin_at)
        self._forwarding.since = self._retention.since(now)
        if turn.forwards or turn.changed:
            self._forwarding.forward_events()
        self._followers.push_events(turn, self.cache.end, now)
        if (turn.changed or self._retention.groups.stale) and not self.cache.lacking:
            self._retention.groups.release_events(now)
        self._retention.arm_timer(now)
        turn.finish()

    def _apply_state(self, begin_at: int | None) -> None:
        """Apply the state of the room, which may have changed."""
        view = self.view
        before = self._forwarding.relays
        self._forwarding.set_relays(self._others())
        self._greet_linked(peer for peer in self._forwarding.relays if peer not in before)
        if begin_at is not None:
            self._forwarding.begin_at(begin_at)
        self._followers.expel(lambda caller: why_not_member(view, caller), self._out.send)
        if not self.cache.lacking:
            self.receipts.retain(frozenset(view.joined()))
        self._presence.drop_outsiders()

    def _greet_linked(self, peers: Iterable[PeerId]) -> None:
        """Greet those of these peers that are linked."""
        links = self._context.links
        for peer in peers:
            if peer in links:
                self._out.send(peer, self._presence.own_greeting(answer=False))

    def _begin_turn(self, now: float) -> Turn:
        return Turn(self.room, self._answers, self._out, partial(self._sign, now=now))

    def _sign(self, taken: RelayTaken, now: float) -> RelayTaken:
        """Add to an answer the signed statement on which of its events are kept."""
        held = [self.cache.claim(each.event) for each in taken.outcomes if each.cursor is not None]
        refused = [
            NotHeld(each.event, each.reason or Reason.UNKNOWN)
            for each in taken.outcomes
            if each.cursor is None
        ]
        said = self._statements.sign_answer(filter(None, held), refused, now)
        return msgspec.structs.replace(taken, said=said)

    def _others(self) -> dict[PeerId, tuple[str, ...]]:
        """Return the room's other relays with their addresses."""
        return {peer: relay.hints for peer, relay in self.view.relays() if peer != self._context.peer}

    def _take_units(
        self, units: Iterable[Unverified], cards: dict[bytes, Card], origin: Origin, turn: Turn, now: float
    ) -> None:
        for unit in units:
            self._ingest.take_unit(unit, cards, origin, turn, now)

    def _learn_units(
        self,
        caller: Caller,
        units: tuple[Unverified, ...],
        cards: tuple[Card, ...],
        turn: Turn,
        now: float,
    ) -> None:
        """Take in control events that we asked for. Those from a relay of the room are not forwarded."""
        origin = Origin(caller, self.view.is_relay(caller.peer), None)
        fresh = [unit for unit in units if unit.topic != NO_TOPIC]  # all but the create event, which we have
        self._take_units(fresh, {card.person + card.device: card for card in cards}, origin, turn, now)

    def _answer_waiting(self, peer: PeerId, now: float) -> None:
        """Answer the greeting and request of a peer that has sent all the control events it knows."""
        self._presence.answer_waiting(peer, now)
        self.resyncs.answer_deferred(peer, now)

    def _tell_receipt(self, caller: Caller, receipt: RoomReceipt, now: float) -> None:
        """Pass on a receipt: to followers in a page, to other relays as it is, unless a relay sent it."""
        turn = self._begin_turn(now)
        self._followers.push_events(turn, self.cache.end, now)
        if not self.view.is_relay(caller.peer):
            for peer in self._forwarding.relays:
                if peer in self._context.links:
                    self._out.send(peer, receipt)
        turn.finish()


def _restore_dag(cache: EventCache, context: Context) -> ControlDag:
    """Restore the control DAG from the log, without the events that build on a damaged one.

    If some are left out, we catch up like any relay that is behind: with the first peer that greets.
    """
    events = cache.restore()
    dag = ControlDag(next(events), context.card_check)
    for event in events:
        if dag.missing(event.tail.control or ()):
            cache.mark_lacking(event.id)
        else:
            dag.add(event)
    return dag


class OwnMembership:
    """Publishes that this relay joins or leaves: the only events of a relay in a room."""

    def __init__(self, context: Context, dag: ControlDag, cache: EventCache, out: Outbox) -> None:
        self._context = context
        self._dag = dag
        self._cache = cache
        self._out = out

    @property
    def standing(self) -> Membership:
        """Our own membership in the room."""
        return self._dag.view().membership(self._context.author)

    def say_membership(
        self,
        membership: Membership,
        turn: Turn,
        members: Container[PeerId],
        relays: Container[PeerId],
        now: float,
    ) -> None:
        """Join or leave, if the room lets us, and tell the linked peers.

        Members get the event like any other. The other relays get our join forwarded; to them a relay that
        leaves is an ordinary peer.
        """
        verified = self._make(membership, now)
        event = verified.events[0]
        refusal = self._dag.add(event)
        if refusal is not None:
            reason, note = refusal.reason, event.kind
            self._out.record(Record(Kind.REJECTED, event.topic, event.id, reason=reason, note=note))
            return
        position = self._cache.keep_control(verified, True, now)
        turn.fresh.append(Fresh(position, event.id, verified.unit, self._context.peer))
        turn.forwards = True
        turn.promise_record(
            Record(Kind.PUBLISHED, event.topic, event.id, event.device, event.seq, note=event.kind)
        )
        message = Data(verified.unit, 1, 0, int(now * 1_000_000), self._context.card)
        send = RelaySend(event.topic, 0, (verified.unit,), (self._context.card,))
        for peer in self._context.links:
            if peer in relays and membership is Membership.LEAVE:
                turn.promise_send(peer, send)
            elif peer in members and peer not in relays and peer != self._context.peer:
                turn.promise_send(peer, message)

    def _make(self, membership: Membership, now: float) -> Verified:
        """Sign our membership event, which follows all known control events."""
        context, dag = self._context, self._dag
        mine = [event for event in self._cache.control if self._is_ours(event)]
        last = max(map(self._event, mine), key=lambda event: event.seq or 0, default=None)
        heads = dag.heads[:DEPENDENCIES]
        named = [*map(self._event, heads), *(() if last is None else (last,))]
        height = 1 + max(event.tail.height or 0 for event in named)
        key, body = member_key(context.author), body_of(Member(membership))
        tail = Tail(heads, None, height, heads, MEMBER, key, int(now * 1000), None, body)
        seq, prev = (0, None) if last is None else ((last.seq or 0) + 1, last.id)
        return sign_unit(context.key, Spot(dag.room, context.author, context.device, seq, prev), (tail,))

    def _is_ours(self, event: EventId) -> bool:
        fact = self._dag.fact(event)
        return (fact.sender, fact.device) == (self._context.author, self._context.device)

    def _event(self, event: EventId) -> Event:
        unit = self._cache.unit(event, 0.0)
        if unit is None:
            raise AssertionError(f"the control event {event.hex()} is not in the log")
        return recall_unit(unit).events[0]
