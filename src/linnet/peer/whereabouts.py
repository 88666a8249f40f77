"""The addresses of devices, in records that they sign themselves and anyone may pass on.

A device signs its addresses with a number that grows when they change; the largest number wins, so that no
clock decides. It sends the record to those that share a room, a place or a stream with it, and they pass it
on to the others in the same topic, and to nobody else: so two devices that have both moved find each other
through anyone that both still find, a member, a relay or a guest (decision 0023). In rooms, members of one
relay meet in this way. In places and streams, where others name fresh addresses anyway, only devices that
have moved are told of.

A device that has moved dials those whose records it has, until they know: a relay or a host is looked for
only where it was.

Records are checked before they are used, and kept over restarts. When a device is dialled, its own record
comes before all other hints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from linnet.core.errors import RemoteError
from linnet.core.ids import (
    Contact,
    Count,
    Hints,
    PeerId,
    TopicId,
    WirePeerId,
    WireSignature,
    WireTopicId,
)
from linnet.core.inputs import LinkDown, LinkUp
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.core.timers import Timer
from linnet.identity.keys import SigningKey, verify
from linnet.machine.outbox import Notice, Outbox
from linnet.machine.part import Part, on_input, on_message, on_timer
from linnet.trace.records import Kind, Record

PROTOCOL = "whereabouts"
RECORDS = 64
"""The most devices of one topic in one message: more than a room's mesh or a place's branch has."""
STRANGERS = 64
"""The most devices of one topic that others tell of and nobody here has met; beyond this the first are
dropped. Anyone who takes part could invent devices without end."""
KEPT = 4096
"""The most devices whose addresses are kept, of all topics; beyond this the oldest are forgotten."""
FORGOTTEN = 90 * 86_400.0
"""Seconds after which addresses are not read back at a start."""
LOOKS = (1.0, 3.0, 10.0, 30.0)
"""Seconds until we look what to tell a peer, after its link came up or a new record was heard. Several times:
what two peers share shows only when they have greeted each other."""

SOUGHT = 64
"""The most devices that a device which has moved dials at once, those heard of last."""
SEEKING, SEEK_AGAIN = 60.0, 540.0
"""Seconds for which it holds them, and seconds until the next turn."""
TURNS = 12
"""The most turns for one device while a process runs: two hours. A device that is away for longer comes by
itself."""

FIRST = 1
"""The number of a device's first addresses. One with a larger number has moved."""

_PURPOSE = "whereabouts"
"""The purpose for which links are held."""
_TAG = b"linnet/whereabouts/1"
_OWN, _HEARD = "whereabouts own", "whereabouts"
_HINTS = 8
_encode = msgspec.msgpack.Encoder().encode


