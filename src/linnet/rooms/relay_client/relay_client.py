"""Uses the relays of one room at a member: selects them, reads and uploads, and replaces those that fail.

Relays store events for offline members; online members are reached without them. So a relay that fails is
replaced by the next automatically, a failure of all relays does not disturb the online members, and the
first relay that answers is used again (Schichtholz 2024, requirement "Smooth Relay Failure"). A relay that
is given up for a better one is read until the better one has answered.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import TypeAlias

import msgspec
from msgspec import Struct

from linnet.core.errors import InvalidEvent
from linnet.core.ids import Contact, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.event.event import Unverified
from linnet.event.signing import recall_unit, unit_head
from linnet.machine.outbox import Outbox
from linnet.rooms.commands import RelayStatus
from linnet.rooms.config import REFUSALS, RoomsConfig, pause_after
from linnet.rooms.event_types import GROUP
from linnet.rooms.messages import RelayCursor, RelayInfo, RelayTaken, ResyncPage, RoomTimer
from linnet.rooms.relay_client.census import PATIENCE, RelayCensus
from linnet.rooms.relay_client.evidence import Evidence, FaultFound, SpreadFault
from linnet.rooms.relay_client.relay_session import (
    Behind,
    Forgot,
    GiveMissing,
    GiveUnsent,
    Kept,
    NotKept,
    Page,
    Parcel,
    RelayReading,
    RelayUpload,
)
from linnet.rooms.relay_client.roster import RelaySelection
from linnet.trace.records import Kind, Record

NO_PROXY = "no relay of this room is a proxy of ours: name one of them there"
_BY_STATE = (
    Reason.UNKNOWN_ROOM,
    Reason.NOT_A_MEMBER,
    Reason.NOT_A_RELAY,
    Reason.BANNED,
    Reason.NOT_INVITED,
)
"""Refusals that follow from the room's state, as the relay knew it."""

_SHOWS_WHY = (Reason.BANNED, Reason.NOT_A_MEMBER, Reason.NOT_INVITED)
"""Refusals that tell us we were removed: we ask the relay for the event that did it, over this link."""

_HINTS = 8
"""The most addresses of a relay that are tried: as many as a contact has."""


RelayNotice: TypeAlias = (
    Page | GiveUnsent | GiveMissing | Behind | Kept | NotKept | Forgot | FaultFound | SpreadFault
)
"""Notices of relays in use to their room, which acts on them in `Room.settle`, once the handler is done."""


class RotationDue(RoomTimer, frozen=True, gc=False):
    """Timer: the turn of a room's relays in use is over."""


class RelayChoiceDue(RoomTimer, frozen=True, gc=False):
    """Timer: a failed relay of a room may be tried again."""


class RelayLinkDue(RoomTimer, frozen=True, gc=False):
    """Timer: the link to a relay in use has been down long enough to pass the relay over."""

    relay: PeerId


class CensusDue(RoomTimer, frozen=True, gc=False):
    """Timer: nobody has asked for a while how far the comparison of two relays is."""


class LingerDue(RoomTimer, frozen=True, gc=False):
    """Timer: a relay that refused us has had time to show why."""

    relay: PeerId


class _Relay(Struct):
    """One relay of the room, used or not."""

    hints: tuple[str, ...]
    reading: RelayReading
    sending: RelayUpload
    retry_at: float | None = None
    """When it may be tried again, if it has failed."""
    refusals: int = 0
    """How often it refused us in a row over an open link."""
    failure: Reason | None = None
    rtt: float | None = None
    load: float | None = None
    silenced: int = 0
    """The mask of the control events that are silenced as far as it knows."""


