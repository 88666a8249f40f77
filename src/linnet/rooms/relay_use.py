"""The use of relays by a member of one room: which, how they are read and sent to, and what if they fail.

Relays hold events for those who are away; everyone who is there is reached without them. So a relay
that fails is passed over for the next without anyone's doing, all of them failing leaves the
room as it is among those online, and whichever answers first is used again (Schichtholz 2024,
requirement "Smooth Relay Failure"). A relay that is given up for a better one is read
until the better one has answered.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from linnet.core.ids import Contact, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.core.timers import Timer
from linnet.machine.outbox import Outbox
from linnet.rooms.config import RoomsConfig
from linnet.rooms.messages import RelayCursor, RelayInfo, RelayTaken, ResyncPage
from linnet.rooms.relay_choice import Chooser, usable
from linnet.rooms.relay_notices import Page, Parcel
from linnet.rooms.relay_reading import Reading
from linnet.rooms.relay_sending import Sending
from linnet.rooms.results import RelayStatus
from linnet.trace.records import Kind, Record

NO_PROXY = "no relay of this room is a proxy of ours: name one of them there"
_BY_STATE = (Reason.UNKNOWN_ROOM, Reason.NOT_A_MEMBER, Reason.NOT_A_RELAY)
"""Refusals that follow from the room's state, as far as the relay knew it."""

_SHOWS_WHY = (Reason.BANNED, Reason.NOT_A_MEMBER, Reason.NOT_INVITED)
"""Refusals that tell us we are out: the relay is asked for the event that did it, over this link."""

_HINTS = 8
"""Addresses of a relay that are tried: as many as a contact has."""


class RotationDue(Timer, frozen=True, gc=False):
    """The turn of the relays of a room that are used is over."""

    room: TopicId


class RelayChoiceDue(Timer, frozen=True, gc=False):
    """A relay of a room that has failed may be tried again."""

    room: TopicId


class RelayLinkDue(Timer, frozen=True, gc=False):
    """The link to a relay that is used has been down for long enough to pass it over."""

    room: TopicId
    relay: PeerId


class LingerDue(Timer, frozen=True, gc=False):
    """A relay that is not used any more has had its time to show why."""

    room: TopicId
    relay: PeerId


class _Relay:
    """One relay of the room, used or not."""

    __slots__ = ("failed_at", "failure", "hints", "load", "reading", "rtt", "sending")

    def __init__(self, hints: tuple[str, ...], reading: Reading, sending: Sending) -> None:
        self.hints = hints
        self.reading = reading
        self.sending = sending
        self.failed_at: float | None = None
        self.failure: Reason | None = None
        self.rtt: float | None = None
        self.load: float | None = None


