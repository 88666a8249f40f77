"""What a room at a member is made of, put together and read back from the store."""

from __future__ import annotations

from functools import cached_property

from msgspec.structs import replace

from linnet.core.errors import InvalidEvent, RemoteError
from linnet.core.ids import Contact, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.barriers import Barriers
from linnet.delivery.config import BarrierConfig
from linnet.delivery.context import Context
from linnet.delivery.dag import Dag
from linnet.delivery.flood import Flood
from linnet.delivery.sorted_ids import SortedIds
from linnet.event.event import Event, Verified
from linnet.identity.cards import check_dates
from linnet.machine.outbox import Outbox
from linnet.overlay.config import Overlay
from linnet.overlay.overlays import Overlays
from linnet.rooms.access.control_dag import ControlDag
from linnet.rooms.access.plain import PlainState
from linnet.rooms.arrival import Arrival, Placed
from linnet.rooms.chunks import Chunks
from linnet.rooms.config import RoomsConfig
from linnet.rooms.content import CREATE, REDACTION, create_of, redaction_of
from linnet.rooms.delivery_ledger import Ledger
from linnet.rooms.encryption.secrecy import Secrecy
from linnet.rooms.event_builder import Author, causes_of
from linnet.rooms.event_checks import Intake
from linnet.rooms.guests import Guests
from linnet.rooms.head_sync import Sync
from linnet.rooms.member_links import Neighbors
from linnet.rooms.receipts import Receipts
from linnet.rooms.relay_choice import kept_seed
from linnet.rooms.relay_use import RelayUse
from linnet.rooms.room_store import RoomMemory
from linnet.rooms.serving import Serving
from linnet.rooms.subscriptions import Readers
from linnet.rooms.timeline import Timeline
from linnet.trace.records import Kind, Record


class Setting:
    """What all rooms of a node share, beside the context that they share with everything else."""

    def __init__(
        self,
        context: Context,
        config: RoomsConfig,
        out: Outbox,
        overlays: Overlays,
        trackers: tuple[Contact, ...],
        listens: tuple[str, ...],
        overlay: Overlay = Overlay.TRACKER,
        only: tuple[PeerId, ...] | None = None,
    ) -> None:
        self.context = context
        self.config = config
        self.out = out
        self.overlays = overlays
        self.overlay = overlay if only is None else Overlay.TRACKER
        """Who says who the neighbours are: a tracker in large rooms, or a ring, which also finds members."""
        self.trackers = trackers
        self.listens = listens
        self.nearby: dict[TopicId, None] = {}
        """On the edge, the rooms that are spoken of on local networks, beside their relays."""
        self.only = only
        """The peers to whom this node has links at all: its proxies. Then members are not dialled, and of a
        room's relays those are used that are among them. None: to anyone."""

    def is_kept_from(self, peer: PeerId, room: TopicId) -> bool:
        """Whether a room is not to be spoken of with a peer: on the edge, with those on a local network where
        it is not allowed."""
        return self.only is not None and peer not in self.only and room not in self.nearby

    @cached_property
    def relay_seed(self) -> int:
        """What the choice of relays is drawn from; kept from the first room on."""
        return kept_seed(self.config.relay_seed, self.context.store.cells, self.context.rng)


