"""One room that this node serves as a relay: everything that is said about it comes through here."""

from __future__ import annotations

from collections.abc import Iterable

from linnet.core.effects import Send
from linnet.core.errors import RemoteError
from linnet.core.ids import PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.causal_messages import Given, Want
from linnet.delivery.context import Context
from linnet.event.event import Unverified
from linnet.identity.cards import Card
from linnet.rooms.access.control_dag import NO_TOPIC, ControlDag
from linnet.rooms.access.view import View
from linnet.rooms.access.visiting import removal_of
from linnet.rooms.config import RelayConfig, RoomsConfig
from linnet.rooms.content import Membership
from linnet.rooms.effects import RoomEffect
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
from linnet.rooms.relay.answers import Answers
from linnet.rooms.relay.cache import Cache
from linnet.rooms.relay.chunks import Chunks
from linnet.rooms.relay.door import Caller, why_not_member, why_not_reader
from linnet.rooms.relay.fetching import FetchEffect, Fetching
from linnet.rooms.relay.following import Following
from linnet.rooms.relay.forwarding import Forwarding
from linnet.rooms.relay.group_keeping import GroupKeeping
from linnet.rooms.relay.intake import Intake
from linnet.rooms.relay.knowledge import report_on
from linnet.rooms.relay.membership import OwnMembership
from linnet.rooms.relay.paging import Pages
from linnet.rooms.relay.parking import Origin
from linnet.rooms.relay.presence import Presence
from linnet.rooms.relay.receipts import KeptReceipts
from linnet.rooms.relay.refusals import stale
from linnet.rooms.relay.resyncs import Resyncs
from linnet.rooms.relay.retention import Keeping
from linnet.rooms.relay.serving import HEADS, Serving
from linnet.rooms.relay.sweeping import Sweeping
from linnet.rooms.relay.turn import Turn
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
    ) -> None:
        cells = context.store.cells
        self.room = room
        self._context = context
        self._answers = Answers(room)
        self.cache = Cache(room, context.store, context.cards, budget, config.tombstones)
        self.dag = _restored(self.cache, context)
        pages = Pages(context.cards, rooms.page_events, rooms.page_bytes)
        self._receipts = KeptReceipts(room, context, rooms, config.receipts)
        self._chunks = Chunks(room, cells, config.chunk_bytes)
        self._serving = Serving(room, epoch, self.cache, self.dag, pages, self._receipts)
        self._following = Following(self._serving, pages)
        self._fetching = Fetching(room, config, context.card, lambda: self.dag.heads[:HEADS])
        patience = config.fetch_tries * config.fetch_timeout + rooms.relay_timeout
        self._forwarding = Forwarding(
            room, cells, self.cache, pages, context.links, patience, rooms.relay_retry
        )
        groups = GroupKeeping(room, self.dag, self.cache, config)
        self._intake = Intake(
            room, epoch, context, config, rooms, self.dag, self.cache, self._fetching, groups
        )
        self._keeping = Keeping(room, self.dag, self.cache, self._chunks, groups, config.max_lifetime)
        self._own = OwnMembership(context, self.dag, self.cache)
        self._presence = Presence(room, context, self.dag, self.cache.usage)
        self.resyncs = Resyncs(room, self.dag, self._serving, self._following, self._keeping, self._presence)

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

    def start(self, now: float) -> list[RoomEffect]:
        """Hold links to the other relays, and go on forwarding."""
        turn = self._turn()
        turn.changed = True
        turn.forwards = True
        lacking = len(self.cache.lacking)
        if lacking:
            note = "control events, until a member or relay has given them again"
            turn.effects.append(
                Record(Kind.DROPPED, self.room, events=lacking, reason=Reason.DAMAGED, note=note)
            )
        return self._finish(turn, now)

    def join(self, contacts: tuple[PeerId, ...], now: float) -> list[RoomEffect]:
        """Say that we join, to these members and all other relays."""
        turn = self._turn()
        before = self.cache.end
        turn.changed = True
        if self._own.standing is not Membership.JOIN:
            self._own.say(Membership.JOIN, turn, contacts, self._others(), now)
        turn.effects += self._greet(peer for peer in contacts if peer not in self._others())
        return self._finish(turn, now, before)

    # What peers and relays send.

    def send(self, caller: Caller, message: RelaySend | RelayForward, now: float) -> Turn:
        """Events to be kept; the caller finishes the turn."""
        turn = self._turn()
        turn.answer(caller, self._answers.begin(caller, message.request, len(message.units)))
        relay = isinstance(message, RelayForward)
        self._presence.saw(caller, now)
        cards = {card.person + card.device: card for card in message.cards}
        self._take(message.units, cards, Origin(caller, relay, message.request), turn, now)
        return turn

    def finish(self, turn: Turn, now: float) -> list[RoomEffect]:
        """End a turn: forward, push, answer."""
        return self._finish(turn, now)

    def may_forward(self, caller: Caller) -> Reason | None:
        """Why somebody is not a relay of this room."""
        return None if self.view.is_relay(caller.peer) else Reason.NOT_A_RELAY

    def why_not(
        self, caller: Caller | None, asked: AskControl | Want | ChunkWant, now: float
    ) -> Reason | None:
        """Why somebody gets no answer."""
        if isinstance(asked, AskControl):
            return self._presence.why_not_visitor(caller, asked.ticket, now)
        return why_not_reader(self.view, caller, asked)

    def want(self, caller: Caller, want: Want, now: float) -> Given:
        """Single events."""
        self._presence.saw(caller, now)
        return self._serving.want(want, self._keeping.since(now))

    def control(self, caller: Caller | None, asked: AskControl, now: float) -> ControlPage:
        """The control DAG."""
        if caller is not None:
            self._presence.saw(caller, now)
        return self._serving.control(asked, self._presence.contacts())

    def removal(self, caller: Caller, asked: AskControl) -> ControlPage | None:
        """For somebody who was of the room: by which event it is no longer, and what that builds on."""
        event = removal_of(self.dag, caller.person)
        return None if event is None else self._serving.control(asked, (), event)

    def receipt(self, caller: Caller, receipt: RoomReceipt, now: float) -> list[RoomEffect]:
        """A receipt, from its device or passed on by another member or relay."""
        giver = Caller(receipt.card.device_key, receipt.card.person)
        reason = why_not_reader(self.view, caller) or why_not_member(self.view, giver)
        if reason is None:
            try:
                news = self._receipts.learn(receipt)
            except RemoteError as error:
                reason = error.reason
            else:
                return self._tell_receipt(caller, receipt) if news else []
        return [Record(Kind.REJECTED, self.room, peer=caller.peer, reason=reason, note="receipt")]

    def put_chunk(self, caller: Caller, put: ChunkPut, now: float) -> tuple[ChunkTaken, list[RoomEffect]]:
        """A piece of an attachment."""
        reason = why_not_member(self.view, caller)
        taken = (
            ChunkTaken(self.room, put.digest, reason) if reason is not None else self._chunks.put(put, now)
        )
        if taken.reason is None:
            return taken, [*self._keeping.arm(now)]
        return taken, [Record(Kind.REJECTED, self.room, peer=caller.peer, reason=taken.reason, note="chunk")]

    def get_chunks(self, want: ChunkWant, now: float) -> list[ChunkIs]:
        """Pieces of attachments."""
        return self._chunks.get(want, self._keeping.since(now))

    # Who is there.

    def greet(self, caller: Caller, greet: Greet, now: float) -> list[RoomEffect]:
        """Somebody says who it is and how far it is."""
        missing = self.dag.missing(greet.control)
        asked: list[FetchEffect] = []
        if missing:
            peer, fetching = caller.peer, self._fetching
            member = why_not_reader(self.view, caller) is None
            asked = fetching.compare(peer, now) if member else fetching.ask_stranger(peer, missing, now)
        answer = self._presence.greeted(caller, greet, bool(missing), now)
        return [*asked, *answer, *self._forwarding.up(caller.peer)]

    def up(self, peer: PeerId) -> list[RoomEffect]:
        """A link is open; other relays are greeted, members greet first."""
        if peer not in self._forwarding.relays:
            return []
        return [Send(peer, self._presence.greeting(answer=False)), *self._forwarding.up(peer)]

    def down(self, peer: PeerId) -> list[RoomEffect]:
        """A link is gone."""
        self._presence.down(peer)
        self._answers.down(peer)
        self.resyncs.down(peer)
        self._following.end(peer)
        self._serving.down(peer)
        self._fetching.down(peer)
        return [*self._forwarding.down(peer)]

    # Answers to our own questions.

    def page(self, caller: Caller, page: ControlPage, now: float) -> list[RoomEffect]:
        """Control events that we asked for."""
        if not self._fetching.expects(caller.peer, page.request):
            return [stale(self.room, caller.peer, page)]
        turn = self._turn()
        before = len(self.dag)
        self._learn(caller, page.units, page.cards, turn, now)
        effects, done = self._fetching.page(caller.peer, page, len(self.dag) > before, now)
        turn.effects += effects
        ended = self._finish(turn, now)
        return [*ended, *self._settled(caller.peer, now)] if done else ended

    def given(self, caller: Caller, given: Given, now: float) -> list[RoomEffect]:
        """Single events that we asked for."""
        if not self._fetching.expects(caller.peer, given.request):
            return [stale(self.room, caller.peer, given)]
        turn = self._turn()
        self._learn(caller, given.units, given.cards, turn, now)
        turn.effects += self._fetching.given(caller.peer, given, now)
        ended = self._finish(turn, now)
        return ended if self._fetching.is_asking(caller.peer) else [*ended, *self._settled(caller.peer, now)]

    def taken(self, peer: PeerId, taken: RelayTaken) -> list[RoomEffect]:
        """Another relay answers what we forwarded."""
        if not self._forwarding.expects(peer, taken.request):
            return [stale(self.room, peer, taken)]
        return [*self._forwarding.taken(peer, taken)]

    # Time.

    def fetch_again(self, now: float) -> list[RoomEffect]:
        """It is time to ask the next one for control events that we lack."""
        turn = self._turn()
        relays = [peer for peer in self._forwarding.relays if peer in self._context.links]
        members = [peer for peer in self._presence.here if peer not in relays]
        effects, lost = self._fetching.fired([*relays, *members], now)
        turn.effects += effects
        self._intake.give_up(lost, turn)
        ended = self._finish(turn, now)
        for peer in self._presence.waiting:
            if not self._fetching.is_asking(peer):
                ended += self._settled(peer, now)
        return ended

    def forward_again(self, peer: PeerId) -> list[RoomEffect]:
        """No answer in time, or it is time to try again."""
        return [*self._forwarding.fired(peer)]

    def expire(self, now: float) -> list[RoomEffect]:
        """Let go what was kept long enough, and tell its authors who follow."""
        turn = self._turn()
        turn.effects += self._keeping.fired(now)
        return self._finish(turn, now)

    # The end.

    def leave(self, now: float) -> list[RoomEffect]:
        """The room has other relays: say that we leave, if we are in it, and stop."""
        turn = self._turn()
        self._intake.stop(turn, Reason.NOT_A_RELAY)
        turn.promises += self._following.expel(lambda _: Reason.NOT_A_RELAY)
        if self._own.standing in (Membership.JOIN, Membership.INVITE):
            members, relays = self._presence.here, self._forwarding.relays
            self._own.say(Membership.LEAVE, turn, members, relays, now)
        turn.effects += self._fetching.stop()
        turn.effects += self._forwarding.stop()
        turn.effects += self._keeping.stop()
        return turn.all()

    @property
    def remains(self) -> Sweeping:
        """What there is to let go of."""
        return Sweeping(self.cache, self._receipts, self._chunks)

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
            self._intake.waiting,
            len(self._fetching.sought),
            self._intake.soft_failed,
            self._intake.rejected,
            0,
            self.view.is_encrypted,
        )

    def report(self) -> RelayRoomReport:
        """All that is known of this room."""
        log = self._context.store.log
        return report_on(
            self.room, log, self.dag, self.cache, self._receipts, self._chunks.bytes, self._presence.seen
        )

    def _finish(self, turn: Turn, now: float, begin_at: int | None = None) -> list[RoomEffect]:
        if turn.changed:
            turn.effects += self._state_changed(begin_at)
        self._forwarding.since = self._keeping.since(now)
        if turn.forwards or turn.changed:
            turn.effects += self._forwarding.pump()
        turn.promises += self._following.push(turn.fresh, self.cache.end)
        if (turn.changed or self._keeping.groups.stale) and not self.cache.lacking:
            turn.effects += self._keeping.groups.release(now)
        turn.effects += self._keeping.arm(now)
        return turn.all()

    def _state_changed(self, begin_at: int | None) -> list[RoomEffect]:
        view = self.view
        before = self._forwarding.relays
        effects: list[RoomEffect] = [*self._forwarding.targets(self._others())]
        effects += self._greet(peer for peer in self._forwarding.relays if peer not in before)
        if begin_at is not None:
            self._forwarding.begin_at(begin_at)
        effects += self._following.expel(lambda caller: why_not_member(view, caller))
        if not self.cache.lacking:
            self._receipts.retain(frozenset(view.joined()))
        self._presence.changed()
        return effects

    def _greet(self, peers: Iterable[PeerId]) -> list[RoomEffect]:
        """Greet those of these who are here."""
        links = self._context.links
        return [Send(peer, self._presence.greeting(answer=False)) for peer in peers if peer in links]

    def _turn(self) -> Turn:
        return Turn(self.room, self._answers)

    def _others(self) -> dict[PeerId, tuple[str, ...]]:
        """The room's other relays, and where they may be dialled."""
        return {peer: relay.hints for peer, relay in self.view.relays() if peer != self._context.peer}

    def _take(
        self, units: Iterable[Unverified], cards: dict[bytes, Card], origin: Origin, turn: Turn, now: float
    ) -> None:
        for unit in units:
            self._intake.take(unit, cards, origin, turn, now)

    def _learn(
        self,
        caller: Caller,
        units: tuple[Unverified, ...],
        cards: tuple[Card, ...],
        turn: Turn,
        now: float,
    ) -> None:
        """Control events that were asked for. Whose link they came by decides if they are forwarded."""
        origin = Origin(caller, self.view.is_relay(caller.peer), None)
        fresh = [unit for unit in units if unit.topic != NO_TOPIC]  # all but the create event, which we have
        self._take(fresh, {card.person + card.device: card for card in cards}, origin, turn, now)

    def _settled(self, peer: PeerId, now: float) -> list[RoomEffect]:
        """A peer has told all that it knows: who waited for that is answered."""
        return [*self._presence.settled(peer, now), *self.resyncs.settled(peer, now)]

    def _tell_receipt(self, caller: Caller, receipt: RoomReceipt) -> list[RoomEffect]:
        """Followers get it in a page; other relays only what came from its own device, as it is."""
        turn = self._turn()
        turn.promises += self._following.push([], self.cache.end)
        if not self.view.is_relay(caller.peer):
            for peer in self._forwarding.relays:
                if peer in self._context.links:
                    turn.effects.append(Send(peer, receipt))
        return turn.all()


def _restored(cache: Cache, context: Context) -> ControlDag:
    """The control DAG as the log holds it. What builds on an event that is damaged is left out.

    Then we are behind, and catch up as any relay that is behind: with the first that greets.
    """
    events = cache.restore()
    dag = ControlDag(next(events), context.card_check)
    for event in events:
        if dag.missing(event.tail.control or ()):
            cache.wait(event.id)
        else:
            dag.add(event)
    return dag
