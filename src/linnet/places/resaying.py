"""What this device said in a term that was cut: said again in its next, in the same order (decision 0018).

Each message is said again once, however often terms are cut and nodes crash: it names the event that it began
with when it was said first, and what was said again under that name is remembered beside the orphans.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from linnet.core.errors import RemoteError
from linnet.core.ids import AuthorId, EventId
from linnet.core.reasons import Reason
from linnet.places.channel.fragment_store import Row
from linnet.places.channel.packet import LARGEST_HEADER, Header, Modifier, Packet, parse_section, read_header
from linnet.places.items import AGAIN
from linnet.places.multicast.fragmentation import Change, Flag, head_of
from linnet.places.parts import Parts
from linnet.places.speaking import KEEPALIVE, NOTICE_VOICE, Speaking, Spoken
from linnet.trace.records import Kind, Record

_SAID = "place said again"


class Orphan(NamedTuple):
    """A message of ours that is not in the line."""

    rows: list[Row]
    """Its pieces that were taken out, in order."""

    @property
    def message(self) -> int:
        """The number that it had."""
        return self.rows[0].message


class _Words(NamedTuple):
    first: EventId
    """The event that it began with when it was said for the first time."""
    change: Change | None
    header: Header
    packet: Packet
    body: bytes
    has_begun: bool
    """Whether its beginning is in the line, and so its changes of state are applied."""


def orphans(parts: Parts) -> list[Orphan]:
    """Messages of this device that were taken out of the line, in the order in which they were said."""
    found: dict[tuple[int, int], list[Row]] = {}
    for row in parts.fragments.orphans():
        if row.flags & Flag.KEYS:
            continue  # of a term that does not count: the next one has keys of its own
        if _is_ours(parts, row):
            found.setdefault((row.term, row.message), []).append(row)
    return [Orphan(rows) for rows in found.values()]


def forget_idle(parts: Parts) -> bool:
    """Forget signs of life and the like among them; whether anything is left that has to be said again."""
    left = False
    for orphan in orphans(parts):
        try:
            words = _words(parts, orphan)
        except RemoteError:
            words = None  # written down when its turn comes
        if words is not None and words.packet.method in (KEEPALIVE, NOTICE_VOICE):
            for row in orphan.rows:
                parts.fragments.forget_orphan(row)
        else:
            left = True
    return left


def say_again(
    parts: Parts, speaking: Speaking, orphan: Orphan, now: float
) -> tuple[list[Spoken], Record | None]:
    """Say one of them again, unless it stands by now; what leaves, and what is to be written down."""
    for row in orphan.rows:
        parts.fragments.forget_orphan(row)
    try:
        words = _words(parts, orphan)
    except RemoteError as error:
        return [], _dropped(parts, orphan, error.reason, error.detail)
    if words is None:
        return [], _dropped(parts, orphan, Reason.STALE, "its term ended before it did")
    if _stands(parts, words.first):
        return [], None
    if words.change is not None:
        spoken = _change(parts, speaking, words.change, orphan.message, now)
    else:
        spoken = _announce(parts, speaking, words, now)
    if spoken:
        # Behind keys that have to be told first, if any.
        said = next(verified for verified, head in spoken if not head.flags & Flag.KEYS)
        parts.context.store.cells.put(_SAID, parts.id + words.first, said.head)
    return spoken, None


def _announce(parts: Parts, speaking: Speaking, words: _Words, now: float) -> list[Spoken]:
    kept = [each for each in words.packet.modifiers if each.name != AGAIN]
    if words.has_begun:
        kept = [each for each in kept if not each.is_persistent]
    # A first change of state has no distance, too; others may have changed it first by now. See `Speaking`.
    reset = words.header.delta == 0 and words.header.hash is not None and not words.has_begun
    modifiers = (*kept, Modifier(":", AGAIN, words.first.hex().encode()))
    return speaking.announce(words.packet.method, modifiers, words.body, reset, False, now)[1]


def _change(parts: Parts, speaking: Speaking, change: Change, message: int, now: float) -> list[Spoken]:
    changes = parts.membership.changes(change.nym)
    is_in = bool(changes) and changes[-1].joins
    if change.joins == is_in:
        return []  # somebody else said so meanwhile
    if not change.joins:
        return speaking.parted(AuthorId(change.nym), now)[1]
    # Numbers are others now: what it could see from then on, it can see from now on at the latest.
    is_late = change.effective_since > parts.fragments.standing.message
    since = None if change.effective_since == message or is_late else change.effective_since
    return speaking.joined(AuthorId(change.nym), since, now)[1]


def _words(parts: Parts, orphan: Orphan) -> _Words | None:
    """What a message said, all of it; None if it had not ended."""
    # The same number of the same term may be another's message, who opened this term too and counts; or ours,
    # of a term that we had to open again behind another fragment: then all of this one is orphaned.
    begun = () if orphan.rows[0].is_first else parts.fragments.message(orphan.message)
    standing = [row for row in begun if row.term == orphan.rows[0].term and _is_ours(parts, row)]
    rows = sorted([*standing, *orphan.rows], key=lambda row: row.offset)
    text = bytearray()
    for row in rows:
        piece = parts.assembly.read(row)
        if piece is None or row.offset != len(text):
            return None
        text += piece
    if not rows[-1].is_last:
        return None
    found = read_header(bytes(text[:LARGEST_HEADER]), parts.config)
    verified = parts.fragments.verified(rows[0])
    if found is None or verified is None:
        return None
    header, begin = found
    end = begin + header.modifier_bytes
    packet = parse_section(bytes(text[begin:end]), parts.config)
    first = _first(packet) or rows[0].event
    has_begun = bool(standing) and standing[-1].end >= end
    return _Words(first, head_of(verified.events[0]).change, header, packet, bytes(text[end:]), has_begun)


def _is_ours(parts: Parts, row: Row) -> bool:
    """Whether this device said it."""
    unit, context = parts.fragments.unit(row), parts.context
    return unit is not None and (unit.author, unit.device) == (context.author, context.device)


def _first(packet: Packet) -> EventId | None:
    """The event that a message began with that is said again; None if it is said for the first time."""
    again = [each.value for each in packet.modifiers if each.name == AGAIN]
    if not again or not re.fullmatch(rb"[0-9a-f]{64}", again[0]):
        return None
    return EventId(bytes.fromhex(again[0].decode()))


def _stands(parts: Parts, first: EventId) -> bool:
    """Whether a message is in the line, as it was said first or as it was said again."""
    again = parts.context.store.cells.get(_SAID, parts.id + first)
    return any(
        parts.is_in_line(event) and parts.fragments.is_whole(spoken.message)
        for event in (first, None if again is None else EventId(again))
        if event is not None and (spoken := parts.spoken(event)) is not None
    )


def _dropped(parts: Parts, orphan: Orphan, reason: Reason, detail: str) -> Record:
    note = f"message {orphan.message} is not said again: {detail}"[:200]
    return Record(Kind.DROPPED, parts.id, orphan.rows[0].event, reason=reason, note=note)
