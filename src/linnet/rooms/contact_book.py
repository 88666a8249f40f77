"""Where the devices of a room's members may be dialled, and when each was met last.

What a device says of itself counts before what others say of it, and only devices that were met are told
to others: so nobody can fill the books of a room with addresses that are none.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Struct

from linnet.core.ids import AuthorId, Contact, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.machine.outbox import Outbox
from linnet.trace.records import Kind, Record

BOOK = 1024
"""Devices of one room that are remembered."""
_HINTS = 8
_OWN_HINTS = 6
"""Of these its own, if others say something else: it may have moved while we were away."""
_MET_AGAIN = 60.0
"""Seconds by which it has to be later that a device was met, for it to be written."""

_encode = msgspec.msgpack.Encoder().encode


class Known(Struct, frozen=True, array_like=True, gc=False):
    """One device."""

    hints: tuple[str, ...] = ()
    """Where it says that it may be dialled."""
    told: tuple[str, ...] = ()
    """Where others have met it, as the last of them says."""
    person: AuthorId | None = None
    met: float | None = None
    """When it was last here; None: never."""

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where to dial it."""
        own = self.hints[:_OWN_HINTS] if self.told else self.hints
        return tuple(dict.fromkeys((*own, *self.told)))[:_HINTS]


_decode = msgspec.msgpack.Decoder(Known).decode


class ContactBook:
    """The devices of one room; kept over restarts."""

    def __init__(self, room: TopicId, cells: Cells, out: Outbox) -> None:
        self._room = room
        self._cells = cells
        self._out = out
        self._space = f"contacts {room.hex()}"
        self._known: dict[PeerId, Known] = {
            PeerId(key): _decode(value) for key, value in cells.scan(self._space)
        }
        self._written = dict(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, peer: PeerId) -> bool:
        return peer in self._known

    def find(self, peer: PeerId) -> Known | None:
        """What is known of a device."""
        return self._known.get(peer)

    def contact(self, peer: PeerId) -> Contact:
        """Where to dial a device that is known."""
        return Contact(peer, self._known[peer].addresses)

    def met_since(self, since: float) -> int:
        """How many devices were met since a time."""
        return sum(known.met is not None and known.met >= since for known in self._known.values())

    def by_freshness(self) -> list[PeerId]:
        """All devices, those met last first, those never met at the end."""
        return sorted(self._known, key=lambda peer: -(self._known[peer].met or 0.0))

    def devices_of(self, person: AuthorId) -> list[PeerId]:
        """The devices of a person, as far as it is known whose they are."""
        return [peer for peer, known in self._known.items() if known.person == person]

    def note_hearsay(self, contact: Contact) -> PeerId | None:
        """Note where a device was met, as somebody says; the device that has no place any more, if any."""
        old = self._known.get(contact.peer, Known())
        if not contact.hints or contact.hints in (old.told, old.hints):
            return None
        return self._put(contact.peer, msgspec.structs.replace(old, told=contact.hints))

    def note_meeting(self, contact: Contact, person: AuthorId, now: float) -> PeerId | None:
        """Note that a device is here, and its addresses as it says; the device that gave way, if any."""
        return self._put(contact.peer, Known(contact.hints, (), person, now))

    def forget(self, peer: PeerId) -> None:
        """Forget a device that is none of the room."""
        self._known.pop(peer, None)
        if self._written.pop(peer, None) is not None:
            self._cells.delete(self._space, peer)

    def share(self, most: int, first: Iterable[Contact] = ()) -> tuple[Contact, ...]:
        """Contacts to tell others: these, then devices that were met and may be dialled, latest first."""
        chosen = {contact.peer: contact for contact in first if contact.hints}
        for peer in self.by_freshness():
            known = self._known[peer]
            if known.met is not None and known.hints:
                chosen.setdefault(peer, Contact(peer, known.hints))
        return tuple(chosen.values())[:most]

    def _put(self, peer: PeerId, known: Known) -> PeerId | None:
        evicted: PeerId | None = None
        if peer not in self._known and len(self._known) >= BOOK:
            least = min(self._known, key=lambda other: self._known[other].met or 0.0)
            if known.met is None and self._known[least].met is not None:
                self._record_eviction(peer)
                return peer
            self.forget(least)
            self._record_eviction(least)
            evicted = least
        self._known[peer] = known
        self._write(peer, known)
        return evicted

    def _write(self, peer: PeerId, known: Known) -> None:
        old = self._written.get(peer)
        if (
            old is not None
            and (old.hints, old.told, old.person) == (known.hints, known.told, known.person)
            and (known.met or 0.0) - (old.met or 0.0) < _MET_AGAIN
        ):
            return
        self._written[peer] = known
        self._cells.put(self._space, peer, _encode(known))

    def _record_eviction(self, peer: PeerId) -> None:
        self._out.record(Record(Kind.EVICTED, self._room, peer=peer, reason=Reason.TOO_MANY, note="contact"))
