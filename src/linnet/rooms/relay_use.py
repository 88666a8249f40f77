"""The use of relays by a member of one room: which, how they are read and sent to, and what if they fail.

Relays hold events for those who are away; everyone who is there is reached without them. So a relay
that fails is passed over for the next without anyone's doing, all of them failing leaves the
room as it is among those online, and whichever answers first is used again (Schichtholz 2024,
requirement "Smooth Relay Failure"). A relay that is given up for a better one is read
until the better one has answered.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable

from linnet.core.effects import CancelTimer, Hold, Release, SetTimer
from linnet.core.ids import Contact, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.core.timers import Tick
from linnet.rooms.config import RoomsConfig
from linnet.rooms.messages import RelayCursor, RelayInfo, RelayTaken, ResyncPage
from linnet.rooms.relay_choice import Chooser, usable
from linnet.rooms.relay_notices import OWNER, Forgot, Page, Parcel, RelayUseEffect
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

_Step = Callable[["_Relay"], tuple[list[RelayUseEffect], Reason | None]]


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
    """The relays of one room at one member. Every call returns effects and notices, in one order.

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
        only: Container[PeerId] | None = None,
    ) -> None:
        self._room = room
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

    def relays(self, contacts: Iterable[Contact], now: float) -> list[RelayUseEffect]:
        """The relays of the room as its state names them now, all of them."""
        others = {contact.peer: contact.hints for contact in contacts if contact.peer != self._ours}
        named = {peer: hints for peer, hints in others.items() if self._only is None or peer in self._only}
        effects: list[RelayUseEffect] = []
        if self._only is not None and not named and not self._is_told:
            effects.append(Record(Kind.CONTROL, self._room, reason=Reason.NO_STORAGE, note=NO_PROXY))
        self._is_told = not named
        for peer in [peer for peer in self._relays if peer not in named]:
            effects += [*self._give_up(peer), *self._let_go(peer)]
            del self._relays[peer]
        had_none = not self._relays
        for peer, hints in named.items():
            known = self._relays.get(peer)
            if known is None:
                reading = Reading(self._room, peer, self._config, self._cells)
                self._relays[peer] = _Relay(hints, reading, Sending(self._room, peer, self._config))
            elif hints != known.hints:
                known.hints = hints
                if peer in self._used and peer not in self._links:
                    effects.append(Hold(peer, hints, self._purpose))
        for relay in self._relays.values():
            if relay.failure in _BY_STATE:
                relay.failed_at = None  # the state is another now, as when a new relay has joined
        if had_none and self._relays:
            effects += self._next_turn(now)
        return effects + self._choose(now)

    def told(self, contact: Contact, now: float) -> list[RelayUseEffect]:
        """Somebody says where a relay is now: it is tried there at once."""
        relay = self._relays.get(contact.peer)
        if relay is None or not contact.hints or contact.peer in self._links:
            return []
        relay.hints = tuple(dict.fromkeys((*contact.hints, *relay.hints)))[:_HINTS]
        relay.failed_at = None
        again = [Hold(contact.peer, relay.hints, self._purpose)] if contact.peer in self._used else []
        return [*again, *self._choose(now)]

    def rtt(self, peer: PeerId, seconds: float) -> None:
        """A round-trip time was measured; it counts at the next choice."""
        if peer in self._relays:
            self._relays[peer].rtt = seconds

    def info(self, peer: PeerId, info: RelayInfo) -> None:
        """A relay said how it is doing."""
        if peer in self._relays and not info.request:
            self._relays[peer].load = info.kept_bytes / max(1, info.capacity_bytes)

    def wake(self, now: float) -> list[RelayUseEffect]:
        """We are back after having had no link at all: what failed meanwhile was not the relays' fault."""
        for relay in self._relays.values():
            relay.failed_at = None
        away = [peer for peer in self._used if peer not in self._links]
        again = [Hold(peer, self._relays[peer].hints, self._purpose) for peer in away]
        return [*again, *self._choose(now)]

    def read_anew(self) -> list[RelayUseEffect]:
        """Read all relays from their oldest: something that came from one of them was let go."""
        effects: list[RelayUseEffect] = []
        for peer, relay in self._relays.items():
            relay.reading.forget()
            if peer in self._used and peer in self._links:
                effects += relay.reading.begin()
        return effects

    def stop(self) -> list[RelayUseEffect]:
        """Use relays no longer: we have left, or the node stops."""
        effects: list[RelayUseEffect] = []
        for peer in self.chosen:
            effects += self._give_up(peer)
        for peer in tuple(self._lingering):
            effects += self._let_go(peer)
        self._relays = {}
        return [*effects, CancelTimer(self._tick("rotate")), CancelTimer(self._tick("retry"))]

    # Links and timers.

    def linked(self, peer: PeerId, now: float) -> list[RelayUseEffect]:
        """A link to this peer is open."""
        relay = self._relays.get(peer)
        if relay is None:
            return []
        if peer in self._used:
            return [CancelTimer(self._tick("link", peer)), *self._begin(relay)]
        relay.failed_at = None  # it is there, whatever was before
        return self._choose(now)

    def unlinked(self, peer: PeerId, now: float) -> list[RelayUseEffect]:
        """The link to this peer is gone. It is dialled again at once, and passed over if that fails."""
        if peer not in self._used:
            return self._let_go(peer)
        relay = self._relays[peer]
        ended = [*relay.reading.end(), *relay.sending.end()]
        return [*ended, SetTimer(self._config.relay_timeout, self._tick("link", peer))]

    def dial_failed(self, peer: PeerId, reason: Reason, now: float) -> list[RelayUseEffect]:
        """No link came of dialling."""
        return [] if peer in self._links else self._fail(peer, reason, now)

    def refused(self, peer: PeerId, reason: Reason, now: float) -> list[RelayUseEffect]:
        """A relay said that it has nothing to do with this room, or with us.

        Who was put out is no guest any more. The answer to what it asked decides of that.
        """
        relay = self._relays.get(peer)
        if reason is Reason.NOT_INVITED and relay is not None and relay.reading.is_asking:
            return []
        return self._fail(peer, reason, now)

    def fired(self, tick: Tick, now: float) -> list[RelayUseEffect]:
        """A timer of ours has run out."""
        peer = PeerId(tick.key[len(self._room) :])
        match tick.what:
            case "rotate":
                return [*self._next_turn(now), *self._choose(now)]
            case "retry":
                return self._choose(now)
            case "look":
                return self._relays[peer].reading.look() if peer in self._used else []
            case "linger":
                return self._let_go(peer)
            case "link" if peer in self._links:
                return []
            case _:
                relay = self._relays.get(peer)
                refusal = None if relay is None else relay.reading.refusal
                return self._fail(peer, refusal or Reason.TIMEOUT, now)

    # What is read.

    def page(self, peer: PeerId, page: ResyncPage, now: float) -> list[RelayUseEffect]:
        """A relay sent a page."""
        if peer not in self._used:
            # It may be good, but no cursor of ours counts on it.
            return [Record(Kind.REJECTED, self._room, peer=peer, reason=Reason.NOT_RESPONSIBLE)]
        was_working = self._is_working(peer)
        effects = self._step(peer, lambda relay: relay.reading.page(page), now)
        if not was_working and self._is_working(peer):
            relay = self._relays[peer]
            relay.failed_at = relay.failure = None
            effects += self._choose(now)
        return effects

    def taken(self, page: Page, control: tuple[EventId, ...], now: float) -> list[RelayUseEffect]:
        """A page was taken in, in this transaction; `control` are the heads of our control DAG by now."""
        if page.relay not in self._used:
            return []
        return self._relays[page.relay].reading.taken(page.number, control)

    # What is sent.

    def send(self, parcels: Iterable[Parcel], now: float) -> list[RelayUseEffect]:
        """Have the relays in use keep these: our own events, and control events that they may lack."""
        parcels = list(parcels)
        effects: list[RelayUseEffect] = []
        for peer in self._used:
            effects += self._relays[peer].sending.put(parcels)
        return effects

    def send_to(self, peer: PeerId, parcels: Iterable[Parcel], now: float) -> list[RelayUseEffect]:
        """The answer to `Behind`: control events that this relay lacks, if there are any."""
        if peer not in self._used:
            return []
        relay = self._relays[peer]
        effects = relay.sending.put(parcels)
        refusal = relay.reading.refusal
        if refusal is not None and relay.sending.is_idle:
            return [*effects, *self._fail(peer, refusal, now)]
        return effects

    def unsent(self, peer: PeerId, parcels: Iterable[Parcel], more: bool, now: float) -> list[RelayUseEffect]:
        """The answer to `GiveUnsent`, and whether there are more."""
        return self._relays[peer].sending.unsent(parcels, more) if peer in self._used else []

    def provide(
        self, peer: PeerId, event: EventId, parcels: Iterable[Parcel], now: float
    ) -> list[RelayUseEffect]:
        """The answer to `GiveMissing`."""
        return self._relays[peer].sending.provide(event, parcels) if peer in self._used else []

    def answered(self, peer: PeerId, taken: RelayTaken, now: float) -> list[RelayUseEffect]:
        """A relay said what became of a batch."""
        if peer not in self._used:
            return [Record(Kind.REJECTED, self._room, peer=peer, reason=Reason.STALE)]
        effects = self._step(peer, lambda relay: relay.sending.answered(taken), now)
        relay = self._relays[peer]
        if peer in self._used and relay.sending.is_idle:
            effects += relay.reading.again()
        return effects

    # The rest.

    def _step(self, peer: PeerId, step: _Step, now: float) -> list[RelayUseEffect]:
        relay = self._relays[peer]
        effects, failure = step(relay)
        if any(isinstance(effect, Forgot) for effect in effects):
            effects = [*effects, *relay.sending.forgot()]
        if failure is not None:
            return [*effects, *self._fail(peer, failure, now)]
        return effects

    def _is_working(self, peer: PeerId) -> bool:
        return peer in self._used and peer in self._links and self._relays[peer].reading.answered

    def _choose(self, now: float) -> list[RelayUseEffect]:
        """Use those that are preferred and have not failed; let others go once these work."""
        wanted = self._wanted(now)
        effects: list[RelayUseEffect] = []
        for peer in wanted:
            if peer not in self._used:
                effects += self._take_up(peer)
        spare = self._config.relays_at_once - sum(map(self._is_working, wanted))
        for peer in [peer for peer in self._used if peer not in wanted]:
            if spare > 0 and self._is_working(peer):
                spare -= 1
            else:
                effects += self._give_up(peer)
        return effects + self._retry_timer(now)

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

    def _take_up(self, peer: PeerId) -> list[RelayUseEffect]:
        relay = self._relays[peer]
        self._used[peer] = None
        self._lingering.pop(peer, None)
        effects: list[RelayUseEffect] = [Hold(peer, relay.hints, self._purpose)]
        if relay.failure is None:
            effects.insert(0, Record(Kind.CONTROL, self._room, peer=peer, note="relay chosen"))
        if peer in self._links:
            return [*effects, *self._begin(relay)]
        return [*effects, SetTimer(self._config.relay_timeout, self._tick("link", peer))]

    def _begin(self, relay: _Relay) -> list[RelayUseEffect]:
        return [*relay.reading.begin(), *relay.sending.begin()]

    def _give_up(self, peer: PeerId, lingers: bool = False) -> list[RelayUseEffect]:
        if self._used.pop(peer, self) is self:
            return []
        relay = self._relays[peer]
        ended = [*relay.reading.end(), *relay.sending.end(), CancelTimer(self._tick("link", peer))]
        if not lingers:
            return [*ended, Release(peer, self._purpose)]
        self._lingering[peer] = None
        return [*ended, SetTimer(self._config.relay_timeout, self._tick("linger", peer))]

    def _let_go(self, peer: PeerId) -> list[RelayUseEffect]:
        """The link to a relay that was given up is not waited for any more."""
        if self._lingering.pop(peer, self) is self:
            return []
        return [CancelTimer(self._tick("linger", peer)), Release(peer, self._purpose)]

    def _fail(self, peer: PeerId, reason: Reason, now: float) -> list[RelayUseEffect]:
        """Pass a relay over; said once, however often it fails in the same way."""
        if peer not in self._used:
            return []
        relay = self._relays[peer]
        # Who hangs up at once is told nothing: the other end closes a link that nobody needs, answers or not.
        effects = self._give_up(peer, lingers=reason in _SHOWS_WHY and peer in self._links)
        if relay.failure is not reason:
            note = "relay passed over"
            effects.append(Record(Kind.CONTROL, self._room, peer=peer, reason=reason, note=note))
        relay.failed_at, relay.failure = now, reason
        return effects + self._choose(now)

    def _retry_timer(self, now: float) -> list[RelayUseEffect]:
        """Look again when the first of those that failed may be tried again."""
        failed = [relay.failed_at for relay in self._relays.values() if relay.failed_at is not None]
        later = [at + self._config.relay_retry for at in failed if now - at < self._config.relay_retry]
        return [SetTimer(min(later) - now, self._tick("retry"))] if later else []

    def _next_turn(self, now: float) -> list[RelayUseEffect]:
        left = self._chooser.until_next_turn(now)
        return [] if left is None else [SetTimer(left, self._tick("rotate"))]

    def _tick(self, what: str, peer: bytes = b"") -> Tick:
        return Tick(OWNER, what, self._room + peer)
