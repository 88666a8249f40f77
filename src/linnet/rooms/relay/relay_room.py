"""One room that this node serves as a relay: everything that is said about it comes through here."""

from __future__ import annotations

from collections.abc import Iterable

from linnet.core.errors import RemoteError
from linnet.core.ids import PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.causal_messages import Given, Want
from linnet.delivery.context import Context
from linnet.event.event import Unverified
from linnet.identity.cards import Card
from linnet.machine.outbox import Outbox
from linnet.rooms.access.control_dag import NO_TOPIC, ControlDag
from linnet.rooms.access.view import View
from linnet.rooms.access.visiting import removal_of
from linnet.rooms.config import RelayConfig, RoomsConfig
from linnet.rooms.content import Membership
from linnet.rooms.messages import (
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
    HEADS,
    Caller,
    Presence,
    stale_answer,
    why_not_member,
    why_not_reader,
)
from linnet.rooms.relay.admission import OwnMembership, RoomSweep
from linnet.rooms.relay.control_fetch import ControlFetch
from linnet.rooms.relay.disclosure_report import disclose_room
from linnet.rooms.relay.event_cache import EventCache
from linnet.rooms.relay.forwarding import Forwarding
from linnet.rooms.relay.ingest import Answers, Ingest, Turn
from linnet.rooms.relay.mailbox import Followers, Mailbox, Pages, Resyncs
from linnet.rooms.relay.pending_events import Origin
from linnet.rooms.relay.retention import EventRetention, GroupRetention
from linnet.rooms.relay.stored_chunks import StoredChunks
from linnet.rooms.relay.stored_receipts import StoredReceipts
from linnet.rooms.relay.usage import Budget
from linnet.rooms.results import RelayRoomReport, RoomStatus
from linnet.trace.records import Kind, Record


