"""Filters that this node keeps for others, in case that they crash (Agostinho 2021, section 3.7)."""

from __future__ import annotations

from linnet.content.config import ContentConfig
from linnet.content.filter_table import GENERATIONS, FilterTable
from linnet.content.messages import ROUTES, Backup, KeptRoute, Routes, StandIn
from linnet.content.parts import base_of, check_part
from linnet.content.predicate import Attributes, foreign_attributes, foreign_predicate
from linnet.core.errors import RemoteError
from linnet.core.ids import Contact, EventId, PeerId
from linnet.core.reasons import Reason


class _Copy:
    """What is kept for one node."""

    def __init__(self) -> None:
        self.table = FilterTable()
        self.routes: dict[PeerId, tuple[Contact, tuple[Contact, ...]]] = {}
        self.attributes: dict[str, tuple[int, bool]] = {}
        """For each attribute, how many periods ago it was told, and whether as its rendezvous."""

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
    """The filter tables of others."""

    def __init__(self, config: ContentConfig) -> None:
        self._config = config
        self._copies: dict[PeerId, _Copy] = {}

    def __len__(self) -> int:
        return sum(len(copy.table) for copy in self._copies.values())

    def keep(self, owner: PeerId, message: Backup) -> None:
        """Keep what a node tells of its filters; `RemoteError` if it cannot be, and then nothing changes."""
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
        """The routes of a node that want an event; None if nothing is kept of its filters."""
        copy = self._copies.get(owner)
        if copy is None or attribute not in copy.attributes:
            return None
        wanted = copy.table.interested(attribute, attributes)
        return [KeptRoute(*copy.routes[route]) for route in wanted if route in copy.routes]

    def owners(self, attribute: str) -> list[PeerId]:
        """The nodes that have told what they know under an attribute."""
        return [owner for owner, copy in self._copies.items() if attribute in copy.attributes]

    def rendezvous(self, attribute: str) -> list[PeerId]:
        """The nodes that told their filters as rendezvous of an attribute."""
        return [
            owner for owner, copy in self._copies.items() if copy.attributes.get(attribute, (0, False))[1]
        ]

    def answers(self, message: StandIn) -> list[Routes]:
        """What to say to somebody who misses a node."""
        attributes = foreign_attributes(message.attributes, self._config.attributes)
        way = (EventId(message.event), message.attribute, PeerId(message.absent))
        found = self.routes(way[2], base_of(message.attribute), attributes)
        if found is None:
            return [Routes(*way, (), reason=Reason.NOT_HELD)]
        starts = range(0, max(1, len(found)), ROUTES)
        parts = [tuple(found[start : start + ROUTES]) for start in starts]
        return [Routes(*way, part, number < len(parts)) for number, part in enumerate(parts, 1)]

    def turn(self) -> None:
        """A period is over: what was not told again for long is forgotten."""
        for owner, copy in list(self._copies.items()):
            copy.turn()
            if not copy.attributes:
                del self._copies[owner]
