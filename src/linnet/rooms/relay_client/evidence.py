"""The evidence of one room's member on its relays: what they signed, and what two statements of one prove.

A member keeps the latest signed statements of each relay that it uses: on the events that it gave to the
relay, and on the pages that it read there. It notices events that came from others and that a relay it reads
has not shown for a while, and asks online members whether the relay has signed that it took them. Their
statement and our page then prove what the relay withholds. A proof is kept, passed on once, and told.

Nothing here is guessed. An event that a relay has not shown is no fault of the relay, as long as nobody has a
statement of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec
from msgspec import Struct

from linnet.core.errors import CellsDamaged, InvalidEvent, RemoteError
from linnet.core.ids import AuthorId, EventId, PeerId, TopicId
from linnet.core.limits import KIB
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.machine.outbox import Notice, Outbox
from linnet.rooms.config import RoomsConfig
from linnet.rooms.guests import Guest
from linnet.rooms.messages import ASKED, SHOWN, AskStatements, RelayProof, RoomTimer, StatementsAre
from linnet.rooms.relay_statements import (
    LINES,
    Contradiction,
    LineId,
    RelayFault,
    RelayStatement,
    check_statement,
    find_contradiction,
)
from linnet.trace.records import Kind, Record

RELAYS = 16
"""The most relays of one room whose statements are kept; the one heard longest ago gives way."""
STATEMENTS = 128
"""The most statements of one relay that are kept; the oldest give way."""
STATEMENT_BYTES = 256 * KIB
"""The most bytes of them."""
FAULT_BYTES = 128 * KIB
"""The most bytes of a proof that is kept and passed on."""
UNSHOWN = 256
"""The most events that a relay has not shown and that are still asked about; the oldest give way."""
_TRIES = 3
"""How often others are asked about one event."""
_ASKED_PEERS = 3
"""How many members are asked each time."""

_encode = msgspec.msgpack.Encoder().encode
_decode_statement = msgspec.msgpack.Decoder(RelayStatement).decode


class CompareDue(RoomTimer, frozen=True, gc=False):
    """Timer: relays have had time to show what we learned of from others."""


class FaultFound(Notice, frozen=True, gc=False):
    """Two statements of a relay contradict each other: tell the application, and use the relay last."""

    relay: PeerId
    reason: Reason
    event: EventId | None


class KeptFault(Struct, frozen=True, array_like=True, gc=False):
    """A proof against a relay, as it is stored."""

    reason: Reason
    event: EventId | None
    at: float
    """When we learned of it."""
    fault: RelayFault


_decode_fault = msgspec.msgpack.Decoder(KeptFault).decode


class _Unshown(Struct, array_like=True):
    """An event that a relay has not shown, and that came from others."""

    author: AuthorId
    at: float
    """When it came, by our clock."""
    tries: int = 0
    is_kept: bool = False
    """Whether it is stored: only those are that the relay had time to show."""


_decode_unshown = msgspec.msgpack.Decoder(_Unshown).decode


class _Relay(Struct):
    """What is known of one relay."""

    statements: dict[int, RelayStatement] = {}
    sizes: dict[int, int] = {}
    next: int = 0
    bytes: int = 0
    unshown: dict[EventId, _Unshown] = {}
    anew: int = 0
    """How often it began anew since this node started, without going on from what it had signed before; or
    signed to others what does not go on from what it signed to us."""
    newest: dict[LineId, RelayStatement] = {}
    """The statement with the most events that is known of each line, from whomever it came."""
    is_behind: bool = False
    """Whether its last answer was older than what it had signed: it is asked once more."""


class Evidence:
    """The statements of one room's relays that this member keeps, and the proofs against them."""

    def __init__(self, room: TopicId, config: RoomsConfig, cells: Cells, out: Outbox) -> None:
        self._room = room
        self._config = config
        self._cells = cells
        self._out = out
        self._said, self._proved = f"relay.said/{room.hex()}", f"relay.proved/{room.hex()}"
        self._missed = f"relay.unshown/{room.hex()}"
        self._relays: dict[PeerId, _Relay] = {}
        self._asked: dict[PeerId, dict[PeerId, None]] = {}
        """By member, the relays that it was asked about and has not answered for."""
        self._is_armed = False
        self.faults: dict[tuple[PeerId, Reason], KeptFault] = {}
        """The proofs, one for a relay and reason."""
        for key, raw in self._read(self._said):
            self._put(PeerId(key[:32]), int.from_bytes(key[32:], "big"), _decode_statement(raw), len(raw))
        for known in self._relays.values():
            for said in known.statements.values():
                _note_newest(known, said)
        for key, raw in self._read(self._proved):
            kept = _decode_fault(raw)
            self.faults[PeerId(key[:32]), kept.reason] = kept

        for key, raw in self._read(self._missed):
            relay = self._relays.get(PeerId(key[:32]))
            if relay is not None:
                relay.unshown[EventId(key[32:])] = _decode_unshown(raw)

    def _read(self, space: str) -> list[tuple[bytes, bytes]]:
        try:
            return list(self._cells.scan(space))
        except CellsDamaged as damage:
            for key in damage.keys:
                self._cells.delete(space, key)
            return list(damage.sound)

    def is_caught(self, relay: PeerId) -> bool:
        """Return whether a relay lies for certain: it is proved to, or has told us so. A loss is no lie."""
        lies = (Reason.WITHHELD, Reason.EQUIVOCATION, Reason.STALE)
        return any((relay, reason) in self.faults for reason in lies)

    def fault_of(self, relay: PeerId) -> KeptFault | None:
        """Return the gravest fault of a relay."""
        order = (Reason.WITHHELD, Reason.EQUIVOCATION, Reason.STALE, Reason.LOST)
        return next((found for reason in order if (found := self.faults.get((relay, reason)))), None)

    def signs(self, relay: PeerId) -> bool:
        """Return whether a relay has ever given us a signed statement that we still have."""
        return relay in self._relays and bool(self._relays[relay].statements)

    def times_anew(self, relay: PeerId) -> int:
        """Return how often a relay began anew since this node started."""
        return self._relays[relay].anew if relay in self._relays else 0

    def statements(self, relay: PeerId) -> Iterator[RelayStatement]:
        """Yield the kept statements of a relay, oldest first."""
        if relay in self._relays:
            yield from self._relays[relay].statements.values()

    # What relays say.

    def note_statement(self, relay: PeerId, said: RelayStatement | None, now: float) -> RelayStatement | None:
        """Check and keep a relay's statement to us, and compare it with its earlier ones.

        Returns it, if the relay made it.
        """
        if said is None:
            return None
        try:
            check_statement(self._room, relay, said)
        except RemoteError as error:
            self._reject(relay, error.reason)
            return None
        known = self._relays.setdefault(relay, _Relay())
        for earlier in known.statements.values():
            if self._compare(relay, earlier, said, now):
                break
        self._note_line(known, said)
        _note_newest(known, said)
        if said.reach is not None:
            for each in said.held:
                self._forget_unshown(relay, known, each.event)
        self._keep(relay, known, said)
        return said

    def is_behind(self, relay: PeerId, said: RelayStatement | None, now: float) -> bool:
        """Return whether a relay's answer to us must be asked for again: it has signed more than it shows.

        The answer may have been on its way when we learned of that. If the next one is no better, the relay
        shows an old state: that is certain to us, and nobody else can see when we asked.
        """
        known = self._relays.get(relay)
        newest = None if known is None or said is None else known.newest.get(said.line)
        if known is None or said is None or newest is None or newest.count <= said.count:
            if known is not None:
                known.is_behind = False
            return False
        if (relay, Reason.STALE) in self.faults:
            return False  # It is asked no oftener than other relays.
        if known.is_behind:
            fault = RelayFault(newest, said)
            self._note(relay, Contradiction(Reason.STALE, None), fault, None, now)
            return False
        known.is_behind = True
        return True

    def _note_line(self, known: _Relay, said: RelayStatement) -> None:
        last = next(reversed(known.statements.values()), None)
        if last is not None and not said.has_continued(last) and not said.has_gone_back(last):
            known.anew += 1

    def _keep(self, relay: PeerId, known: _Relay, said: RelayStatement) -> None:
        """Keep a statement. A page without events, read from the same position on, replaces the last one."""
        last = next(reversed(known.statements), None)
        if last is not None and _covers(said, known.statements[last]):
            self._drop(relay, known, last)
        raw = _encode(said)
        number = known.next
        self._put(relay, number, said, len(raw))
        self._cells.put(self._said, relay + number.to_bytes(8, "big"), raw)
        while len(known.statements) > STATEMENTS or known.bytes > STATEMENT_BYTES:
            self._drop(relay, known, next(iter(known.statements)))
        if len(self._relays) > RELAYS:
            self.forget(next(each for each in self._relays if each != relay))

    def _put(self, relay: PeerId, number: int, said: RelayStatement, size: int) -> None:
        known = self._relays.setdefault(relay, _Relay())
        known.statements[number], known.sizes[number] = said, size
        known.bytes += size
        known.next = number + 1

    def _drop(self, relay: PeerId, known: _Relay, number: int) -> None:
        del known.statements[number]
        known.bytes -= known.sizes.pop(number)
        self._cells.delete(self._said, relay + number.to_bytes(8, "big"))

    def forget(self, relay: PeerId) -> None:
        """Forget the statements of a relay; proofs stay."""
        known = self._relays.pop(relay, None)
        if known is None:
            return
        for number in known.statements:
            self._cells.delete(self._said, relay + number.to_bytes(8, "big"))
        for event in list(known.unshown):
            self._forget_unshown(relay, known, event)

    # What others say.

    def note_event(
        self, event: EventId, author: AuthorId, used: Iterable[PeerId], source: PeerId | None, now: float
    ) -> None:
        """Note an event that came from a peer: the relays in use, apart from it, should show it as well."""
        for relay in used:
            if relay == source or not self.signs(relay):
                continue
            unshown = self._relays[relay].unshown
            unshown[event] = _Unshown(author, now)
            if len(unshown) > UNSHOWN:
                self._forget_unshown(relay, self._relays[relay], next(iter(unshown)))
            self._arm(self._config.relay_timeout)

    def _forget_unshown(self, relay: PeerId, known: _Relay, event: EventId) -> None:
        unshown = known.unshown.pop(event, None)
        if unshown is not None and unshown.is_kept:
            self._cells.delete(self._missed, relay + event)

    def _keep_unshown(self, relay: PeerId, event: EventId, unshown: _Unshown) -> None:
        unshown.is_kept = True
        self._cells.put(self._missed, relay + event, _encode(unshown))

    def handle_timer(self, guests: Mapping[PeerId, Guest], now: float) -> None:
        """Ask members about events that relays have not shown although they had the time."""
        self._is_armed = False
        able = {peer: guest for peer, guest in guests.items() if guest.compares and not guest.relay}
        old = now - self._config.relay_timeout
        is_young = False
        for relay, known in self._relays.items():
            due = {event: each for event, each in known.unshown.items() if not old < each.at <= now}
            is_young |= len(due) < len(known.unshown)
            for event, each in due.items():
                if not each.is_kept:
                    self._keep_unshown(relay, event, each)
            chosen = dict(list(due.items())[:ASKED])
            if not chosen or not able:
                continue
            self._ask(relay, chosen, able)
            for event, each in chosen.items():
                each.tries += 1
                if each.tries >= _TRIES:
                    self._forget_unshown(relay, known, event)
                else:
                    self._keep_unshown(relay, event, each)
        if is_young:
            self._arm(self._config.relay_timeout)
        elif able and self._has_unshown:
            self._arm(self._config.announce_period)

    @property
    def _has_unshown(self) -> bool:
        return any(known.unshown for known in self._relays.values())

    def _ask(self, relay: PeerId, events: dict[EventId, _Unshown], able: Mapping[PeerId, Guest]) -> None:
        """Ask a few members about events of a relay, their authors first."""
        authors = {each.author for each in events.values()}
        order = sorted(able, key=lambda peer: able[peer].person not in authors)
        for peer in order[:_ASKED_PEERS]:
            self._asked.setdefault(peer, {})[relay] = None
            self._out.send(peer, AskStatements(self._room, relay, tuple(events)))

    def handle_question(self, peer: PeerId, asked: AskStatements) -> None:
        """Show a member our statements of a relay that say it took one of these events."""
        found = [
            said
            for said in self.statements(asked.relay)
            if any(each.event in asked.events for each in said.held)
        ]
        # What we have may not be durable yet.
        self._out.committed.send(peer, StatementsAre(self._room, asked.relay, tuple(found[-SHOWN:])))

    def handle_answer(self, peer: PeerId, answer: StatementsAre, now: float) -> None:
        """Compare another member's statements of a relay with ours."""
        if self._asked.get(peer, {}).pop(answer.relay, self) is self:
            self._out.record(Record(Kind.REJECTED, self._room, peer=peer, reason=Reason.STALE))
            return
        for theirs in answer.statements:
            try:
                check_statement(self._room, answer.relay, theirs)
            except RemoteError as error:
                self._reject(peer, error.reason)
                return
            known = self._relays.get(answer.relay)
            if known is not None:
                last = next(reversed(known.statements.values()), None)
                if last is not None and theirs.line not in known.newest and _is_apart(theirs, last):
                    known.anew += 1
                _note_newest(known, theirs)
            for ours in self.statements(answer.relay):
                if self._compare(answer.relay, theirs, ours, now) or self._compare(
                    answer.relay, ours, theirs, now
                ):
                    break

    def handle_proof(self, peer: PeerId, proof: RelayProof, is_relay: bool, now: float) -> None:
        """Take in a proof of a member, or blame it for a false one. `is_relay`: the room's state names it."""
        fault = proof.fault
        try:
            if not is_relay:
                raise InvalidEvent(Reason.NOT_A_RELAY, "a proof against a device that is no relay")
            found = find_contradiction(fault.first, fault.second)
            if found is None:
                raise InvalidEvent(Reason.MALFORMED, "two statements that agree prove nothing")
            if (proof.relay, found.reason) in self.faults:
                return
            check_statement(self._room, proof.relay, fault.first)
            check_statement(self._room, proof.relay, fault.second)
        except RemoteError as error:
            if error.reason is Reason.NOT_A_RELAY:  # It may know more of the room's state than we do.
                self._out.record(
                    Record(Kind.REJECTED, self._room, peer=peer, reason=error.reason, note="relay proof")
                )
            else:
                self._reject(peer, error.reason)
            return
        self._note(proof.relay, found, fault, peer, now)

    def greet(self, peer: PeerId, is_relay: Iterable[PeerId]) -> None:
        """Show a member that greets the proofs against present relays; it may answer what we ask."""
        if self._has_unshown:
            self._arm(self._config.relay_timeout)
        relays = tuple(is_relay)
        for (relay, reason), kept in self.faults.items():
            if relay in relays and reason is not Reason.STALE:
                self._out.committed.send(peer, RelayProof(self._room, relay, kept.fault))

    def handle_link_down(self, peer: PeerId) -> None:
        """Forget what a member was asked: its link is gone."""
        self._asked.pop(peer, None)

    def stop(self) -> None:
        """Compare no more: we have left, or the node stops."""
        self._out.cancel_timer(CompareDue(self._room))
        self._is_armed = False

    # Proofs.

    def _compare(self, relay: PeerId, first: RelayStatement, second: RelayStatement, now: float) -> bool:
        found = find_contradiction(first, second)
        if found is None or (relay, found.reason) in self.faults:
            return False
        self._note(relay, found, RelayFault(first, second), None, now)
        return True

    def _note(
        self, relay: PeerId, found: Contradiction, fault: RelayFault, source: PeerId | None, now: float
    ) -> None:
        kept = KeptFault(found.reason, found.event, now, fault)
        raw = _encode(kept)
        self.faults[relay, found.reason] = kept
        is_kept = len(raw) <= FAULT_BYTES
        is_proof = found.reason is not Reason.STALE
        if is_kept:
            self._cells.put(self._proved, relay + found.reason.encode(), raw)
        note = FAULT_NOTES[found.reason] + ("" if is_kept else "; the proof is too large to be kept")
        record = Record(Kind.REJECTED, self._room, found.event, peer=relay, reason=found.reason, note=note)
        self._out.record(record)
        self._out.notify(FaultFound(relay, found.reason, found.event))
        if is_kept and is_proof:
            self._out.notify(SpreadFault(source, RelayProof(self._room, relay, fault)))

    def _reject(self, peer: PeerId, reason: Reason) -> None:
        note = "signed statement of a relay"
        self._out.record(Record(Kind.REJECTED, self._room, peer=peer, reason=reason, note=note))
        self._out.blame(peer, reason)

    def _arm(self, seconds: float) -> None:
        if not self._is_armed:
            self._is_armed = True
            self._out.set_timer(seconds, CompareDue(self._room))


