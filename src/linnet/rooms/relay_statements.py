"""Signed statements of relays: what one took in of a room, and what it shows of it. Two may prove a lie.

A relay signs each answer to a member that asks for it. The answer to events says which of them it keeps, and
at which positions of its log. A page says that the events it lists are all that the relay keeps between two
positions. Who holds one of each, from the same relay, can compare them: an event that was taken at a position
and is missing from a page over this position is withheld. Both statements together prove that to everybody.

A statement also commits to all that came before it: by the number of events that the relay ever took of the
room, and a running digest of them. Two statements with the same number and different digests show that the
relay leads two histories.

An honest relay must never be proved a liar. So a statement names its line: the run of the relay in which it
was made. A relay that starts again begins a line, which continues an older one up to the number of events
that are in its store. Of events past that number it owes nothing: its store was lost, or is an older copy.
Statements of lines that do not continue each other prove nothing. Nor is an event owed that the page says was
let go (`Reach.floor`), or is damaged (`Reach.gone`). No clock is involved.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from linnet.core.ids import Count, EventId, PeerId, TopicId, WireEventId, WireSignature
from linnet.core.reasons import Reason
from linnet.delivery.messages import Digest
from linnet.identity.keys import SigningKey, verify

LINES = 8
"""The most earlier lines that a statement names: of what a relay took before them it owes no proof."""
HELD = 1024
"""The most events in one statement: as many as an answer has."""

LineId = Annotated[bytes, Meta(min_length=8, max_length=8)]
_TAG = b"linnet/relay statement/1"
_encode = msgspec.msgpack.Encoder().encode


class Line(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """An earlier run of a relay, and how many events it had taken when the next run went on from it."""

    line: LineId
    count: Count


class HeldEvent(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """An event that a relay has taken, or still keeps."""

    event: WireEventId
    position: Count
    control: bool
    """Whether it is a control event, which a relay never lets go."""


class NotHeld(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """An event that a relay has refused."""

    event: WireEventId
    reason: Reason


class Reach(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """The part of its log of which a relay names all events, past one position and up to another.

    Operations on keys are not named: a relay lets each go once all devices have it.
    """

    after: Count
    upto: Count
    floor: Count
    """Up to here the relay may have let events go: by age, or for lack of room."""
    gone: Annotated[tuple[WireEventId, ...], Meta(max_length=HELD)]
    """Events that are damaged in its store."""


class RelayStatement(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """What a relay says of one room, signed."""

    line: LineId
    count: Count
    """The events that it ever took of the room."""
    digest: Digest
    """A running digest of them, in their order."""
    past: Annotated[tuple[Line, ...], Meta(max_length=LINES)]
    """The earlier lines that this one continues, the latest first."""
    at_ms: Count
    """The relay's own time, for people; nothing follows from it."""
    held: Annotated[tuple[HeldEvent, ...], Meta(max_length=HELD)]
    """In an answer: the sent events that it keeps. In a page: all events within reach."""
    refused: Annotated[tuple[NotHeld, ...], Meta(max_length=HELD)]
    reach: Reach | None
    """The part of its log that a page shows; None in an answer to events."""
    sig: WireSignature

    def holds(self, event: EventId) -> bool:
        """Return whether it says that the relay took an event."""
        return any(each.event == event for each in self.held)

    def has_continued(self, earlier: RelayStatement) -> bool:
        """Return whether the relay still had all that it had taken by an earlier statement."""
        if earlier.line == self.line:
            return True
        return any(each.line == earlier.line and each.count >= earlier.count for each in self.past)

    def has_gone_back(self, earlier: RelayStatement) -> bool:
        """Return whether the relay went on from a point before an earlier statement, and lost the rest."""
        return any(each.line == earlier.line and each.count < earlier.count for each in self.past)


class RelayFault(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """Two statements of one relay that contradict each other."""

    first: RelayStatement
    second: RelayStatement


class Contradiction(Struct, frozen=True, gc=False):
    """What two statements of one relay prove."""

    reason: Reason
    """``withheld``: the second hides an event that the first says was taken. ``equivocation``: the relay
    leads two histories. ``lost``: it went on from an older state, and so lost what it had taken; a restored
    copy of its store has the same effect, so this is told and proves no lie."""
    event: EventId | None
    """The event that is withheld."""


def sign_statement(key: SigningKey, room: TopicId, unsigned: RelayStatement) -> RelayStatement:
    """Return a statement with the signature of the relay's device."""
    return msgspec.structs.replace(unsigned, sig=key.sign(_signed(room, key.public, unsigned)))


def check_statement(room: TopicId, relay: PeerId, statement: RelayStatement) -> None:
    """Raise `RemoteError` unless this relay made a statement on this room."""
    verify(relay, _signed(room, relay, statement), statement.sig)


def _signed(room: TopicId, relay: bytes, said: RelayStatement) -> bytes:
    parts = (said.line, said.count, said.digest, said.past, said.at_ms, said.held, said.refused, said.reach)
    return _TAG + _encode((room, relay, *parts))


def find_contradiction(first: RelayStatement, second: RelayStatement) -> Contradiction | None:
    """Return what two statements of one relay on one room prove in this order, or None.

    The order counts: `first` is the one that says what was taken.
    """
    is_same_point = (first.line, first.count) == (second.line, second.count)
    if is_same_point and first.digest != second.digest:
        return Contradiction(Reason.EQUIVOCATION, None)
    if second.has_gone_back(first):
        return Contradiction(Reason.LOST, None)
    reach = second.reach
    if reach is None or not second.has_continued(first):
        return None
    owed = [
        each.event
        for each in first.held
        if reach.after < each.position <= reach.upto and (each.control or each.position > reach.floor)
    ]
    if not owed:
        return None
    shown = {*(each.event for each in second.held), *reach.gone}
    hidden = next((event for event in owed if event not in shown), None)
    return None if hidden is None else Contradiction(Reason.WITHHELD, hidden)
