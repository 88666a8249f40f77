"""Keeps links to online members: all of them in a small room, some of them in a large one.

Up to `mesh` online devices a room is a full mesh (`linnet.overlay.full_mesh`). Beyond that the trackers of
the network, if there are any, build a random regular graph for it, as for a stream, and the mesh is let
go once the graph stands; without trackers each device holds links to `mesh` others at random. Every device
that has greeted on an open link is `online`, whatever opened the link, and events are passed on to it.

A device that reaches neither a member nor a relay of a room for a minute asks the trackers as well, if
there are any: all peers may have moved, and a tracker knows where they are now.

There are no timers here: due work is checked whenever something happens.

The contact book has the addresses of the devices of a room's members, and when each was met last. What a
device says of itself counts before what others say of it, and only devices that were met are told
to others: so nobody can fill the books of a room with false addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import assert_never

import msgspec
from msgspec import Struct

from linnet.core.ids import AuthorId, Contact, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.delivery.context import Context
from linnet.machine.outbox import Notice, Outbox
from linnet.overlay.config import DEFAULT_DEGREE, Overlay
from linnet.overlay.full_mesh import FullMesh
from linnet.overlay.notices import (
    JoinRefused,
    MembersKnown,
    NeighborDown,
    NeighborUp,
    OverlayNotice,
    StorageKnown,
)
from linnet.overlay.part import Overlays
from linnet.overlay.tracker_client import TopicOptions
from linnet.rooms.config import RoomsConfig
from linnet.trace.records import Kind, Record

_FRESH = 7 * 86_400.0
"""Seconds since the last meeting after which a device is dialled only after the others."""
_GREETING = 10.0
"""Seconds that a linked peer may take to greet before another device has its turn."""
_LIVELY = 600.0
"""Seconds since the last meeting for which a device counts as online, if we are not linked to all."""
_TOLD = 32
"""The number of devices, the latest met, with which a ring begins."""
_LONELY = 60.0
"""Seconds without any member or relay after which trackers are asked also in a small room."""
_STAY_FIRST, _STAY_MOST = 600.0, 4 * 3600.0
"""The least seconds to stay in a graph, at first and at most: doubled each time that we left it too early."""


class Neighbors:
    """Chooses the devices of one room to which this member holds links."""

    def __init__(
        self,
        room: TopicId,
        context: Context,
        config: RoomsConfig,
        overlays: Overlays,
        out: Outbox,
        trackers: tuple[Contact, ...] = (),
        overlay: Overlay = Overlay.TRACKER,
    ) -> None:
        self._room = room
        self._ours = context.peer
        self._links = context.links
        self._most = config.mesh
        self._overlays = overlays
        self._out = out
        self._overlay = overlay
        self._trackers = trackers
        self._book = ContactBook(room, context.store.cells, out)
        # Not the topic alone, under which the tracker's graph holds its own.
        self._mesh = FullMesh(f"mesh {room.hex()[:16]}", 0, context.peer, context.rng, out)
        self._is_on = False
        self._online: dict[PeerId, None] = {}
        self._graph: dict[PeerId, None] = {}
        """Our neighbours in the overlay's graph."""
        self._in_graph = self._was_near = False
        self._stay = _STAY_FIRST
        self._stay_until = self._left_at = float("-inf")
        self._alone_since: float | None = None
        self._relays: dict[PeerId, Contact] = {}
        self._expelled: dict[PeerId, tuple[AuthorId | None, Contact | None]] = {}
        """Devices to which we hold no links, whatever others tell of them; the latest are last."""
        self._silent: dict[PeerId, float] = {}
        """The time since which each peer's link has been open without a greeting."""
        self.nearby: Container[TopicId] | None = None
        """On the edge, the rooms whose members are sought on local networks, on a ring; nobody else is
        dialled or greeted there. None: this node is not on the edge."""

    @property
    def online(self) -> tuple[PeerId, ...]:
        """The devices of members that have greeted on open links: events are flooded to them."""
        return tuple(self._online)

    @property
    def beside(self) -> tuple[PeerId, ...]:
        """The neighbours that the overlay has given us."""
        return tuple(self._graph)

    def knows(self, peer: PeerId) -> bool:
        """Return whether a device is known to be of the room, so that it is greeted when its link opens."""
        is_met = self.nearby is None and peer in self._book
        return is_met or peer in self._relays or peer in self._graph

    def person_of(self, peer: PeerId) -> AuthorId | None:
        """Return the person that a device belonged to when it greeted; None if it never has."""
        known = self._book.find(peer)
        return None if known is None else known.person

    def knows_device_of(self, person: AuthorId) -> bool:
        """Return whether a device of a person was met here."""
        return bool(self._book.devices_of(person))

    @property
    def met(self) -> tuple[PeerId, ...]:
        """The relays of the room, and the devices that were met as members', the latest first."""
        return (*self._relays, *(peer for peer in self._book.by_freshness() if self._met(peer)))

    @property
    def relays_here(self) -> tuple[PeerId, ...]:
        """The linked relays of the room, as its state names them."""
        return tuple(peer for peer in self._relays if peer in self._links)

    def contacts(self, limit: int) -> tuple[Contact, ...]:
        """Return contacts to tell others: relays, and devices that were met, with their addresses."""
        return self._book.share(limit, self._relays.values())

    def start(self, now: float) -> None:
        """Dial all known devices at once, up to the limit."""
        if self._is_on:
            self._mesh.retry_silent()
        self._is_on = True
        peers = [peer for peer in self._book.by_freshness() if peer not in self._relays]
        fresh = [peer for peer in peers if self._met(peer) >= now - _FRESH]
        self._mesh.add_contacts(map(self._book.contact, fresh))
        self._mesh.add_contacts(map(self._book.contact, peers[len(fresh) :]), doubtful=True)
        self.settle(now)

    def stop(self, now: float) -> None:
        """Release all links: we have left, or the node stops."""
        self._is_on = False
        self._mesh.set_limit(0)
        for peer in self._online:
            self._mesh.handle_link_down(peer)
        self._online, self._silent = {}, {}
        self._leave(now)

    def add(self, contacts: Iterable[Contact], now: float) -> None:
        """Add devices that a greeting or an invitation names, and dial them."""
        for contact in contacts:
            peer = contact.peer
            if peer == self._ours or peer in self._expelled or peer in self._relays:
                continue
            self._forget_evicted(self._book.note_hearsay(contact))
            if peer in self._book:
                self._mesh.add_contacts([self._book.contact(peer)])
        self.settle(now)

    def set_relays(self, contacts: Iterable[Contact], now: float) -> None:
        """Replace the known relays of the room, to tell others; only `RelayClient` holds links to them."""
        self._relays = {contact.peer: contact for contact in contacts if contact.peer != self._ours}
        for peer in self._relays:
            self._book.forget(peer)
            self._mesh.forget_peer(peer)
            self._remove_online(peer)
        self.settle(now)

    def handle_greeting(self, peer: PeerId, contact: Contact, person: AuthorId, now: float) -> None:
        """Count a device as online; the caller has checked that it is a member's."""
        if peer in self._relays or peer == self._ours:
            return
        self._expelled.pop(peer, None)
        self._silent.pop(peer, None)
        self._forget_evicted(self._book.note_meeting(Contact(peer, contact.hints), person, now))
        if peer not in self._online:
            self._online[peer] = None
            self._record_online()
        self._mesh.add_contacts([self._book.contact(peer)])
        self._mesh.handle_link_up(peer)
        self.settle(now)

    def handle_link_down(self, peer: PeerId, now: float) -> None:
        """Count a device as offline."""
        self._silent.pop(peer, None)
        self._remove_online(peer)
        self._mesh.handle_link_down(peer)
        self.settle(now)

    def handle_dial_failed(self, peer: PeerId, now: float) -> None:
        """Try the next device in the place of one that could not be dialled."""
        self._mesh.handle_dial_failed(peer)
        self.settle(now)

    def expel(self, who: PeerId | AuthorId, now: float) -> None:
        """Drop a device, or all devices of a person, that is no member: banned, left, or refused.

        No link to it is held again until it has greeted as a member or is admitted (`admit`).
        """
        peers = {PeerId(who): None} | dict.fromkeys(self._book.devices_of(AuthorId(who)))
        for peer in peers:
            known = self._book.find(peer)
            if known is None and peer not in self._online and peer not in self._mesh.held_peers:
                continue
            self._expelled.pop(peer, None)
            contact = None if known is None else self._book.contact(peer)
            self._expelled[peer] = (None if known is None else known.person, contact)
            if len(self._expelled) > BOOK:
                del self._expelled[next(iter(self._expelled))]
            self._book.forget(peer)
            self._remove_online(peer)
            self._mesh.forget_peer(peer)
        self.settle(now)

    def admit(self, person: AuthorId, now: float) -> None:
        """Dial the devices of a person who was expelled and is a member again, and may not know it."""
        back = {peer: contact for peer, (whose, contact) in self._expelled.items() if whose == person}
        for peer in back:
            del self._expelled[peer]
        self.add([contact for contact in back.values() if contact is not None], now)

    def handle_notice(self, notice: OverlayNotice, now: float) -> None:
        """Note a change of the neighbors in the overlay's graph."""
        match notice:
            case NeighborUp(_, peer):
                self._graph[peer] = None
            case NeighborDown(_, peer):
                self._graph.pop(peer, None)
            case JoinRefused() | StorageKnown() | MembersKnown():
                pass  # The links to random devices stay until there is a graph.
            case _:
                assert_never(notice)
        self.settle(now)

    def settle(self, now: float) -> None:
        """Choose between mesh and graph, and pass over peers that do not greet."""
        if not self._is_on:
            return
        is_lonely = self._is_lonely(now)
        if not self._in_graph and (self._wants_graph() or is_lonely):
            self._join(now)
        elif (
            self._in_graph and not self._is_ring and (self._was_near or self._is_over(now)) and not is_lonely
        ):
            self._leave(now)
        if not self._graph:
            self._mesh.set_limit(self._most)
        elif len(self._graph) >= DEFAULT_DEGREE // 2 and self._is_crowded():
            self._mesh.set_limit(0)
        self._pass_over_silent(now)

    @property
    def _is_near(self) -> bool:
        return self.nearby is not None and self._room in self.nearby

    @property
    def _is_ring(self) -> bool:
        return self._overlay is Overlay.RING or self._is_near

    def _is_crowded(self) -> bool:
        """Return whether the graph's neighbours are enough: a small room on a ring stays a mesh as well."""
        return not self._is_ring or len(self._online) > self._most

    def _wants_graph(self) -> bool:
        """Return whether to ask for neighbours: trackers in a large room, a ring always.

        A ring also finds members that have left all their known addresses.
        """
        return self._is_ring or (bool(self._trackers) and len(self._online) > self._most)

    def _is_lonely(self, now: float) -> bool:
        """Return whether other devices are known, and none of them nor a relay was reached for a while."""
        is_alone = not self._online and not any(relay in self._links for relay in self._relays)
        if not is_alone or self.nearby is not None or not self._trackers or not len(self._book):
            self._alone_since = None
            return False
        if self._alone_since is None:
            self._alone_since = now
        return now - self._alone_since >= _LONELY

    def _is_over(self, now: float) -> bool:
        """Return whether we stayed long enough in the graph, and a mesh will do with a quarter to spare."""
        there = max(len(self._online), self._book.met_since(now - _LIVELY))
        return now >= self._stay_until and there <= self._most * 3 // 4

    def _join(self, now: float) -> None:
        left_in_vain = now - self._left_at < _LIVELY
        self._stay = min(2 * self._stay, _STAY_MOST) if left_in_vain else _STAY_FIRST
        self._in_graph, self._stay_until = True, now + self._stay
        self._was_near = self._is_near
        met = map(self._book.contact, self._book.by_freshness()[:_TOLD])
        contacts = () if self._is_near else tuple(met)
        overlay = Overlay.RING if self._is_near else self._overlay
        # A node that already has us as a neighbour becomes one at once.
        options = TopicOptions(self._room, self._trackers, DEFAULT_DEGREE)
        self._graph |= self._change_overlay(lambda: self._overlays.join(overlay, options, now, contacts))

    def _leave(self, now: float) -> None:
        if not self._in_graph:
            return
        self._in_graph, self._left_at = False, now
        self._change_overlay(lambda: self._overlays.leave(self._room, now))
        self._graph = {}

    def _change_overlay(self, change: Callable[[], None]) -> dict[PeerId, None]:
        """Join or leave the graph; return the peers that are neighbours at once.

        Notices of our own joining and leaving tell us nothing new: they are not passed on.
        """
        neighbors: dict[PeerId, None] = {}
        before = self._out.mark()
        change()
        for said in self._out.take_said(before):
            if isinstance(said, NeighborUp):
                neighbors[said.peer] = None
            elif isinstance(said, NeighborDown | StorageKnown | JoinRefused):
                continue
            elif isinstance(said, Notice):
                self._out.notify(said)
            else:
                self._out.add(said)
        return neighbors

    def _pass_over_silent(self, now: float) -> None:
        """Pass over a linked peer that does not greet in time."""
        there = [peer for peer in self._mesh.held_peers if peer in self._links and peer not in self._online]
        self._silent = {peer: self._silent.get(peer, now) for peer in there}
        for peer in there:
            if now - self._silent[peer] >= _GREETING:
                self._silent[peer] = now
                self._mesh.handle_dial_failed(peer)

    def _forget_evicted(self, peer: PeerId | None) -> None:
        """Stop dialling a device that was evicted from the book, unless it is online."""
        if peer is not None and peer not in self._online:
            self._mesh.forget_peer(peer)

    def _remove_online(self, peer: PeerId) -> None:
        if self._online.pop(peer, self) is None:
            self._record_online()

    def _record_online(self) -> None:
        """Record the online devices, unless the overlay records its graph."""
        if not self._in_graph:
            note = ",".join(peer[:4].hex() for peer in self._online)
            self._out.record(Record(Kind.OVERLAY, self._room, note=note))

    def _met(self, peer: PeerId) -> float:
        known = self._book.find(peer)
        return 0.0 if known is None or known.met is None else known.met


