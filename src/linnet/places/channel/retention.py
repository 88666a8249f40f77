"""What of a place may go when it has more bytes than it may keep.

Never: what changes state behind the last verified hash, the changes of membership that are in force,
and the last fragment of each device, behind which its chain goes on. What tells keys goes last, when nothing
else is left that may go: whoever lacks a key can ask the voice for it.
"""

from __future__ import annotations

from linnet.core.ids import DeviceId
from linnet.core.reasons import Reason
from linnet.core.stores import Entry, EventLog
from linnet.event.signing import decode_unit, recall_unit
from linnet.places.channel.fragment_store import Fragments, Row
from linnet.places.channel.membership import Membership
from linnet.places.multicast.fragmentation import Flag, Head, head_of
from linnet.trace.records import Kind, Record

EVICT_UNITS = 256
"""Fragments that one look removes or moves: a bound on the time it takes."""

ORPHANS = 4096
"""Fragments of others that were taken out of the line and are held, since their term may count again."""


def forget_orphans(fragments: Fragments, ours: DeviceId, most: int = ORPHANS) -> list[Record]:
    """Of what others said and has no place in the line only so much is held: their authors say it again."""
    held = fragments.orphans()
    if len(held) <= most:
        return []
    units = ((row, fragments.unit(row)) for row in held)
    others = [row for row, unit in units if unit is None or unit.device != ours]
    surplus = others[: max(0, len(others) - most)]
    for row in surplus:
        fragments.forget_orphan(row)
    note = f"{len(surplus)} orphaned fragments of others are held no more"
    return [Record(Kind.EVICTED, fragments.place, reason=Reason.QUOTA, note=note)] if surplus else []


def retain(
    fragments: Fragments,
    membership: Membership,
    log: EventLog,
    max_bytes: int,
    most: int = EVICT_UNITS,
    before: float | None = None,
    state: bool = True,
) -> list[Record]:
    """Evict the oldest fragments of a place until its bytes fit, or all that is left must stay.

    With `before` also those that were stored earlier, though there is room for them. Without `state` what
    changes state may go, too: a keeper cannot tell which of it still counts.

    The log forgets from its beginning only: what must stay is appended again, as it was.
    """
    place = fragments.place
    tips = {head.head: None for head in log.heads(place)}
    moved: dict[bytes, int] = {}
    """How often each fragment that must stay was met."""
    gone: list[Record] = []
    for _ in range(most):
        evicted = log.evict(place, before, max_bytes, 1)
        if not evicted:
            break
        entry = evicted[0]
        head = head_of(recall_unit(decode_unit(entry.raw)).events[0])
        row = fragments.get(head.fragment)
        row = row if row is not None and row.event == entry.head else None
        times = moved.get(entry.head, 0)
        # All was met once, or as much of it as one look may cost: it is keys that are too many.
        full = log.kept(place).bytes + len(entry.raw) > max_bytes and (times > 0 or 2 * len(moved) >= most)
        must = row is not None and _must_stay(fragments, membership, head, state, keys=not full)
        if must or entry.head in tips:
            position = log.append(entry)
            if row is not None and position is not None:
                fragments.moved(row, position)
            if times > 1:
                break
            moved[entry.head] = times + 1
            continue
        _forget(fragments, row, entry)
        is_old = before is not None and entry.stored_at < before
        gone.append(_record(entry, Reason.RETENTION if is_old else Reason.QUOTA))
    return gone


def _must_stay(fragments: Fragments, membership: Membership, head: Head, state: bool, keys: bool) -> bool:
    if (state and fragments.state.needs(head.message)) or (keys and head.flags & Flag.KEYS):
        return True
    return head.change is not None and membership.matters(head.change.nym, head.message)


def _forget(fragments: Fragments, row: Row | None, entry: Entry) -> None:
    if row is not None:
        fragments.evicted(row)
        return
    for orphan in fragments.orphans():
        if orphan.event == entry.head:
            fragments.forget_orphan(orphan)


def _record(entry: Entry, reason: Reason) -> Record:
    return Record(
        Kind.EVICTED,
        entry.topic,
        entry.head,
        entry.device,
        entry.first,
        bytes=len(entry.raw),
        reason=reason,
    )
