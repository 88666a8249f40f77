"""Keeps copies of a node's filters at other nodes, in case it crashes (Agostinho 2021, section 3.7).

The filters of a rendezvous are kept by the nodes closest to the attribute's key, one of which will be the
next rendezvous. The filters of any other node are kept by the nodes closest to itself; it names these keepers
to the next hop. Every change is sent to each keeper, again until it answers. A keeper that does not answer is
replaced, and its successor is sent all filters.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from linnet.content.attribute_keys import (
    Directory,
    attribute_key,
    base_of,
    check_part,
    is_part,
    part_name,
    position,
)
from linnet.content.config import ContentConfig
from linnet.content.filter_table import GENERATIONS, FilterTable
from linnet.content.messages import (
    MOST_BACKUPS,
    REPLACED,
    ROUTES,
    Backup,
    Kept,
    KeptRoute,
    Routes,
    StandIn,
    Subscribed,
)
from linnet.content.predicate import Attributes, Predicate, foreign_attributes, foreign_predicate
from linnet.content.rendezvous import Elections
from linnet.content.routes import Station
from linnet.core.errors import RemoteError
from linnet.core.ids import Contact, EventId, PeerId
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.trace.records import Kind, Record

T = TypeVar("T")
_HINTS = 2
_TEXT_BYTES = 65_536
"""Characters of predicates in one message, roughly."""
_CANDIDATES = 16


class BackupDue(Timer, frozen=True, gc=False):
    """A keeper has not answered in time whether it keeps our filters."""

    number: int


class _Open(Struct, eq=False):
    """A message to a keeper that was not answered yet."""

    contact: Contact
    message: Backup
    tries: int


class Backups:
    """The keepers of this node's filters, and what each of them was sent."""

    def __init__(self, station: Station, directory: Directory, elections: Elections) -> None:
        self._station = station
        self._directory = directory
        self._elections = elections
        self._number = 0
        self._open: dict[int, _Open] = {}
        self._near: dict[PeerId, Contact] = {}
        """The keepers of the filters that this node holds without being their rendezvous."""
        self._around: dict[str, dict[PeerId, Contact]] = {}
        """The keepers of the filters that it holds as rendezvous, by attribute."""
        self._found: dict[str, tuple[Contact, ...]] = {}
        """The nodes closest to attributes, as lookups found them."""
        self._given: dict[str, dict[PeerId, bool]] = {}
        """The keepers that were sent all filters of an attribute, and whether as of its rendezvous."""
        self._mirrors: dict[str, dict[int, Contact]] = {}
        """The nodes that hold the parts of hot attributes."""
        self._waiters: dict[str, list[tuple[PeerId, int]]] = {}
        """Peers and the numbers of their requests, to be answered when all parts know what they asked for."""
        self._unwilling: dict[PeerId, float] = {}
        self._named: dict[PeerId, tuple[Contact, ...]] = {}
        """The next hops, and the keepers that were named to each of them."""

    @property
    def is_settled(self) -> bool:
        """Whether keepers have confirmed everything they were sent."""
        return not self._open

    @property
    def keepers(self) -> dict[PeerId, None]:
        """Nodes that links are worth holding to: keepers, and holders of parts."""
        mirrors = {each.peer: None for held in self._mirrors.values() for each in held.values()}
        return {**mirrors, **{peer: None for given in self._given.values() for peer in given}}

    def kept_by(self, peer: PeerId) -> list[str]:
        """Return the attributes under which a peer keeps the filters that this node has as rendezvous."""
        return [name for name, given in self._given.items() if given.get(peer)]

    def contacts(self, now: float) -> tuple[Contact, ...]:
        """Return the keepers that the next hop should ask if this node does not answer."""
        pool = self._directory.closest(position(self._station.ours), _CANDIDATES)
        return tuple(self._mend(self._near, pool, now).values())

    def note_named(self, peer: PeerId, keepers: tuple[Contact, ...]) -> None:
        """Note which keepers of our filters a next hop was told."""
        self._named[peer] = keepers

    def take_untold(self, now: float) -> list[PeerId]:
        """Return the next hops that have to be told new keepers; each is returned once."""
        keepers = self.contacts(now)
        untold = [peer for peer, told in self._named.items() if told and told != keepers]
        self._named.update(dict.fromkeys(untold, keepers))
        return untold

    def around(self, attribute: str, now: float) -> tuple[Contact, ...]:
        """Return the nodes closest to an attribute beside this one: the keepers for its rendezvous."""
        key = attribute_key(attribute)
        pool = [*self._found.get(attribute, ()), *self._directory.closest(key, _CANDIDATES)]
        return tuple(self._mend(self._entry(self._around, attribute), pool, now).values())

    def _entry(self, by_name: dict[str, dict[PeerId, T]], attribute: str) -> dict[PeerId, T]:
        """Return what is noted of an attribute; of too many, the one that was noted first is forgotten.

        Its keepers are chosen anew, and told all filters again, when one of them changes.
        """
        entry = by_name.setdefault(attribute, {})
        if len(by_name) > 2 * self._station.config.routes:
            del by_name[next(iter(by_name))]
        return entry

    def _mend(self, keepers: dict[PeerId, Contact], pool: list[Contact], now: float) -> dict[PeerId, Contact]:
        """Drop lost keepers and fill up from the pool. A working keeper stays: others were told to ask it."""
        for peer in [peer for peer in keepers if not self._is_fit(peer, now)]:
            del keepers[peer]
        wanted = min(self._station.config.backups, MOST_BACKUPS)
        for contact in pool:
            if len(keepers) >= wanted:
                break
            if contact.peer != self._station.ours and self._is_fit(contact.peer, now):
                keepers.setdefault(contact.peer, Contact(contact.peer, contact.hints[:_HINTS]))
        return keepers

    def _is_fit(self, peer: PeerId, now: float) -> bool:
        return self._unwilling.get(peer, 0.0) <= now and not self._elections.suspects.is_avoided(peer, now)

    def tell_change(
        self, attribute: str, route: PeerId, predicates: tuple[Predicate, ...], whole: bool, now: float
    ) -> None:
        """Send keepers a route's new predicates, or all that it still asks for (`whole`)."""
        self._mirror_change(attribute, route, predicates, whole)
        if self._station.config.backups and route != self._station.ours:
            self.mend_keepers(attribute, now, but=(route, predicates, whole))

    def mend_keepers(
        self,
        attribute: str,
        now: float,
        but: tuple[PeerId, tuple[Predicate, ...], bool] | None = None,
    ) -> None:
        """Send an attribute's filters to the keepers that lack them, and only the change `but` to others."""
        held = attribute in self._elections.held
        keepers = self.around(attribute, now) if held else self.contacts(now)
        given = self._entry(self._given, attribute)
        for peer in [peer for peer, as_held in given.items() if as_held != held]:
            del given[peer]
            self._tell(self._station.book.contact(peer), Backup(0, attribute, False, True, ()))
        for contact in keepers:
            if contact.peer not in given:
                given[contact.peer] = held
                self._tell_all(contact, attribute, held)
            elif but is not None:
                for part in self._parts([(but[0], but[1])], but[2]):
                    self._tell(contact, Backup(0, attribute, held, False, part))

    # Parts of hot attributes: others hold them to serve, not to keep.

    def mirror(self, attribute: str, part: int, contact: Contact) -> None:
        """Have a node hold all filters of an attribute, to serve a part of its events."""
        self._mirrors.setdefault(attribute, {})[part] = contact
        self._mirror_all(attribute, part, contact)

    def _mirror_all(self, attribute: str, part: int, contact: Contact) -> None:
        asked = [
            (route, self._station.table.of_route(route, attribute))
            for route in self._station.table.routes(attribute)
        ]
        for number, routes in enumerate(self._parts(asked, False)):
            message = Backup(0, part_name(attribute, part), False, number == 0, routes)
            self._tell(contact, message)

    def _mirror_change(
        self, attribute: str, route: PeerId, predicates: tuple[Predicate, ...], whole: bool
    ) -> None:
        """Send the holders of parts the predicates that a route adds, or that are its only ones (`whole`)."""
        for part, contact in self._mirrors.get(attribute, {}).items():
            for routes in self._parts([(route, predicates)], whole):
                self._tell(contact, Backup(0, part_name(attribute, part), False, False, routes))

    def is_mirrored(self, attribute: str, part: int) -> bool:
        """Return whether a node holds a part and has confirmed all filters."""
        name = part_name(attribute, part)
        is_held = part in self._mirrors.get(attribute, {})
        return is_held and all(waits.message.attribute != name for waits in self._open.values())

    def defer_answers(self, attribute: str, waiters: list[tuple[PeerId, int]]) -> bool:
        """Answer these requests once all holders of parts know of them; return False if they do already."""
        if attribute not in self._mirrors or not self._is_open(attribute):
            return False
        self._waiters.setdefault(attribute, []).extend(waiters)
        return True

    def _is_open(self, attribute: str) -> bool:
        names = [waits.message.attribute for waits in self._open.values()]
        return any(is_part(name) and base_of(name) == attribute for name in names)

    def _answer_waiters(self) -> None:
        for attribute in [name for name in self._waiters if not self._is_open(name)]:
            for peer, number in self._waiters.pop(attribute):
                self._station.reach.answer(peer, Subscribed(number, None))

    def unmirror(self, attribute: str) -> None:
        """Tell the holders of an attribute's parts to drop them."""
        for part, contact in self._mirrors.pop(attribute, {}).items():
            self._tell(contact, Backup(0, part_name(attribute, part), False, True, ()))

    def handle_nodes_found(self, attribute: str, found: tuple[Contact, ...], now: float) -> None:
        """Have the nodes that a lookup found keep the filters of an attribute."""
        self._found[attribute] = found[:_CANDIDATES]
        if len(self._found) > 2 * self._station.config.routes:
            del self._found[next(iter(self._found))]
        if not self._station.config.backups:
            return
        if is_part(attribute):
            return
        if attribute in self._elections.held or attribute in self._given:
            self.mend_keepers(attribute, now)
            return

    def _tell_all(self, contact: Contact, attribute: str, held: bool) -> None:
        routes = [
            route
            for route in self._station.table.routes(attribute)
            if route not in (self._station.ours, contact.peer)
        ]
        asked = [(route, self._station.table.of_route(route, attribute)) for route in routes]
        parts = list(self._parts(asked, False))
        if not parts and not held:
            return
        for number, part in enumerate(parts or [()]):
            self._tell(contact, Backup(0, attribute, held, number == 0, part))

    def _parts(
        self, asked: list[tuple[PeerId, tuple[Predicate, ...]]], whole: bool
    ) -> Iterator[tuple[KeptRoute, ...]]:
        """Yield the predicates of routes, in parts that fit into messages."""
        part: list[KeptRoute] = []
        size = 0
        for route, predicates in asked:
            known = self._station.book.contact(route)
            contact = Contact(route, known.hints[:_HINTS])
            for start in range(0, max(1, len(predicates)), REPLACED // 8):
                texts = tuple(each.text for each in predicates[start : start + REPLACED // 8])
                part.append(KeptRoute(contact, self._station.book.backups(route), texts, whole and not start))
                size += sum(map(len, texts))
                if len(part) == ROUTES // 2 or size > _TEXT_BYTES:
                    yield tuple(part)
                    part, size = [], 0
        if part:
            yield tuple(part)

    def _tell(self, contact: Contact, message: Backup, tries: int = 0) -> None:
        self._number += 1
        numbered = replace(message, number=self._number)
        if len(self._open) >= MOST_BACKUPS * self._station.config.routes:
            note = f"{len(self._open)} messages to keepers are open: this one is not repeated"
            reason = Reason.QUEUE_FULL
            self._station.out.record(Record(Kind.CONTROL, peer=contact.peer, reason=reason, note=note))
            self._station.reach.send(contact, numbered)
            return
        self._open[self._number] = _Open(contact, numbered, tries)
        wait = self._station.config.resend * 2**tries
        self._station.reach.send(contact, numbered)
        self._station.out.set_timer(wait, BackupDue(self._number))

    def handle_kept(self, peer: PeerId, message: Kept, now: float) -> None:
        """Note that a keeper has our filters, or replace it if it refuses."""
        waits = self._open.get(message.number)
        if waits is None or waits.contact.peer != peer:
            self._station.out.record(Record(Kind.REJECTED, peer=peer, reason=Reason.STALE, note="Kept"))
            return
        del self._open[message.number]
        self._station.out.cancel_timer(BackupDue(message.number))
        if message.reason is None:
            self._answer_waiters()
            return
        self._unwilling[peer] = now + self._station.config.refresh
        note = "does not keep our filters"
        self._station.out.record(Record(Kind.CONTROL, peer=peer, reason=message.reason, note=note))
        self.replace_keeper(peer, now)

    def handle_timeout(self, timer: BackupDue, now: float) -> None:
        """Send an unanswered message to a keeper again, or replace the keeper when all tries are spent."""
        waits = self._open.pop(timer.number, None)
        if waits is None:
            return
        if waits.tries + 1 < self._station.config.tries:
            self._tell(waits.contact, waits.message, waits.tries + 1)
            return
        peer = waits.contact.peer
        self._unwilling[peer] = now + self._station.config.avoided
        note = "does not keep our filters"
        self._station.out.record(Record(Kind.DROPPED, peer=peer, reason=Reason.TIMEOUT, note=note))
        self.replace_keeper(peer, now)

    def replace_keeper(self, peer: PeerId, now: float) -> None:
        """Replace a keeper that is gone or unwilling, and send the next one all filters."""
        if self._is_fit(peer, now):
            return
        for number in [number for number, waits in self._open.items() if waits.contact.peer == peer]:
            del self._open[number]
            self._station.out.cancel_timer(BackupDue(number))
        self._named.pop(peer, None)
        for held in self._mirrors.values():
            for part in [part for part, contact in held.items() if contact.peer == peer]:
                del held[part]
        for attribute in [name for name, given in self._given.items() if peer in given]:
            del self._given[attribute][peer]
            self.mend_keepers(attribute, now)
        self._answer_waiters()

    def forget(self, attribute: str) -> None:
        """Forget the keepers of an attribute without filters; what they keep of it ends by itself."""
        self._found.pop(attribute, None)
        self._around.pop(attribute, None)
        self._given.pop(attribute, None)

    def begin_period(self, now: float) -> None:
        """Choose the closest keepers anew, and send them all filters."""
        if not self._station.config.backups:
            return
        self._unwilling = {peer: until for peer, until in self._unwilling.items() if until > now}
        self._near.clear()
        self._around.clear()
        self._named.clear()
        told = [
            name
            for name in self._given
            if name in self._station.table.attributes or name in self._elections.held
        ]
        self._found = {name: self._found[name] for name in told if name in self._found}
        self._given = {name: {} for name in told}
        for attribute in told:
            self.mend_keepers(attribute, now)
        for attribute, held in self._mirrors.items():
            for part, contact in held.items():
                self._mirror_all(attribute, part, contact)


class _Copy:
    """The copy of one node's filters."""

    def __init__(self) -> None:
        self.table = FilterTable()
        self.routes: dict[PeerId, tuple[Contact, tuple[Contact, ...]]] = {}
        self.attributes: dict[str, tuple[int, bool]] = {}
        """By attribute, how many periods ago it was last sent, and whether by its rendezvous."""

    def forget(self, attribute: str) -> None:
        for route in self.table.routes(attribute):
            self.table.replace(route, attribute, ())
        self.attributes.pop(attribute, None)

    def turn(self) -> None:
        self.table.turn()
        aged = {name: (age + 1, held) for name, (age, held) in self.attributes.items()}
        self.attributes = {name: each for name, each in aged.items() if each[0] < GENERATIONS}
        left = {route: None for name in self.table.attributes for route in self.table.routes(name)}
        self.routes = {route: known for route, known in self.routes.items() if route in left}


class Copies:
    """The filter tables of other nodes, which this node keeps in case they crash."""

    def __init__(self, config: ContentConfig) -> None:
        self._config = config
        self._copies: dict[PeerId, _Copy] = {}

    def __len__(self) -> int:
        return sum(len(copy.table) for copy in self._copies.values())

    def keep(self, owner: PeerId, message: Backup) -> None:
        """Keep the filters that a node sends; `RemoteError` if they are refused, and then nothing changes."""
        read = [
            (each, tuple(foreign_predicate(text, self._config.attributes) for text in each.predicates))
            for each in message.routes
        ]
        check_part(message.attribute)
        if any(base_of(message.attribute) not in one.names for _, predicates in read for one in predicates):
            raise RemoteError(Reason.MALFORMED, "a predicate without the attribute that it goes by")
        if len(self) + sum(len(predicates) for _, predicates in read) > self._config.kept:
            raise RemoteError(Reason.TOO_MANY, f"more than {self._config.kept} filters of others")
        if owner not in self._copies and len(self._copies) >= self._config.routes:
            raise RemoteError(Reason.TOO_MANY, f"filters of more than {self._config.routes} nodes")
        copy = self._copies.setdefault(owner, _Copy())
        if message.fresh:
            copy.forget(message.attribute)
        if message.fresh and not message.rendezvous and not read:
            if not copy.attributes:
                del self._copies[owner]
            return
        copy.attributes[message.attribute] = (0, message.rendezvous)
        for each, predicates in read:
            peer = each.contact.peer
            copy.routes[peer] = (each.contact, each.backups)
            if each.whole:
                copy.table.replace(peer, message.attribute, predicates)
                continue
            for predicate in predicates:
                copy.table.add(peer, message.attribute, predicate)

    def routes(self, owner: PeerId, attribute: str, attributes: Attributes) -> list[KeptRoute] | None:
        """Return the routes of a node that want an event; None if no such filters of it are kept."""
        copy = self._copies.get(owner)
        if copy is None or attribute not in copy.attributes:
            return None
        wanted = copy.table.interested(attribute, attributes)
        return [KeptRoute(*copy.routes[route]) for route in wanted if route in copy.routes]

    def owners(self, attribute: str) -> list[PeerId]:
        """Return the nodes that have sent their filters of an attribute."""
        return [owner for owner, copy in self._copies.items() if attribute in copy.attributes]

    def rendezvous(self, attribute: str) -> list[PeerId]:
        """Return the nodes that have sent their filters as rendezvous of an attribute."""
        return [
            owner for owner, copy in self._copies.items() if copy.attributes.get(attribute, (0, False))[1]
        ]

    def answers(self, message: StandIn) -> list[Routes]:
        """Return the answers to a peer that misses a node: the routes of that node that want an event."""
        attributes = foreign_attributes(message.attributes, self._config.attributes)
        way = (EventId(message.event), message.attribute, PeerId(message.absent))
        found = self.routes(way[2], base_of(message.attribute), attributes)
        if found is None:
            return [Routes(*way, (), reason=Reason.NOT_HELD)]
        starts = range(0, max(1, len(found)), ROUTES)
        parts = [tuple(found[start : start + ROUTES]) for start in starts]
        return [Routes(*way, part, number < len(parts)) for number, part in enumerate(parts, 1)]

    def turn(self) -> None:
        """End a period: forget the filters that were not sent again for long."""
        for owner, copy in list(self._copies.items()):
            copy.turn()
            if not copy.attributes:
                del self._copies[owner]
