"""Whom a member of a room keeps links to: all who are online, while they are few; else some of them.

Up to `mesh` online devices a room is a full mesh (`linnet.overlay.mesh`). Beyond that the trackers of the
network, if there are any, build a random regular graph for it, as for a stream, and the mesh is let
go once the graph stands; without trackers everyone holds `mesh` others at random. Whoever has greeted
and is there is `online`, whatever brought the link about, and that is all that passing on asks.

Whoever reaches nobody of a room for a minute, neither members nor a relay, asks the trackers as well, if
there are any: all may have moved, and a tracker knows where they are now.

There are no timers here: what is due is looked at whenever something happens.

The contact book has where the devices of a room's members may be dialled, and when each was met last. What a
device says of itself counts before what others say of it, and only devices that were met are told
to others: so nobody can fill the books of a room with addresses that are none.
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
from linnet.machine.outbox import Outbox
from linnet.overlay.config import DEFAULT_DEGREE, Overlay
from linnet.overlay.mesh import Mesh
from linnet.overlay.notices import JoinRefused, NeighborDown, NeighborUp, OverlayNotice, StorageKnown
from linnet.overlay.overlays import Overlays
from linnet.rooms.config import RoomsConfig
from linnet.trace.records import Kind, Record

_FRESH = 7 * 86_400.0
"""Seconds since a device was met after which it is tried only when the others have been."""
_GREETING = 10.0
"""Seconds that a peer whose link is open may take to greet before another has its turn."""
_LIVELY = 600.0
"""Seconds since it was met that a device counts as online, where we do not hold links to all."""
_TOLD = 32
"""Devices that were met last, for the ring to begin with."""
_LONELY = 60.0
"""Seconds without any member or relay after which trackers are asked also in a small room."""
_STAY_FIRST, _STAY_MOST = 600.0, 4 * 3600.0
"""Seconds to stay in a graph at least. A room that seemed small and was not is believed less each time."""


class Neighbors:
    """The devices of one room, as its member here sees them."""

    def __init__(
        self,
        room: TopicId,
        context: Context,
        config: RoomsConfig,
        overlays: Overlays,
        out: Outbox,
        trackers: tuple[Contact, ...] = (),
        degree: int = DEFAULT_DEGREE,
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
        self._degree = degree
        self._book = ContactBook(room, context.store.cells, out)
        # Not the topic alone, under which the tracker's graph holds its own.
        self._mesh = Mesh(room, 0, context.peer, context.rng, out, f"mesh {room.hex()[:16]}")
        self._is_on = False
        self._online: dict[PeerId, None] = {}
        self._graph: dict[PeerId, None] = {}
        """Neighbours in the tracker's graph."""
        self._in_graph = self._was_near = False
        self._stay = _STAY_FIRST
        self._stay_until = self._left_at = float("-inf")
        self._alone_since: float | None = None
        self._relays: dict[PeerId, Contact] = {}
        self._expelled: dict[PeerId, tuple[AuthorId | None, Contact | None]] = {}
        """Devices that are held no more, whatever others tell of them; the latest are last."""
        self._silent: dict[PeerId, float] = {}
        """Since when a peer's link is open without a greeting."""
        self.nearby: Container[TopicId] | None = None
        """On the edge, the rooms whose members are looked for on local networks, on a ring; nobody else is
        dialled or greeted there. None: this node is not on the edge."""

    @property
    def online(self) -> tuple[PeerId, ...]:
        """Devices of members that have greeted and are there: whom to pass things on to."""
        return tuple(self._online)

    @property
    def beside(self) -> tuple[PeerId, ...]:
        """Neighbours that the overlay names."""
        return tuple(self._graph)

    @property
    def in_graph(self) -> bool:
        """Whether a tracker is asked for neighbours."""
        return self._in_graph

    def knows(self, peer: PeerId) -> bool:
        """Whether this is a device of the room as far as is known: whom to greet when a link opens."""
        is_met = self.nearby is None and peer in self._book
        return is_met or peer in self._relays or peer in self._graph

    def person_of(self, peer: PeerId) -> AuthorId | None:
        """Whose device it was when it greeted; None if it never has."""
        known = self._book.find(peer)
        return None if known is None else known.person

    @property
    def met(self) -> tuple[PeerId, ...]:
        """Devices that took part in the room when they were met, the latest first, and its relays."""
        return (*self._relays, *(peer for peer in self._book.by_freshness() if self._met(peer)))

    @property
    def relays_here(self) -> tuple[PeerId, ...]:
        """Relays of the room, by its state, to whom a link is open."""
        return tuple(peer for peer in self._relays if peer in self._links)

    def contacts(self, limit: int) -> tuple[Contact, ...]:
        """Relays and devices that were met, where they were met, to tell others."""
        return self._book.share(limit, self._relays.values())

    def start(self, now: float) -> None:
        """Turn to everyone who is known, at once, as far as the limit lets; also when we are back."""
        if self._is_on:
            self._mesh.retry()
        self._is_on = True
        peers = [peer for peer in self._book.by_freshness() if peer not in self._relays]
        fresh = [peer for peer in peers if self._met(peer) >= now - _FRESH]
        self._mesh.add(map(self._book.contact, fresh))
        self._mesh.add(map(self._book.contact, peers[len(fresh) :]), doubtful=True)
        self.settle(now)

    def stop(self, now: float) -> None:
        """Let go of everyone: we have left, or the node stops."""
        self._is_on = False
        self._mesh.resize(0)
        for peer in self._online:
            self._mesh.handle_link_down(peer)
        self._online, self._silent = {}, {}
        self._leave(now)

    def add(self, contacts: Iterable[Contact], now: float) -> None:
        """Turn to devices that somebody tells of, in a greeting or an invitation."""
        for contact in contacts:
            peer = contact.peer
            if peer == self._ours or peer in self._expelled or peer in self._relays:
                continue
            self._forget_evicted(self._book.note_hearsay(contact))
            if peer in self._book:
                self._mesh.add([self._book.contact(peer)])
        self.settle(now)

    def set_relays(self, contacts: Iterable[Contact], now: float) -> None:
        """Know the relays of the room, all of them: they are told to others, but held by `RelayUse` alone."""
        self._relays = {contact.peer: contact for contact in contacts if contact.peer != self._ours}
        for peer in self._relays:
            self._book.forget(peer)
            self._mesh.forget(peer)
            self._remove_online(peer)
        self.settle(now)

    def handle_greeting(self, peer: PeerId, contact: Contact, person: AuthorId, now: float) -> None:
        """Count a device of a member as online: the caller has seen that it is one."""
        if peer in self._relays or peer == self._ours:
            return
        self._expelled.pop(peer, None)
        self._silent.pop(peer, None)
        self._forget_evicted(self._book.note_meeting(Contact(peer, contact.hints), person, now))
        if peer not in self._online:
            self._online[peer] = None
            self._record_online()
        self._mesh.add([self._book.contact(peer)])
        self._mesh.handle_link_up(peer)
        self.settle(now)

    def handle_link_down(self, peer: PeerId, now: float) -> None:
        """Count a device as offline."""
        self._silent.pop(peer, None)
        self._remove_online(peer)
        self._mesh.handle_link_down(peer)
        self.settle(now)

    def handle_dial_failed(self, peer: PeerId, now: float) -> None:
        """Give the next its turn, if no link came of dialling."""
        self._mesh.handle_dial_failed(peer)
        self.settle(now)

    def expel(self, who: PeerId | AuthorId, now: float) -> None:
        """Let go of a device, or of a person with all devices, that is no member: banned, left, or refused.

        It is not held again until it has greeted as a member or is admitted (`admit`).
        """
        peers = {PeerId(who): None} | dict.fromkeys(self._book.devices_of(AuthorId(who)))
        for peer in peers:
            known = self._book.find(peer)
            if known is None and peer not in self._online and peer not in self._mesh.held:
                continue
            self._expelled.pop(peer, None)
            contact = None if known is None else self._book.contact(peer)
            self._expelled[peer] = (None if known is None else known.person, contact)
            if len(self._expelled) > BOOK:
                del self._expelled[next(iter(self._expelled))]
            self._book.forget(peer)
            self._remove_online(peer)
            self._mesh.forget(peer)
        self.settle(now)

    def admit(self, person: AuthorId, now: float) -> None:
        """Seek the devices of a person who was expelled and is a member again, and may not know it."""
        back = {peer: contact for peer, (whose, contact) in self._expelled.items() if whose == person}
        for peer in back:
            del self._expelled[peer]
        self.add([contact for contact in back.values() if contact is not None], now)

    def handle_notice(self, notice: OverlayNotice, now: float) -> None:
        """Note who is a neighbour in the overlay's graph."""
        match notice:
            case NeighborUp(_, peer):
                self._graph[peer] = None
            case NeighborDown(_, peer):
                self._graph.pop(peer, None)
            case JoinRefused() | StorageKnown():
                pass  # Links to some at random stay until there is a graph.
            case _:
                assert_never(notice)
        self.settle(now)

    def settle(self, now: float) -> None:
        """Look whether all is as it should be: mesh or graph, and whether those we hold greet us."""
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
            self._mesh.resize(self._most)
        elif len(self._graph) >= self._degree // 2 and self._is_crowded():
            self._mesh.resize(0)
        self._pass_over_silent(now)

    @property
    def _is_near(self) -> bool:
        return self.nearby is not None and self._room in self.nearby

    @property
    def _is_ring(self) -> bool:
        return self._overlay is Overlay.RING or self._is_near

    def _is_crowded(self) -> bool:
        """Whether the neighbours of the graph are enough: a small room on a ring stays a mesh as well."""
        return not self._is_ring or len(self._online) > self._most

    def _wants_graph(self) -> bool:
        """Whether neighbours are asked for: of trackers in a large room; on a ring always.

        A ring also finds members who are nowhere where they were met before.
        """
        return self._is_ring or (bool(self._trackers) and len(self._online) > self._most)

    def _is_lonely(self, now: float) -> bool:
        """Whether others are known, and neither they nor a relay were reached for a while."""
        is_alone = not self._online and not any(relay in self._links for relay in self._relays)
        if not is_alone or self.nearby is not None or not self._trackers or not len(self._book):
            self._alone_since = None
            return False
        if self._alone_since is None:
            self._alone_since = now
        return now - self._alone_since >= _LONELY

    def _is_over(self, now: float) -> bool:
        """Whether we stayed for long, and so few are there that a mesh will do, with a quarter to spare."""
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
        # Who has us as a neighbour already is one at once.
        self._graph |= self._change_overlay(
            lambda: self._overlays.join(
                self._room, overlay, self._trackers, self._degree, False, False, now, contacts
            )
        )

    def _leave(self, now: float) -> None:
        if not self._in_graph:
            return
        self._in_graph, self._left_at = False, now
        self._change_overlay(lambda: self._overlays.leave(self._room, now))
        self._graph = {}

    def _change_overlay(self, change: Callable[[], None]) -> dict[PeerId, None]:
        """Join or leave the graph; those who are neighbours at once.

        Notices of our own joining and leaving tell nothing that is not known here: nobody is to hear them.
        """
        neighbors: dict[PeerId, None] = {}
        for said in self._overlays.collect(change):
            if isinstance(said, NeighborUp):
                neighbors[said.peer] = None
            elif not isinstance(said, NeighborDown | StorageKnown | JoinRefused):
                self._out.add(said)
        return neighbors

    def _pass_over_silent(self, now: float) -> None:
        """Pass over a peer that is there and does not greet: it is no better than a silent one."""
        there = [peer for peer in self._mesh.held if peer in self._links and peer not in self._online]
        self._silent = {peer: self._silent.get(peer, now) for peer in there}
        for peer in there:
            if now - self._silent[peer] >= _GREETING:
                self._silent[peer] = now
                self._mesh.handle_dial_failed(peer)

    def _forget_evicted(self, peer: PeerId | None) -> None:
        """Try a device no more that has no place in the book any more, unless it is here."""
        if peer is not None and peer not in self._online:
            self._mesh.forget(peer)

    def _remove_online(self, peer: PeerId) -> None:
        if self._online.pop(peer, self) is None:
            self._record_online()

    def _record_online(self) -> None:
        """Record whom we have links to; in a graph the overlay does."""
        if not self._in_graph:
            note = ",".join(peer[:4].hex() for peer in self._online)
            self._out.record(Record(Kind.OVERLAY, self._room, note=note))

    def _met(self, peer: PeerId) -> float:
        known = self._book.find(peer)
        return 0.0 if known is None or known.met is None else known.met


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
