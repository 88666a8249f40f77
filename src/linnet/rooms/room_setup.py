"""The parts of one room at a member: constructed together, and read back from the store."""

from __future__ import annotations

from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from linnet.core.errors import InvalidEvent, RemoteError
from linnet.core.ids import Contact, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.causal_barriers import Barriers
from linnet.delivery.causal_graph import Dag
from linnet.delivery.config import BarrierConfig
from linnet.delivery.context import Context
from linnet.delivery.flood import Flood
from linnet.delivery.set_reconciliation import SortedIds
from linnet.event.event import Event, Verified
from linnet.identity.cards import check_dates
from linnet.machine.outbox import Outbox
from linnet.overlay.config import Overlay
from linnet.overlay.part import Overlays
from linnet.rooms.auth.control_graph import ControlDag
from linnet.rooms.auth.plain_state import PlainState
from linnet.rooms.chunks import Chunks
from linnet.rooms.config import RoomsConfig
from linnet.rooms.delivery_ledger import Ledger
from linnet.rooms.encryption.room_group import RoomGroup
from linnet.rooms.event_checks import Intake
from linnet.rooms.event_positions import Arrival, Author, Placed, Places, causes_of
from linnet.rooms.event_types import CREATE, REDACTION, create_of, redaction_of
from linnet.rooms.guests import Guests
from linnet.rooms.head_sync import HeadSync
from linnet.rooms.member_links import Neighbors
from linnet.rooms.receipts import Receipts
from linnet.rooms.relay_client.evidence import Evidence
from linnet.rooms.relay_client.relay_client import RelayClient
from linnet.rooms.relay_client.roster import Dismissals, kept_seed
from linnet.rooms.room_store import RoomMemory
from linnet.rooms.room_subscriptions import RoomSubscriptions
from linnet.trace.records import Kind, Record


class Setting(Struct, dict=True):
    """The setting that all rooms of a node share."""

    context: Context
    config: RoomsConfig
    out: Outbox
    overlays: Overlays
    trackers: tuple[Contact, ...]
    listens: tuple[str, ...]
    overlay: Overlay = Overlay.TRACKER
    """The overlay that assigns neighbors: a tracker's in large rooms, or a ring that finds members."""
    only: tuple[PeerId, ...] | None = None
    """The only peers that this node has links to: its proxies. It then dials no members, and uses only
    those of a room's relays that are its proxies. None: it may link to anyone."""
    nearby: dict[TopicId, None] = {}
    """On the edge, the rooms that are allowed on local networks, in addition to their relays."""

    def __post_init__(self) -> None:
        if self.only is not None:
            self.overlay = Overlay.TRACKER

    def is_kept_from(self, peer: PeerId, room: TopicId) -> bool:
        """Return whether messages about a room are not allowed with a peer: on the edge, with a peer on a
        local network, unless the room is allowed there."""
        return self.only is not None and peer not in self.only and room not in self.nearby

    def is_out_of_reach(self, peer: PeerId) -> bool:
        """Return whether this node may not link to a peer: it is on the edge, and the peer is no proxy."""
        return self.only is not None and peer not in self.only

    @cached_property
    def relay_seed(self) -> int:
        """The seed of the choice of relays, drawn with the first room and stored."""
        return kept_seed(self.config.relay_seed, self.context.store.cells, self.context.rng)