class Whereabouts(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A device's signed statement of its addresses; without addresses it cannot be dialled."""

    peer: WirePeerId
    addresses: Hints
    number: Count
    """Grows by one whenever the addresses change; the largest number is valid."""
    at_ms: Count
    """When it was signed, by the device's clock. It is for people and decides nothing."""
    sig: WireSignature


class Located(Message, frozen=True, tag=170):
    """Tells the addresses of devices that take part in a topic of ours."""

    topic: WireTopicId
    records: Annotated[tuple[Whereabouts, ...], Meta(max_length=RECORDS)]

    @property
    def cost(self) -> int:
        """See `Message.cost`. Each record costs a signature check: a message of many counts as many."""
        return max(1, len(self.records))


class _Kept(Struct, frozen=True, array_like=True, gc=False):
    record: Whereabouts
    heard: float
    told: int = 0
    """The number of our own record that the device was last told."""


class Company(Struct, frozen=True, gc=False):
    """The devices that take part in a topic of this node, as far as is known here."""

    topic: TopicId
    here: tuple[PeerId, ...]
    """Devices that have shown on an open link that they take part: we tell them, and believe them."""
    known: tuple[PeerId, ...] = ()
    """Other devices that took part when they were met: we tell of them, but not them."""
    moved_only: bool = False
    """Whether we tell only of others that have moved."""
    unless_moved: bool = True
    """Whether we tell our own record even if we have not moved."""

    def has(self, peer: PeerId) -> bool:
        """Return whether a device is known to take part."""
        return peer in self.here or peer in self.known


class Learned(Notice, frozen=True, gc=False):
    """A device of a topic has told that it may be dialled at these addresses."""

    topic: TopicId
    contact: Contact


class LookDue(Timer, frozen=True):
    """Records are new since the last look at which peers to tell."""


class SeekDue(Timer, frozen=True):
    """Time to dial again those that do not know yet that we have moved."""


class LetGoDue(Timer, frozen=True):
    """Time to release those that we dialled to tell them that we have moved."""


_decode_own = msgspec.msgpack.Decoder(Whereabouts).decode
_decode_kept = msgspec.msgpack.Decoder(_Kept).decode


def sign(key: SigningKey, addresses: tuple[str, ...], number: int, at_ms: int) -> Whereabouts:
    """Sign this device's record."""
    peer = PeerId(key.public)
    return Whereabouts(peer, addresses, number, at_ms, key.sign(_signed(peer, addresses, number, at_ms)))


def check(record: Whereabouts) -> None:
    """Raise `RemoteError` unless the device itself has signed it."""
    verify(record.peer, _signed(record.peer, record.addresses, record.number, record.at_ms), record.sig)


def _signed(peer: PeerId, addresses: tuple[str, ...], number: int, at_ms: int) -> bytes:
    return _TAG + _encode((peer, addresses, number, at_ms))


class AddressBook(Part):
    """Keeps our own record and those of other devices, and tells peers about them."""

    def __init__(
        self,
        key: SigningKey,
        listens: tuple[str, ...],
        cells: Cells,
        out: Outbox,
        company: Callable[[], Iterable[Company]],
        told: Callable[[PeerId, bool, float], None] = lambda peer, own, now: None,
    ) -> None:
        """`told` is called for each record that we send to a peer, with whether the record is our own."""
        self._key = key
        self._ours = PeerId(key.public)
        self._listens = listens[:_HINTS]
        self._cells = cells
        self._out = out
        self._company = company
        self._account = told
        self._own: Whereabouts | None = None
        self._heard: dict[PeerId, _Kept] = {}
        """Records of others; the latest are last."""
        self._strangers: dict[TopicId, dict[PeerId, None]] = {}
        """Devices that we were only told of, by topic, the latest last."""
        self._told: dict[PeerId, dict[PeerId, int]] = {}
        """Linked peers that speak this protocol, and the record numbers that each of them was told."""
        self._due: dict[PeerId, int] = {}
        """Peers to look at, and how often we did."""
        self._sought: tuple[PeerId, ...] = ()
        self._turns: dict[PeerId, int] = {}

    def start(self, now: float) -> None:
        """Read back the stored records, and sign our own addresses if they have changed."""
        kept = [(PeerId(key), _decode_kept(value)) for key, value in self._cells.scan(_HEARD)]
        for peer, each in sorted(kept, key=lambda item: item[1].heard):
            # A record that was heard in the future, by a clock that was wrong, was heard all the same.
            if now - each.heard < FORGOTTEN:
                self._heard[peer] = each
            else:
                self._cells.delete(_HEARD, peer)
        raw = self._cells.get(_OWN, b"")
        self._own = None if raw is None else _decode_own(raw)
        if self._own is None and not self._listens:
            return
        if self._own is None or self._own.addresses != self._listens:
            self._sign(FIRST if self._own is None else self._own.number + 1, now)
        self._hold_untold()

    def located(self, peer: PeerId, hints: tuple[str, ...]) -> tuple[str, ...]:
        """Return the addresses at which to dial a device: its own record first, then these hints."""
        kept = self._heard.get(peer)
        if kept is None:
            return hints
        return tuple(dict.fromkeys((*kept.record.addresses, *hints)))[:_HINTS]

    def heard_of(self, peer: PeerId) -> Whereabouts | None:
        """Return the latest record of a device, ours included."""
        if peer == self._ours:
            return self._own
        kept = self._heard.get(peer)
        return None if kept is None else kept.record

    @on_input(LinkUp)
    def handle_link_up(self, event: LinkUp, now: float) -> None:
        """Look what to tell a new peer, if it speaks this protocol."""
        if PROTOCOL in event.hello.protocols:
            self._told[event.peer] = {}
            self._look_at((event.peer,))

    @on_input(LinkDown)
    def handle_link_down(self, event: LinkDown, now: float) -> None:
        """Forget what a peer was told."""
        self._told.pop(event.peer, None)
        self._due.pop(event.peer, None)

    @on_timer(LookDue)
    def tell_company(self, timer: LookDue, now: float) -> None:
        """Send peers the records that they should know."""
        for company in self._company():
            for peer in company.here:
                if peer in self._due:
                    self._tell(peer, company, now)
        self._due = {peer: looks + 1 for peer, looks in self._due.items() if looks + 1 < len(LOOKS)}
        self._set_timer()

    @on_timer(SeekDue)
    def seek_untold(self, timer: SeekDue, now: float) -> None:
        """Dial those that do not know yet that we have moved."""
        self._hold_untold()

    @on_timer(LetGoDue)
    def release_sought(self, timer: LetGoDue, now: float) -> None:
        """Release those that we dialled, until the next turn."""
        for peer in self._sought:
            self._out.release(peer, _PURPOSE)
        self._sought = ()
        self._out.set_timer(SEEK_AGAIN, SeekDue())

    @on_message(Located)
    def hear_addresses(self, peer: PeerId, message: Located, now: float) -> None:
        """Take in records from a peer; notify other parts of new ones."""
        company = next((each for each in self._company() if each.topic == message.topic), None)
        if company is None or peer not in company.here:
            note = "addresses: its sender shares no such topic with us"
            self._out.record(
                Record(Kind.REJECTED, message.topic, peer=peer, reason=Reason.NOT_IN_TOPIC, note=note)
            )
            return
        for word in message.records:
            told = self._told.get(peer)
            if told is not None:
                told[word.peer] = max(word.number, told.get(word.peer, 0))
            known = self.heard_of(word.peer)
            if known is None or self._is_newer(word, known):
                self._hear(peer, word, company, now)
                if self.heard_of(word.peer) == word:
                    self._out.notify(Learned(message.topic, Contact(word.peer, word.addresses)))
            elif word.peer == peer and known != word:
                # The device has lost its memory: its own earlier record lets it choose a larger number.
                self._out.send(peer, Located(message.topic, (known,)))

    def _hear(self, peer: PeerId, word: Whereabouts, company: Company, now: float) -> None:
        """Take in a newer record, if its device signed it."""
        try:
            check(word)
        except RemoteError as error:
            note = "addresses"
            self._out.record(Record(Kind.REJECTED, company.topic, peer=peer, reason=error.reason, note=note))
            self._out.blame(peer, error.reason)
            return
        if self._is_ours(word):
            # This device signed it before it lost its memory: the present record needs a larger number.
            self._sign(word.number + 1, now)
        else:
            self._keep(word, now)
            if not company.has(word.peer):
                self._bound_strangers(company, word.peer)
        self._look_at(self._told)

    def _is_newer(self, record: Whereabouts, known: Whereabouts) -> bool:
        """Return whether a record replaces the known one; for our own, the same number suffices."""
        is_other = self._is_ours(record) and record != known
        return record.number > known.number or (is_other and record.number == known.number)

    def _is_ours(self, record: Whereabouts) -> bool:
        return record.peer == self._ours

    def _sign(self, number: int, now: float) -> None:
        self._own = sign(self._key, self._listens, number, max(0, int(now * 1000)))
        self._cells.put(_OWN, b"", _encode(self._own))

    def _keep(self, record: Whereabouts, now: float) -> None:
        before = self._heard.pop(record.peer, None)
        kept = self._heard[record.peer] = _Kept(record, now, 0 if before is None else before.told)
        self._cells.put(_HEARD, record.peer, _encode(kept))
        while len(self._heard) > KEPT:
            self._forget(next(iter(self._heard)))

    def _bound_strangers(self, company: Company, peer: PeerId) -> None:
        strangers = self._strangers.setdefault(company.topic, {})
        strangers.pop(peer, None)
        strangers[peer] = None
        while len(strangers) > STRANGERS:
            oldest = next(iter(strangers))
            del strangers[oldest]
            if not company.has(oldest):  # Since then it may have been met.
                self._forget(oldest)

    def _forget(self, peer: PeerId) -> None:
        if self._heard.pop(peer, None) is not None:
            self._turns.pop(peer, None)
            self._cells.delete(_HEARD, peer)
            self._out.record(Record(Kind.EVICTED, peer=peer, reason=Reason.TOO_MANY, note="addresses"))

    def _tell(self, peer: PeerId, company: Company, now: float) -> None:
        told = self._told[peer]
        records: list[Whereabouts] = []
        for owner in dict.fromkeys((self._ours, *company.here, *company.known)):
            record = None if owner == peer else self.heard_of(owner)
            if record is None or told.get(owner, 0) >= record.number:
                continue
            is_own = owner == self._ours
            if record.number == FIRST and (not company.unless_moved if is_own else company.moved_only):
                continue
            told[owner] = record.number
            if is_own:
                self._note_told(peer, record.number)
            records.append(record)
            self._account(peer, is_own, now)
            if len(records) == RECORDS:
                break
        if records:
            self._out.send(peer, Located(company.topic, tuple(records)))

    def _note_told(self, peer: PeerId, number: int) -> None:
        kept = self._heard.get(peer)
        if kept is not None:
            kept = self._heard[peer] = msgspec.structs.replace(kept, told=number)
            self._cells.put(_HEARD, peer, _encode(kept))

    def _hold_untold(self) -> None:
        """Dial those that do not know yet that we have moved, the latest first."""
        number = FIRST if self._own is None else self._own.number
        if number == FIRST:
            return
        untold = [
            peer
            for peer, kept in reversed(self._heard.items())
            if kept.told < number and kept.record.addresses and self._turns.get(peer, 0) < TURNS
        ]
        if not untold:
            return
        self._sought = tuple(untold[:SOUGHT])
        for peer in self._sought:
            self._turns[peer] = self._turns.get(peer, 0) + 1
            self._out.hold(peer, (), _PURPOSE)
        self._out.set_timer(SEEKING, LetGoDue())

    def _look_at(self, peers: Iterable[PeerId]) -> None:
        for peer in peers:
            self._due[peer] = 0
        self._set_timer()

    def _set_timer(self) -> None:
        if self._due:
            self._out.set_timer(LOOKS[min(self._due.values())], LookDue())