class Parts:
    """The parts of one room. They know each other as far as they must, and nothing of the whole."""

    def __init__(self, create: Verified, setting: Setting) -> None:
        context, config, out = setting.context, setting.config, setting.out
        room = self.id = TopicId(create.head)
        self.context = context
        self.config = config
        self.out = out
        self.listens = setting.listens
        cells = context.store.cells
        self._redactions: dict[EventId, list[Event]] = {}
        """Redactions of events that are not here."""
        self.control = ControlDag(create.events[0], context.card_check)
        self.memory = RoomMemory(room, context.store, config.rejected)
        self.dag = Dag()
        self.ids = SortedIds()
        self.plain = PlainState(self.control, self._precedes)
        barriers = BarrierConfig(
            delay=config.recovery_delay,
            timeout=config.recovery_timeout,
            tries=config.recovery_tries,
            events=config.waiting_events,
            bytes=config.waiting_bytes,
            ids=config.page_events,
        )
        order: Barriers[Arrival] = Barriers(room, self.dag, barriers, out)
        self.intake = Intake(
            room, context, config, self.control, self.dag, self.ids, self.plain, self.memory, order, out
        )
        self.author = Author(context, self.control, self.dag, self.intake.places.claimed)
        self.guests = Guests(self.control, context.cards, context.card_check)
        self.flood = Flood(room)
        self.serving = Serving(room, self.memory, context.cards, self.control, self.dag, config)
        self.sync = Sync(room, context.peer, config, self.control, self.dag, self.ids, out)
        content = create_of(create.events[0])
        self.secrecy: Secrecy | None = None
        """The keys of the room; None if it is not encrypted."""
        if content.newcomers is not None:
            self.secrecy = Secrecy(room, context, self.control, self.memory, content.newcomers, out)
        self.timeline = Timeline()
        self.readers = Readers(room, context, self.memory, out, self.secrecy, self.timeline)
        self.ledger = Ledger(room, cells, out, config.ledger_events)
        self.receipts = Receipts(room, context, config, out)
        mesh = config if setting.only is None else replace(config, mesh=0)
        self.neighbors = Neighbors(
            room, context, mesh, setting.overlays, out, setting.trackers, overlay=setting.overlay
        )
        if setting.only is not None:
            self.neighbors.nearby = setting.nearby
        self.relays = RelayUse(
            room, context.peer, config, cells, setting.relay_seed, context.links, out, setting.only
        )
        self.chunks = Chunks(room, cells, config, out)

    def load(self, now: float) -> list[Placed]:
        """Read the room back from the store; events that have their places only now."""
        for refused, height in self.memory.rejected.items():
            self.dag.settle(refused, height)
            self.control.reject(refused)
        for gone in self.memory.expired:
            self.dag.settle(gone, 0)
        held: list[Verified] = []
        for verified in self.memory.events():
            if self.intake.recall(verified):
                self.note_event(verified.events[0])
            else:
                self.author.saw(verified.events[0])
                held.append(verified)
        placed: list[Placed] = []
        for damage in self.memory.damaged.values():
            self.author.lost(damage)
        for verified in held:
            placed += self.intake.take(Arrival(verified, None, 0, 0), now)
        self.intake.order.ask_again(self.memory.damaged, now)
        if held:
            note = "waits for control events that are damaged"
            lost = Record(Kind.DROPPED, self.id, events=len(held), reason=Reason.DAMAGED, note=note)
            self.out.record(lost)
        for verified in self.memory.early():
            event = verified.events[0]
            self.author.saw(event)
            placed += self.intake.recall_early(verified, now)
        return placed

    def silenced(self, now: float) -> tuple[Reason, str] | None:
        """Why nothing can be said here for now; None: it can.

        Part of our log is damaged that it has to build on. Or our clock is so far ahead that nobody would
        take what we say, and then nothing that we say after it, which builds on it.
        """
        if self.memory.held or self.author.prev in self.memory.damaged:
            detail = "part of the room's log is damaged here; others of the room are asked for it: try later"
            return Reason.DAMAGED, detail
        card = self.context.card
        try:
            check_dates(card, max(now, card.not_before))
        except RemoteError as error:
            return error.reason, f"by our clock {error.detail}: set the clock right, or renew the card"
        return None

    def note_event(self, event: Event) -> None:
        """Remember what an event that has its place means for those that follow."""
        self.author.saw(event)
        self.timeline.add(event, causes_of(event))
        if event.kind == REDACTION and self.memory.is_shown(event.id):
            self._redact(event)
        for redaction in self._redactions.pop(event.id, ()):
            self._take_back(event, redaction)

    def _redact(self, event: Event) -> None:
        """Take an event back, or once it comes: it may have been gone, and be back as history."""
        text = event.body if self.secrecy is None else self.secrecy.opening.readable(event)
        try:
            target = redaction_of(text).event
        except InvalidEvent:
            return  # It names nothing, so it takes nothing back.
        known = self.memory.event(target) if self.dag.knows(target) else None
        if known is None:
            self._redactions.setdefault(target, []).append(event)
        else:
            self._take_back(known, event)

    def _take_back(self, known: Event, event: Event) -> None:
        """If its author or someone with the level says so (Matrix specification, redactions)."""
        if known.kind == CREATE:
            return
        view = self.control.view(self.control.state_at(event.tail.control or ()))
        if known.author == event.author or view.level_of(event.author) >= view.levels.redact:
            self.readers.redacted[known.id] = event.author
            if self.secrecy is not None:
                self.secrecy.opening.forget(known)

    @property
    def sources(self) -> tuple[PeerId, ...]:
        """Who can be asked for what is missing."""
        return (*self.guests.members, *self.relays.up)

    def _precedes(self, event: EventId, other: EventId) -> bool:
        """Causal order; nothing is known to precede a control event that has no place yet."""
        if self.dag.knows(event) and self.dag.knows(other):
            return self.dag.precedes(event, other)
        return False