class Parts:
    """The parts of one room. Each knows only those that it needs."""

    def __init__(self, create: Verified, setting: Setting) -> None:
        context, config, out = setting.context, setting.config, setting.out
        room = self.id = TopicId(create.head)
        self.context = context
        self.config = config
        self.out = out
        self.listens = setting.listens
        cells = context.store.cells
        self._redactions: dict[EventId, list[Event]] = {}
        """Redactions by the event that they redact, which is not here yet."""
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
        places = Places(context, self.dag, self.ids, self.plain, self.memory)
        self.intake = Intake(self.control, places, order, config, out)
        self.author = Author(context, self.control, self.dag, places.claimed)
        self.guests = Guests(self.control, context.cards, context.card_check)
        self.flood = Flood(room)
        self.sync = HeadSync(room, context.peer, config, self.control, self.dag, self.ids, out)
        content = create_of(create.events[0])
        self.group: RoomGroup | None = None
        """The group that holds the room's keys; None if it is not encrypted."""
        if content.newcomers is not None:
            self.group = RoomGroup(context, self.control, self.memory, content.newcomers, out)
        self.subscriptions = RoomSubscriptions(room, context, self.memory, out, self.group)
        self.ledger = Ledger(room, cells, out, config.ledger_events)
        self.receipts = Receipts(room, context, config, out)
        mesh = config if setting.only is None else replace(config, mesh=0)
        self.neighbors = Neighbors(
            room, context, mesh, setting.overlays, out, setting.trackers, overlay=setting.overlay
        )
        if setting.only is not None:
            self.neighbors.nearby = setting.nearby
        self.evidence = Evidence(room, config, cells, out)
        self.relays = RelayClient(
            room,
            context.peer,
            config,
            cells,
            setting.relay_seed,
            context.links,
            out,
            setting.only,
            self.evidence,
        )
        self.dismissals = Dismissals(room, cells, config.leave_patience, out, setting.only)
        self.chunks = Chunks(room, cells, config, lambda: self.sources, out)

    def recall(self, now: float) -> list[Placed]:
        """Read the room back from the store; return the events that take their places only now."""
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
                self.author.note(verified.events[0])
                held.append(verified)
        placed: list[Placed] = []
        for damage in self.memory.damaged.values():
            self.author.note_damage(damage)
        for verified in held:
            placed += self.intake.take(Arrival(verified, None, 0, 0), now)
        self.intake.order.ask_again(self.memory.damaged, now)
        if held:
            note = "waits for control events that are damaged"
            lost = Record(Kind.DROPPED, self.id, events=len(held), reason=Reason.DAMAGED, note=note)
            self.out.record(lost)
        for verified in self.memory.early():
            event = verified.events[0]
            self.author.note(event)
            placed += self.intake.recall_early(verified, now)
        return placed

    def silenced(self, now: float) -> tuple[Reason, str] | None:
        """Return why this device can publish nothing here for now, or None.

        Either the part of our log that it has to build on is damaged. Or our clock is so far ahead that
        nobody would accept our event, nor any later one, since it builds on this one.
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
        """Note an event of the log in our chain, the order of history, and the redactions."""
        self.author.note(event)
        self.subscriptions.timeline.add(event, causes_of(event))
        if event.kind == REDACTION and self.memory.is_shown(event.id):
            self._redact(event)
        for redaction in self._redactions.pop(event.id, ()):
            self._take_back(event, redaction)

    def _redact(self, event: Event) -> None:
        """Apply a redaction; if its event is not here, it is applied when the event comes."""
        text = event.body if self.group is None else self.group.messages.readable(event)
        try:
            target = redaction_of(text).event
        except InvalidEvent:
            return  # It names no event, so it redacts none.
        known = self.memory.event(target) if self.dag.knows(target) else None
        if known is None:
            self._redactions.setdefault(target, []).append(event)
        else:
            self._take_back(known, event)

    def _take_back(self, known: Event, event: Event) -> None:
        """Redact an event if its author, or a person with the level, wants that (Matrix, redactions)."""
        if known.kind == CREATE:
            return
        view = self.control.view(self.control.state_at(event.tail.control or ()))
        if known.author == event.author or view.level_of(event.author) >= view.levels.redact:
            self.subscriptions.redacted[known.id] = event.author
            if self.group is not None:
                self.group.messages.forget(known)

    @property
    def sources(self) -> tuple[PeerId, ...]:
        """The peers that can be asked for missing events."""
        return (*self.guests.members, *self.relays.up)

    def _precedes(self, event: EventId, other: EventId) -> bool:
        """Return whether one event is in the causal past of another; False unless both have places."""
        if self.dag.knows(event) and self.dag.knows(other):
            return self.dag.precedes(event, other)
        return False