BOOK = 1024
"""The most devices of one room that are remembered."""
_HINTS = 8
_OWN_HINTS = 6
"""The most of these that are the device's own, if others tell another: it may have moved meanwhile."""
_MET_AGAIN = 60.0
"""The seconds between two meetings of a device from which on the later one is written to the store."""

_encode = msgspec.msgpack.Encoder().encode


class Known(Struct, frozen=True, array_like=True, gc=False):
    """The entry of one device in the contact book."""

    hints: tuple[str, ...] = ()
    """The addresses that the device gives for itself."""
    told: tuple[str, ...] = ()
    """The addresses at which the last peer that told us of the device had met it."""
    person: AuthorId | None = None
    met: float | None = None
    """The time when it was last met; None: never."""

    @property
    def addresses(self) -> tuple[str, ...]:
        """The addresses at which to dial the device."""
        own = self.hints[:_OWN_HINTS] if self.told else self.hints
        return tuple(dict.fromkeys((*own, *self.told)))[:_HINTS]


_decode = msgspec.msgpack.Decoder(Known).decode


class ContactBook:
    """The devices of one room, with their addresses; kept over restarts."""

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
        """Return the entry of a device; None if it is unknown."""
        return self._known.get(peer)

    def contact(self, peer: PeerId) -> Contact:
        """Return the addresses of a known device as a contact."""
        return Contact(peer, self._known[peer].addresses)

    def met_since(self, since: float) -> int:
        """Return the number of devices that were met since a time."""
        return sum(known.met is not None and known.met >= since for known in self._known.values())

    def by_freshness(self) -> list[PeerId]:
        """Return all devices, the latest met first and those never met last."""
        return sorted(self._known, key=lambda peer: -(self._known[peer].met or 0.0))

    def devices_of(self, person: AuthorId) -> list[PeerId]:
        """Return the devices that are known to belong to a person."""
        return [peer for peer, known in self._known.items() if known.person == person]

    def note_hearsay(self, contact: Contact) -> PeerId | None:
        """Note where another peer has met a device; return the device that is evicted, if any."""
        old = self._known.get(contact.peer, Known())
        if not contact.hints or contact.hints in (old.told, old.hints):
            return None
        return self._put(contact.peer, msgspec.structs.replace(old, told=contact.hints))

    def note_meeting(self, contact: Contact, person: AuthorId, now: float) -> PeerId | None:
        """Note that a device was met, with its own addresses; return the device that is evicted, if any."""
        return self._put(contact.peer, Known(contact.hints, (), person, now))

    def forget(self, peer: PeerId) -> None:
        """Forget a device that is not of the room."""
        self._known.pop(peer, None)
        if self._written.pop(peer, None) is not None:
            self._cells.delete(self._space, peer)

    def share(self, most: int, first: Iterable[Contact] = ()) -> tuple[Contact, ...]:
        """Return contacts to tell others: `first`, then met devices that have addresses, latest first."""
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