class RelayUse:
    """The relays of one room at one member. It tells its room by notices (`linnet.rooms.relay_notices`).

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
    ) -> None:
        self._room = room
        self._out = out
        self._ours = ours
        self._config = config
        self._cells = cells
        self._links = links
        self._only = only
        """Whom we may have links to, if not anyone: relays that are not among them are none for us."""
        self._is_told = False
        self._chooser = Chooser(room, config.relay_choice, seed, config.relay_rotate)
        self._relays: dict[PeerId, _Relay] = {}
        self._used: dict[PeerId, None] = {}
        self._lingering: dict[PeerId, None] = {}
        """Relays that are not in use any more, whose link is kept until they have shown why."""
        self._purpose = f"relay {room.hex()[:16]}"

    @property
    def chosen(self) -> tuple[PeerId, ...]:
        """Relays in use, whether their link is open or not."""
        return tuple(self._used)

    @property
    def up(self) -> tuple[PeerId, ...]:
        """Relays in use that can be told something now."""
        return tuple(peer for peer in self._used if peer in self._links)

    def takes(self, peer: PeerId, event: EventId) -> bool:
        """Whether this relay has not refused an event: leave those out of what is `unsent`."""
        relay = self._relays.get(peer)
        return relay is not None and relay.sending.takes(event)

    def cursor(self, peer: PeerId) -> RelayCursor | None:
        """How far a relay was read, durably; None: not at all."""
        relay = self._relays.get(peer)
        return None if relay is None else relay.reading.cursor

    def status(self) -> tuple[RelayStatus, ...]:
        """Every relay of the room, as it is seen from here."""
        return tuple(
            RelayStatus(
                peer,
                relay.hints,
                peer in self._links,
                peer in self._used,
                relay.rtt,
                relay.load,
                relay.failure,
            )
            for peer, relay in self._relays.items()
        )

    # Which.

    def set_relays(self, contacts: Iterable[Contact], now: float) -> None:
        """Choose among the relays of the room, all of them, as its state names them now."""
        others = {contact.peer: contact.hints for contact in contacts if contact.peer != self._ours}
        named = {peer: hints for peer, hints in others.items() if self._only is None or peer in self._only}
        if self._only is not None and not named and not self._is_told:
            self._out.record(Record(Kind.CONTROL, self._room, reason=Reason.NO_STORAGE, note=NO_PROXY))
        self._is_told = not named
        for peer in [peer for peer in self._relays if peer not in named]:
            self._give_up(peer)
            self._let_go(peer)
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
                relay.failed_at = None  # the state is another now, as when a new relay has joined
        if had_none and self._relays:
            self._set_rotation(now)
        self._choose(now)

    def _new_relay(self, peer: PeerId, hints: tuple[str, ...]) -> _Relay:
        reading = Reading(self._room, peer, self._config, self._cells, self._out)
        return _Relay(hints, reading, Sending(self._room, peer, self._config, self._out))

    def try_address(self, contact: Contact, now: float) -> None:
        """Try a relay at once where somebody says that it is now."""
        relay = self._relays.get(contact.peer)
        if relay is None or not contact.hints or contact.peer in self._links:
            return
        relay.hints = tuple(dict.fromkeys((*contact.hints, *relay.hints)))[:_HINTS]
        relay.failed_at = None
        if contact.peer in self._used:
            self._out.hold(contact.peer, relay.hints, self._purpose)
        self._choose(now)

    def note_rtt(self, peer: PeerId, seconds: float) -> None:
        """Note a measured round-trip time; it counts at the next choice."""
        if peer in self._relays:
            self._relays[peer].rtt = seconds

    def note_info(self, peer: PeerId, info: RelayInfo) -> None:
        """Note what a relay says of how it is doing."""
        if peer in self._relays and not info.request:
            self._relays[peer].load = info.kept_bytes / max(1, info.capacity_bytes)

    def wake(self, now: float) -> None:
        """Try all relays again, after we had no link at all: what failed meanwhile was not their fault."""
        for relay in self._relays.values():
            relay.failed_at = None
        for peer in self._used:
            if peer not in self._links:
                self._out.hold(peer, self._relays[peer].hints, self._purpose)
        self._choose(now)

    def read_anew(self) -> None:
        """Read all relays from their oldest: something that came from one of them was let go."""
        for peer, relay in self._relays.items():
            relay.reading.forget()
            if peer in self._used and peer in self._links:
                relay.reading.begin()

    def stop(self) -> None:
        """Use relays no longer: we have left, or the node stops."""
        for peer in self.chosen:
            self._give_up(peer)
        for peer in tuple(self._lingering):
            self._let_go(peer)
        self._relays = {}
        self._out.cancel_timer(RotationDue(self._room))
        self._out.cancel_timer(RelayChoiceDue(self._room))

    # Links and timers.

    def handle_link_up(self, peer: PeerId, now: float) -> None:
        """Read and send over the link of a relay that is used, or choose again."""
        relay = self._relays.get(peer)
        if relay is None:
            return
        if peer in self._used:
            self._out.cancel_timer(RelayLinkDue(self._room, peer))
            self._begin(relay)
            return
        relay.failed_at = None  # it is there, whatever was before
        self._choose(now)

    def handle_link_down(self, peer: PeerId, now: float) -> None:
        """Wait a while for a relay to be back: it is dialled at once, and passed over if that fails."""
        if peer not in self._used:
            self._let_go(peer)
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
        """Pass over a relay that says it has nothing to do with this room, or with us.

        Who was put out is no guest any more. The answer to what it asked decides of that.
        """
        relay = self._relays.get(peer)
        if reason is Reason.NOT_INVITED and relay is not None and relay.reading.is_asking:
            return
        self._fail(peer, reason, now)

    def rotate(self, now: float) -> None:
        """Choose again: the turn of those in use is over."""
        self._set_rotation(now)
        self._choose(now)

    def choose_again(self, now: float) -> None:
        """Choose again: one that failed may be tried once more."""
        self._choose(now)

    def look(self, peer: PeerId) -> None:
        """See whether the last page of a relay was lost."""
        if peer in self._used:
            self._relays[peer].reading.look()

    def end_lingering(self, peer: PeerId) -> None:
        """Let go of a relay that has had its time to show why it is used no more."""
        self._let_go(peer)

    def handle_lasting_loss(self, peer: PeerId, now: float) -> None:
        """Pass over a relay whose link is still down."""
        if peer not in self._links:
            self.handle_silence(peer, now)

    def handle_silence(self, peer: PeerId, now: float) -> None:
        """Pass over a relay that has not answered in time."""
        relay = self._relays.get(peer)
        refusal = None if relay is None else relay.reading.refusal
        self._fail(peer, refusal or Reason.TIMEOUT, now)

    # What is read.

    def handle_page(self, peer: PeerId, page: ResyncPage, now: float) -> None:
        """Take a page of a relay."""
        if peer not in self._used:
            # It may be good, but no cursor of ours counts on it.
            reason = Reason.NOT_RESPONSIBLE
            self._out.record(Record(Kind.REJECTED, self._room, peer=peer, reason=reason))
            return
        was_working = self._is_working(peer)
        relay = self._relays[peer]
        failure = relay.reading.handle_page(page)
        if relay.reading.has_lost:
            relay.sending.handle_loss()
        if failure is not None:
            self._fail(peer, failure, now)
        if not was_working and self._is_working(peer):
            relay = self._relays[peer]
            relay.failed_at = relay.failure = None
            self._choose(now)

    def confirm_page(self, page: Page, control: tuple[EventId, ...], now: float) -> None:
        """Go on: a page was taken in, in this transaction; `control` are our control heads by now."""
        if page.relay in self._used:
            self._relays[page.relay].reading.confirm_page(page.number, control)

    # What is sent.

    def send(self, parcels: Iterable[Parcel], now: float) -> None:
        """Have the relays in use keep these: our own events, and control events that they may lack."""
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

    def send_unsent(self, peer: PeerId, parcels: Iterable[Parcel], more: bool, now: float) -> None:
        """Send the answer to `GiveUnsent`; `more` says whether there are more."""
        if peer in self._used:
            self._relays[peer].sending.send_unsent(parcels, more)

    def send_missing(self, peer: PeerId, event: EventId, parcels: Iterable[Parcel], now: float) -> None:
        """Send the answer to `GiveMissing`."""
        if peer in self._used:
            self._relays[peer].sending.send_missing(event, parcels)

    def handle_taken(self, peer: PeerId, taken: RelayTaken, now: float) -> None:
        """Note what became of a batch, as a relay says."""
        if peer not in self._used:
            self._out.record(Record(Kind.REJECTED, self._room, peer=peer, reason=Reason.STALE))
            return
        failure = self._relays[peer].sending.handle_answer(taken)
        if failure is not None:
            self._fail(peer, failure, now)
        relay = self._relays[peer]
        if peer in self._used and relay.sending.is_idle:
            relay.reading.ask_again()

    # The rest.

    def _is_working(self, peer: PeerId) -> bool:
        return peer in self._used and peer in self._links and self._relays[peer].reading.answered

    def _choose(self, now: float) -> None:
        """Use those that are preferred and have not failed; let others go once these work."""
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
        failed = {
            peer: relay.failed_at for peer, relay in self._relays.items() if relay.failed_at is not None
        }
        order = self._chooser.order(self._relays, self._chooser.turn(now), rtts)
        if self._only is not None:
            # Which of our proxies we have a link to is not for us to choose.
            order = sorted(order, key=lambda peer: peer not in self._links)
        return usable(order, failed, self._config.relay_retry, now)[: self._config.relays_at_once]

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

    def _let_go(self, peer: PeerId) -> None:
        """Wait no longer for a relay that was given up."""
        if self._lingering.pop(peer, self) is not self:
            self._out.cancel_timer(LingerDue(self._room, peer))
            self._out.release(peer, self._purpose)

    def _fail(self, peer: PeerId, reason: Reason, now: float) -> None:
        """Pass a relay over; said once, however often it fails in the same way."""
        if peer not in self._used:
            return
        relay = self._relays[peer]
        # Who hangs up at once is told nothing: the other end closes a link that nobody needs, answers or not.
        self._give_up(peer, lingers=reason in _SHOWS_WHY and peer in self._links)
        if relay.failure is not reason:
            note = "relay passed over"
            self._out.record(Record(Kind.CONTROL, self._room, peer=peer, reason=reason, note=note))
        relay.failed_at, relay.failure = now, reason
        self._choose(now)

    def _set_retry(self, now: float) -> None:
        """Look again when the first of those that failed may be tried again."""
        failed = [relay.failed_at for relay in self._relays.values() if relay.failed_at is not None]
        later = [at + self._config.relay_retry for at in failed if now - at < self._config.relay_retry]
        if later:
            self._out.set_timer(min(later) - now, RelayChoiceDue(self._room))

    def _set_rotation(self, now: float) -> None:
        left = self._chooser.until_next_turn(now)
        if left is not None:
            self._out.set_timer(left, RotationDue(self._room))