class RelayClient:
    """Uses the relays of one room at one member; it tells the room by `RelayNotice`s.

    `links` are the peers to which a link is open; it is only read.
    """

    def __init__(
        self,
        room: TopicId,
        ours: PeerId,
        config: RoomsConfig,
        cells: Cells,
        seed: int,
        links: Container[PeerId],
        out: Outbox,
        only: Container[PeerId] | None = None,
        evidence: Evidence | None = None,
    ) -> None:
        self._room = room
        self._out = out
        self._ours = ours
        self._config = config
        self._cells = cells
        self._links = links
        self._only = only
        """The peers to which we may have links, or None for any; other relays are ignored."""
        self._is_told = False
        self._evidence = Evidence(room, config, cells, out) if evidence is None else evidence
        self._chooser = RelaySelection(room, config.relay_choice, seed, config.relay_rotate)
        self._census: RelayCensus | None = None
        """The comparison of two relays, which are then both in use."""
        self._relays: dict[PeerId, _Relay] = {}
        self._used: dict[PeerId, None] = {}
        self._lingering: dict[PeerId, None] = {}
        """Relays that refused us, whose link is kept until they have shown why."""
        self._purpose = f"relay {room.hex()[:16]}"

    @property
    def chosen(self) -> tuple[PeerId, ...]:
        """Relays in use, whether their link is open or not."""
        return tuple(self._used)

    @property
    def up(self) -> tuple[PeerId, ...]:
        """Relays in use to which a link is open."""
        return tuple(peer for peer in self._used if peer in self._links)

    def takes(self, peer: PeerId, event: EventId) -> bool:
        """Return whether this relay has not refused an event; refused ones are not sent there again."""
        relay = self._relays.get(peer)
        return relay is not None and relay.sending.takes(event)

    def cursor(self, peer: PeerId) -> RelayCursor | None:
        """Return the durable cursor of a relay; None if it was never read."""
        relay = self._relays.get(peer)
        return None if relay is None else relay.reading.cursor

    def status(self) -> tuple[RelayStatus, ...]:
        """Return the status of every relay of the room, as this member sees it."""
        return tuple(
            RelayStatus(
                peer,
                relay.hints,
                peer in self._links,
                peer in self._used,
                relay.rtt,
                relay.load,
                relay.failure,
                *self._standing(peer),
            )
            for peer, relay in self._relays.items()
        )

    def _standing(self, peer: PeerId) -> tuple[bool, int, Reason | None, EventId | None, float | None]:
        evidence = self._evidence
        fault = evidence.fault_of(peer)
        proved = (None, None, None) if fault is None else (fault.reason, fault.event, fault.at)
        return (evidence.signs(peer), evidence.times_anew(peer), *proved)

    # The choice of relays.

    def set_relays(self, contacts: Iterable[Contact], now: float) -> None:
        """Replace the known relays by those that the state names, and choose among them."""
        others = {contact.peer: contact.hints for contact in contacts if contact.peer != self._ours}
        named = {peer: hints for peer, hints in others.items() if self._only is None or peer in self._only}
        if self._only is not None and not named and not self._is_told:
            self._out.record(Record(Kind.CONTROL, self._room, reason=Reason.NO_STORAGE, note=NO_PROXY))
        self._is_told = not named
        for peer in [peer for peer in self._relays if peer not in named]:
            self._give_up(peer)
            self.let_go(peer)
            del self._relays[peer]
        had_none = not self._relays
        for peer, hints in named.items():
            known = self._relays.get(peer)
            if known is None:
                self._relays[peer] = self._new_relay(peer, hints)
            elif hints != known.hints:
                known.hints = hints
                if peer in self._used and peer not in self._links:
                    self._out.hold(peer, hints, self._purpose)
        for relay in self._relays.values():
            if relay.failure in _BY_STATE:
                # The state has changed, as when a new relay has joined.
                relay.retry_at, relay.refusals = None, 0
        if had_none and self._relays:
            self._set_rotation(now)
        self.choose(now)

    def _new_relay(self, peer: PeerId, hints: tuple[str, ...]) -> _Relay:
        reading = RelayReading(self._room, peer, self._config, self._cells, self._out)
        return _Relay(hints, reading, RelayUpload(self._room, peer, self._config, self._out))

    def try_address(self, contact: Contact, now: float) -> None:
        """Dial a relay at a new address at once."""
        relay = self._relays.get(contact.peer)
        if relay is None or not contact.hints or contact.peer in self._links:
            return
        relay.hints = tuple(dict.fromkeys((*contact.hints, *relay.hints)))[:_HINTS]
        relay.retry_at = None
        if contact.peer in self._used:
            self._out.hold(contact.peer, relay.hints, self._purpose)
        self.choose(now)

    def note_rtt(self, peer: PeerId, seconds: float) -> None:
        """Note a measured round-trip time; it counts at the next choice."""
        if peer in self._relays:
            self._relays[peer].rtt = seconds

    def note_info(self, peer: PeerId, info: RelayInfo) -> None:
        """Note the load that a relay reports."""
        if peer in self._relays and not info.request:
            self._relays[peer].load = info.kept_bytes / max(1, info.capacity_bytes)

    def read_anew(self) -> None:
        """Read all relays from their oldest events: an event from one of them was dropped here."""
        for peer, relay in self._relays.items():
            relay.reading.forget()
            if peer in self._used and peer in self._links:
                relay.reading.begin()

    # The comparison of two relays.

    @property
    def census(self) -> RelayCensus | None:
        """The comparison of two relays that is under way."""
        return self._census

    def begin_census(self, census: RelayCensus, now: float) -> None:
        """Read two relays from their oldest events, to compare them."""
        self._census = census
        self.choose(now)
        for peer in (census.old, census.new):
            if peer in self._used:
                self._read_anew(peer)

    def go_on_with_census(self, parcels: Iterable[Parcel], now: float) -> None:
        """Give the new relay what it lacks; the comparison ends if nobody asks for it for a while."""
        census = self._census
        if census is None:
            return
        self._out.set_timer(PATIENCE, CensusDue(self._room))
        self.choose(now)
        if census.new in self._used:
            self._relays[census.new].sending.put(parcels)

    def end_census(self, now: float) -> None:
        """End the comparison: nobody asks for it any more."""
        self._census = None
        self._out.cancel_timer(CensusDue(self._room))
        self.choose(now)

    def _read_anew(self, peer: PeerId) -> None:
        relay = self._relays[peer]
        relay.reading.forget()
        if peer in self._links:
            relay.reading.begin()

    @staticmethod
    def _is_of_keys(unit: Unverified) -> bool:
        try:
            return recall_unit(unit).events[0].kind == GROUP
        except (InvalidEvent, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return False

    def stop(self) -> None:
        """Release all relays: we have left, or the node stops."""
        for peer in self.chosen:
            self._give_up(peer)
        for peer in tuple(self._lingering):
            self.let_go(peer)
        self._relays = {}
        if self._census is not None:
            self._census = None
            self._out.cancel_timer(CensusDue(self._room))
        self._out.cancel_timer(RotationDue(self._room))
        self._out.cancel_timer(RelayChoiceDue(self._room))

    # Links and timers.

    def handle_link_up(self, peer: PeerId, now: float) -> None:
        """Begin to read and upload if the relay is in use, else choose again."""
        relay = self._relays.get(peer)
        if relay is None:
            return
        if peer in self._used:
            self._out.cancel_timer(RelayLinkDue(self._room, peer))
            self._begin(relay)
            return
        if not relay.refusals:
            relay.retry_at = None  # It could not be reached, and is online now.
        self.choose(now)

    def handle_link_down(self, peer: PeerId, now: float) -> None:
        """Wait a while for a relay whose link is gone; it is passed over if it does not return."""
        if peer not in self._used:
            self.let_go(peer)
            return
        relay = self._relays[peer]
        relay.reading.end()
        relay.sending.end()
        self._out.set_timer(self._config.relay_timeout, RelayLinkDue(self._room, peer))

    def handle_dial_failed(self, peer: PeerId, reason: Reason, now: float) -> None:
        """Pass over a relay that could not be dialled."""
        if peer not in self._links:
            self._fail(peer, reason, now)

    def handle_refusal(self, peer: PeerId, reason: Reason, now: float) -> None:
        """Pass over a relay that refuses this room, or us.

        A relay also refuses the greeting of a member that was removed. While the answer to our request is
        still due, that answer decides instead.
        """
        relay = self._relays.get(peer)
        if reason is Reason.NOT_INVITED and relay is not None and relay.reading.is_asking:
            return
        self._fail(peer, reason, now)

    def rotate(self, now: float) -> None:
        """Choose again: the turn of the relays in use is over."""
        self._set_rotation(now)
        self.choose(now)

    def look(self, peer: PeerId) -> None:
        """Ask a relay whether its last page was lost."""
        if peer in self._used:
            self._relays[peer].reading.look()

    def handle_lasting_loss(self, peer: PeerId, now: float) -> None:
        """Pass over a relay whose link is still down."""
        if peer not in self._links:
            self.handle_silence(peer, now)

    def handle_withholding(self, peer: PeerId, now: float) -> None:
        """Pass over a relay that names an event which it does not give."""
        self._fail(peer, Reason.WITHHELD, now)

    def handle_silence(self, peer: PeerId, now: float) -> None:
        """Pass over a relay that has not answered in time."""
        relay = self._relays.get(peer)
        refusal = None if relay is None else relay.reading.refusal
        self._fail(peer, refusal or Reason.TIMEOUT, now)

    # Reading.

    def handle_page(self, peer: PeerId, page: ResyncPage, now: float) -> None:
        """Hand a page of a relay in use over to the room, or pass the relay over if the page is bad."""
        if peer not in self._used:
            # The page may be good, but no cursor of ours moves with it.
            reason = Reason.NOT_RESPONSIBLE
            self._out.record(Record(Kind.REJECTED, self._room, peer=peer, reason=reason))
            return
        was_working = self._is_working(peer)
        said = self._evidence.note_statement(peer, page.said, now)
        if self._census is not None:
            keys = (unit_head(unit) for unit in page.units if self._is_of_keys(unit))
            self._census.note_page(peer, page, said, keys)
        relay = self._relays[peer]
        failure = relay.reading.handle_page(page)
        if relay.reading.has_lost:
            relay.sending.send_again()
        if page.after is None and self._evidence.is_behind(peer, page.said, now):
            relay.reading.ask_soon()
        if failure is not None:
            self._fail(peer, failure, now)
        if not was_working and self._is_working(peer):
            relay = self._relays[peer]
            relay.retry_at = relay.failure = None
            relay.refusals = 0
            self.choose(now)

    def note_silenced(self, peer: PeerId, silenced: int) -> None:
        """Note which control events a relay knows to be silenced: it may now allow what it refused."""
        relay = self._relays.get(peer)
        if relay is not None and silenced & ~relay.silenced:
            relay.silenced |= silenced  # It may be less while the relay's heads are not known here.
            relay.sending.send_again()

    def confirm_page(self, page: Page, control: tuple[EventId, ...]) -> None:
        """Go on after a page was taken in, in this transaction; `control` are our control heads now."""
        if page.relay in self._used:
            self._relays[page.relay].reading.confirm_page(page.number, control)

    # Uploading.

    def send(self, parcels: Iterable[Parcel]) -> None:
        """Upload our own events, and control events that the relays may lack, to the relays in use."""
        parcels = list(parcels)
        for peer in self._used:
            self._relays[peer].sending.put(parcels)

    def send_to(self, peer: PeerId, parcels: Iterable[Parcel], now: float) -> None:
        """Send the answer to `Behind`: control events that this relay lacks, if there are any."""
        if peer not in self._used:
            return
        relay = self._relays[peer]
        relay.sending.put(parcels)
        refusal = relay.reading.refusal
        if refusal is not None and relay.sending.is_idle:
            self._fail(peer, refusal, now)

    def send_unsent(self, peer: PeerId, parcels: Iterable[Parcel], more: bool) -> None:
        """Send the answer to `GiveUnsent`; `more` says whether there are more."""
        if peer in self._used:
            self._relays[peer].sending.send_unsent(parcels, more)

    def send_missing(self, peer: PeerId, event: EventId, parcels: Iterable[Parcel]) -> None:
        """Send the answer to `GiveMissing`."""
        if peer in self._used:
            self._relays[peer].sending.send_missing(event, parcels)

    def handle_taken(self, peer: PeerId, taken: RelayTaken, now: float) -> None:
        """Note the events of a batch that a relay has kept."""
        if peer not in self._used:
            self._out.record(Record(Kind.REJECTED, self._room, peer=peer, reason=Reason.STALE))
            return
        said = self._evidence.note_statement(peer, taken.said, now)
        if self._census is not None:
            self._census.note_answer(peer, taken, said)
        failure = self._relays[peer].sending.handle_answer(taken)
        if failure is not None:
            self._fail(peer, failure, now)
        relay = self._relays[peer]
        if peer in self._used and relay.sending.is_idle:
            relay.reading.ask_again()

    # Relays in use.

    def _is_working(self, peer: PeerId) -> bool:
        return peer in self._used and peer in self._links and self._relays[peer].reading.answered

    def choose(self, now: float) -> None:
        """Use the preferred relays that have not failed; give up others once these work."""
        wanted = self._wanted(now)
        for peer in wanted:
            if peer not in self._used:
                self._take_up(peer)
        spare = self._config.relays_at_once - sum(map(self._is_working, wanted))
        for peer in [peer for peer in self._used if peer not in wanted]:
            if spare > 0 and self._is_working(peer):
                spare -= 1
            else:
                self._give_up(peer)
        self._set_retry(now)

    def _wanted(self, now: float) -> list[PeerId]:
        rtts = {peer: relay.rtt for peer, relay in self._relays.items() if relay.rtt is not None}
        order = self._chooser.order(self._relays, self._chooser.turn(now), rtts)
        if self._only is not None:
            # The node, not this room, chooses the proxies that it has links to.
            order = sorted(order, key=lambda peer: peer not in self._links)
        # One that is caught lying is used only where there is no other.
        order.sort(key=self._evidence.is_caught)
        usable = [peer for peer in order if not self._retry_wait(peer, now)]
        wanted = usable[: self._config.relays_at_once]
        census = self._census
        compared = () if census is None else (census.old, census.new)
        return [*wanted, *(peer for peer in usable if peer in compared and peer not in wanted)]

    def _retry_wait(self, peer: PeerId, now: float) -> float:
        """Return the seconds until a relay may be tried again; 0: now."""
        at = self._relays[peer].retry_at
        longest = pause_after(REFUSALS, self._config.relay_retry)
        if at is None or at - now > longest:  # The clock was put back since.
            return 0.0
        return max(0.0, at - now)

    def _take_up(self, peer: PeerId) -> None:
        relay = self._relays[peer]
        self._used[peer] = None
        self._lingering.pop(peer, None)
        if relay.failure is None:
            self._out.record(Record(Kind.CONTROL, self._room, peer=peer, note="relay chosen"))
        self._out.hold(peer, relay.hints, self._purpose)
        if peer in self._links:
            self._begin(relay)
        else:
            self._out.set_timer(self._config.relay_timeout, RelayLinkDue(self._room, peer))

    def _begin(self, relay: _Relay) -> None:
        relay.reading.begin()
        relay.sending.begin()

    def _give_up(self, peer: PeerId, lingers: bool = False) -> None:
        if self._used.pop(peer, self) is self:
            return
        relay = self._relays[peer]
        relay.reading.end()
        relay.sending.end()
        self._out.cancel_timer(RelayLinkDue(self._room, peer))
        if lingers:
            self._lingering[peer] = None
            self._out.set_timer(self._config.relay_timeout, LingerDue(self._room, peer))
        else:
            self._out.release(peer, self._purpose)

    def let_go(self, peer: PeerId) -> None:
        """Release a relay that was given up."""
        if self._lingering.pop(peer, self) is not self:
            self._out.cancel_timer(LingerDue(self._room, peer))
            self._out.release(peer, self._purpose)

    def _fail(self, peer: PeerId, reason: Reason, now: float) -> None:
        """Pass a relay over; repeated failures of one kind are recorded once."""
        if peer not in self._used:
            return
        relay = self._relays[peer]
        # Linger: the other end closes a link that nobody holds, even before it has sent its answers.
        self._give_up(peer, lingers=reason in _SHOWS_WHY and peer in self._links)
        if relay.failure is not reason:
            note = "relay passed over"
            self._out.record(Record(Kind.CONTROL, self._room, peer=peer, reason=reason, note=note))
        # Only a link's own back-off bounds the dials to a relay that is away; who refuses us is asked less.
        relay.refusals = relay.refusals + 1 if peer in self._links else 0
        relay.retry_at = now + pause_after(relay.refusals, self._config.relay_retry)
        relay.failure = reason
        self.choose(now)

    def _set_retry(self, now: float) -> None:
        """Set the timer to the time when the first failed relay may be tried again."""
        waits = [wait for peer in self._relays if (wait := self._retry_wait(peer, now))]
        if waits:
            self._out.set_timer(min(waits), RelayChoiceDue(self._room))

    def _set_rotation(self, now: float) -> None:
        left = self._chooser.until_next_turn(now)
        if left is not None:
            self._out.set_timer(left, RotationDue(self._room))