class SpreadFault(Notice, frozen=True, gc=False):
    """Pass a new proof on to the members that are online, apart from its source."""

    source: PeerId | None
    proof: RelayProof


FAULT_NOTES = {
    Reason.WITHHELD: "a relay withholds what it signed to have taken",
    Reason.EQUIVOCATION: "a relay signed two histories",
    Reason.STALE: "a relay shows an older state than it has signed",
    Reason.LOST: "a relay went on from an older state and lost what it had signed",
}
"""The notes of the records that tell of faults."""


def _note_newest(known: _Relay, said: RelayStatement) -> None:
    newest = known.newest.get(said.line)
    if newest is None or newest.count < said.count:
        known.newest[said.line] = said
    if len(known.newest) > LINES:
        del known.newest[next(iter(known.newest))]


def _is_apart(one: RelayStatement, other: RelayStatement) -> bool:
    """Return whether neither of two statements goes on from the other."""
    lines = {each.line for each in (*one.past, *other.past)} | {one.line}
    return other.line not in lines and one.line not in {each.line for each in other.past}


def _covers(said: RelayStatement, last: RelayStatement) -> bool:
    """Return whether a page says all that the last statement says: neither holds an event."""
    if said.reach is None or last.reach is None or said.held or last.held:
        return False
    return said.line == last.line and said.reach.after <= last.reach.after <= said.reach.upto