class RelayRoom:
    """A room whose control DAG is in the store, where this device is named as a relay."""

    def __init__(
        self,
        room: TopicId,
        epoch: bytes,
        context: Context,
        config: RelayConfig,
        rooms: RoomsConfig,
        budget: Budget,
        out: Outbox,
    ) -> None:
        cells = context.store.cells
        self.room = room
        self._context = context
        self._out = out
        self._answers = Answers(room)
        self.cache = EventCache(room, context.store, context.cards, budget, config.tombstones, out)
        self.dag = _restore_dag(self.cache, context)
        pages = Pages(context.cards, rooms.page_events, rooms.page_bytes)
        self._receipts = StoredReceipts(room, context, rooms, config.receipts)
        self._chunks = StoredChunks(room, cells, config.chunk_bytes, out)
        self._mailbox = Mailbox(room, epoch, self.cache, self.dag, pages, self._receipts)
        self._followers = Followers(self._mailbox, pages)
        self._fetch = ControlFetch(room, config, context.card, lambda: self.dag.heads[:HEADS], out)
        patience = config.fetch_tries * config.fetch_timeout + rooms.relay_timeout
        self._forwarding = Forwarding(
            room, cells, self.cache, pages, context.links, patience, rooms.relay_retry, out
        )
        groups = GroupRetention(room, self.dag, self.cache, config)
        self._ingest = Ingest(
            room, epoch, context, config, rooms, self.dag, self.cache, self._fetch, groups, out
        )
        self._retention = EventRetention(
            room, self.dag, self.cache, self._chunks, groups, config.max_lifetime, out
        )
        self._own = OwnMembership(context, self.dag, self.cache, out)
        self._presence = Presence(room, context, self.dag, self.cache.usage, out)
        self.resyncs = Resyncs(
            room, self.dag, self._mailbox, self._followers, self._retention, self._presence, out
        )

    @property
    def view(self) -> View:
        """The state of the room as it is now."""
        return self.dag.view()

    @property
    def is_dropped(self) -> bool:
        """Whether the room's state no longer names this device as a relay, or has put its person out.

        While control events are lacking that the log should hold, nobody can say that.
        """
        if self.cache.lacking:
            return False
        gone = self._own.standing in (Membership.LEAVE, Membership.BAN)
        return gone or not self.view.is_relay(self._context.peer)

    def start(self, now: float) -> None:
        """Hold links to the other relays, and go on forwarding."""
        turn = self._begin_turn()
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
        """Say that we join, to these members and all other relays."""
        turn = self._begin_turn()
        before = self.cache.end
        turn.changed = True
        if self._own.standing is not Membership.JOIN:
            self._own.say_membership(Membership.JOIN, turn, contacts, self._others(), now)
        self._greet_linked(peer for peer in contacts if peer not in self._others())
        self._finish_turn(turn, now, before)

    # What peers and relays send.

    def keep_events(self, caller: Caller, message: RelaySend | RelayForward, now: float) -> list[RelayTaken]:
        """Take in events that are to be kept; returns the answer to a caller that is not linked."""
        turn = self._begin_turn()
        turn.give_answer(caller, self._answers.open_request(caller, message.request, len(message.units)))
        relay = isinstance(message, RelayForward)
        self._presence.note_seen(caller, now)
        cards = {card.person + card.device: card for card in message.cards}
        self._take_units(message.units, cards, Origin(caller, relay, message.request), turn, now)
        self._finish_turn(turn, now)
        return turn.replies

    def why_not_relay(self, caller: Caller) -> Reason | None:
        """Why somebody is not a relay of this room."""
        return None if self.view.is_relay(caller.peer) else Reason.NOT_A_RELAY

    def why_not(
        self, caller: Caller | None, asked: AskControl | Want | ChunkWant, now: float
    ) -> Reason | None:
        """Why somebody gets no answer."""
        if isinstance(asked, AskControl):
            return self._presence.why_not_visitor(caller, asked.ticket, now)
        return why_not_reader(self.view, caller, asked)

    def give_events(self, caller: Caller, want: Want, now: float) -> Given:
        """The events that a caller wants by their ids."""
        self._presence.note_seen(caller, now)
        return self._mailbox.give_events(want, self._retention.since(now))

    def give_control(self, caller: Caller | None, asked: AskControl, now: float) -> ControlPage:
        """The control events that a caller asks for."""
        if caller is not None:
            self._presence.note_seen(caller, now)
        return self._mailbox.control_page(asked, self._presence.contacts())

    def removal_page(self, caller: Caller, asked: AskControl) -> ControlPage | None:
        """For somebody who was of the room: by which event it is no longer, and what that builds on."""
        event = removal_of(self.dag, caller.person)
        return None if event is None else self._mailbox.control_page(asked, (), event)

    def handle_receipt(self, caller: Caller, receipt: RoomReceipt, now: float) -> None:
        """Keep a receipt, from its device or passed on by another member or relay, and pass it on."""
        giver = Caller(receipt.card.device_key, receipt.card.person)
        reason = why_not_reader(self.view, caller) or why_not_member(self.view, giver)
        if reason is None:
            try:
                news = self._receipts.learn(receipt)
            except RemoteError as error:
                reason = error.reason
            else:
                if news:
                    self._tell_receipt(caller, receipt)
                return
        self._out.record(Record(Kind.REJECTED, self.room, peer=caller.peer, reason=reason, note="receipt"))

    def put_chunk(self, caller: Caller, put: ChunkPut, now: float) -> ChunkTaken:
        """Keep a piece of an attachment, if it may be kept; returns the answer."""
        reason = why_not_member(self.view, caller)
        taken = (
            ChunkTaken(self.room, put.digest, reason) if reason is not None else self._chunks.put(put, now)
        )
        if taken.reason is None:
            self._retention.arm_timer(now)
        else:
            self._out.record(
                Record(Kind.REJECTED, self.room, peer=caller.peer, reason=taken.reason, note="chunk")
            )
        return taken

    def get_chunks(self, want: ChunkWant, now: float) -> list[ChunkIs]:
        """Pieces of attachments."""
        return self._chunks.get(want, self._retention.since(now))

    # Who is there.

    def handle_greet(self, caller: Caller, greet: Greet, now: float) -> bool:
        """Hear who a caller is and how far it is; returns whether it was greeted in turn."""
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
        """Forget what a peer is owed whose link is gone."""
        self._presence.handle_link_down(peer)
        self._answers.handle_link_down(peer)
        self.resyncs.handle_link_down(peer)
        self._followers.remove(peer)
        self._mailbox.handle_link_down(peer)
        self._fetch.handle_link_down(peer)
        self._forwarding.handle_link_down(peer)

    # Answers to our own questions.

    def handle_page(self, caller: Caller, page: ControlPage, now: float) -> None:
        """Take in control events that we asked for."""
        if not self._fetch.expects_answer(caller.peer, page.request):
            self._out.record(stale_answer(self.room, caller.peer, page))
            return
        turn = self._begin_turn()
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
        turn = self._begin_turn()
        self._learn_units(caller, given.units, given.cards, turn, now)
        self._fetch.handle_given(caller.peer, now)
        self._finish_turn(turn, now)
        if not self._fetch.is_asking(caller.peer):
            self._answer_waiting(caller.peer, now)

    def handle_taken(self, peer: PeerId, taken: RelayTaken) -> None:
        """Hear what another relay answers to what we forwarded."""
        if self._forwarding.expects_answer(peer, taken.request):
            self._forwarding.handle_taken(peer, taken)
        else:
            self._out.record(stale_answer(self.room, peer, taken))

    # Time.

    def fetch_again(self, now: float) -> None:
        """Ask the next peer for control events that we lack."""
        turn = self._begin_turn()
        relays = [peer for peer in self._forwarding.relays if peer in self._context.links]
        members = [peer for peer in self._presence.here if peer not in relays]
        lost = self._fetch.ask_next([*relays, *members], now)
        self._ingest.give_up(lost, turn)
        self._finish_turn(turn, now)
        for peer in self._presence.waiting:
            if not self._fetch.is_asking(peer):
                self._answer_waiting(peer, now)

    def forward_again(self, peer: PeerId) -> None:
        """Forward again to a relay that gave no answer in time, or that is to be tried again."""
        self._forwarding.try_again(peer)

    def expire_events(self, now: float) -> None:
        """Let go of what was kept long enough, and tell its authors who follow."""
        turn = self._begin_turn()
        self._retention.handle_expiry(now)
        self._finish_turn(turn, now)

    # The end.

    def leave(self, now: float) -> None:
        """Say that we leave, if we are in the room, and stop: it has other relays."""
        turn = self._begin_turn()
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
    def remains(self) -> RoomSweep:
        """What there is to let go of."""
        return RoomSweep(self.cache, self._receipts, self._chunks)

    @property
    def here(self) -> tuple[PeerId, ...]:
        """Devices of members, and relays, that have greeted and are there."""
        return tuple(self._presence.here)

    def status(self) -> RoomStatus:
        """How the room stands here, in short."""
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
        """All that is known of this room."""
        log = self._context.store.log
        return disclose_room(
            self.room, log, self.dag, self.cache, self._receipts, self._chunks.bytes, self._presence.seen
        )

    def _finish_turn(self, turn: Turn, now: float, begin_at: int | None = None) -> None:
        """Forward, push and answer what came of an input."""
        if turn.changed:
            self._apply_state(begin_at)
        self._forwarding.since = self._retention.since(now)
        if turn.forwards or turn.changed:
            self._forwarding.forward_events()
        self._followers.push_events(turn, self.cache.end)
        if (turn.changed or self._retention.groups.stale) and not self.cache.lacking:
            self._retention.groups.release_events(now)
        self._retention.arm_timer(now)
        turn.finish()

    def _apply_state(self, begin_at: int | None) -> None:
        """Do as the state of the room says that may have changed."""
        view = self.view
        before = self._forwarding.relays
        self._forwarding.set_relays(self._others())
        self._greet_linked(peer for peer in self._forwarding.relays if peer not in before)
        if begin_at is not None:
            self._forwarding.begin_at(begin_at)
        self._followers.expel(lambda caller: why_not_member(view, caller), self._out.send)
        if not self.cache.lacking:
            self._receipts.retain(frozenset(view.joined()))
        self._presence.drop_outsiders()

    def _greet_linked(self, peers: Iterable[PeerId]) -> None:
        """Greet those of these who are here."""
        links = self._context.links
        for peer in peers:
            if peer in links:
                self._out.send(peer, self._presence.own_greeting(answer=False))

    def _begin_turn(self) -> Turn:
        return Turn(self.room, self._answers, self._out)

    def _others(self) -> dict[PeerId, tuple[str, ...]]:
        """The room's other relays, and where they may be dialled."""
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
        """Take in control events that were asked for. Those from a relay of the room are not forwarded."""
        origin = Origin(caller, self.view.is_relay(caller.peer), None)
        fresh = [unit for unit in units if unit.topic != NO_TOPIC]  # all but the create event, which we have
        self._take_units(fresh, {card.person + card.device: card for card in cards}, origin, turn, now)

    def _answer_waiting(self, peer: PeerId, now: float) -> None:
        """Answer what a peer said and asked that has told all that it knows."""
        self._presence.answer_waiting(peer, now)
        self.resyncs.answer_deferred(peer, now)

    def _tell_receipt(self, caller: Caller, receipt: RoomReceipt) -> None:
        """Followers get it in a page; other relays only what came from its own device, as it is."""
        turn = self._begin_turn()
        self._followers.push_events(turn, self.cache.end)
        if not self.view.is_relay(caller.peer):
            for peer in self._forwarding.relays:
                if peer in self._context.links:
                    self._out.send(peer, receipt)
        turn.finish()


def _restore_dag(cache: EventCache, context: Context) -> ControlDag:
    """The control DAG as the log holds it. What builds on an event that is damaged is left out.

    Then we are behind, and catch up as any relay that is behind: with the first that greets.
    """
    events = cache.restore()
    dag = ControlDag(next(events), context.card_check)
    for event in events:
        if dag.missing(event.tail.control or ()):
            cache.mark_lacking(event.id)
        else:
            dag.add(event)
    return dag
