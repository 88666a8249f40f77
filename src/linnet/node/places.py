"""The places of a node: hosting them, entering them, finding them again."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from linnet.core.errors import BadText, Refused
from linnet.core.ids import AuthorId, Contact, TopicId
from linnet.core.reasons import Reason
from linnet.identity.text import Sort, from_text, to_text
from linnet.names.commands import NotResolved, Resolved, ResolveName
from linnet.node.addresses import parse_contact
from linnet.node.answers import expected
from linnet.node.batching import Ask
from linnet.node.place import NAME, Place, Reading, Value, assigned, transient
from linnet.places.address import PlaceAddress, is_address, parse_address
from linnet.places.commands import (
    Announce,
    Announced,
    AtDoor,
    Entered,
    EnterPlace,
    HostPlace,
    ListPlaces,
    PlaceIs,
    PlacesAre,
    Turned,
)
from linnet.places.deed import Policy
from linnet.places.entry import AT_THE_DOOR

OPENED = "_notice_place_open"
"""What is said first in a place: from then on it has a voice, and a door."""
SHOWN = 8
"""Candidates that an error lists."""


class TurnedAway(Refused):
    """The host did not let us in; `elsewhere` is the place that it named instead, if any."""

    def __init__(self, turned: Turned) -> None:
        words = turned.text.decode("utf-8", "replace")
        self.method = turned.method
        self.variables = {each.name: each.value for each in turned.modifiers}
        self.text = words
        detail = f"the host turned us away: {words}" if words else "the host said no"
        if self.elsewhere is not None:
            detail += f"; it names another place: {self.variables['_place'].decode()}"
        super().__init__(turned.reason, detail)

    @property
    def elsewhere(self) -> PlaceAddress | None:
        """Another place to enter, as the host says."""
        named = self.variables.get("_place", b"").decode("utf-8", "replace")
        return parse_address(named) if is_address(named) else None


class Places:
    """Every place of one node."""

    def __init__(self, contact: Callable[[], Contact], ask: Ask, reading: Reading) -> None:
        self._contact = contact
        self._ask = ask
        self._reading = reading

    async def host(
        self,
        policy: Policy = Policy.PUBLIC,
        name: str | None = None,
        cohosts: tuple[AuthorId, ...] = (),
        keepers: tuple[Contact, ...] = (),
        state: Mapping[str, Value] | None = None,
    ) -> Place:
        """Found a place of which we are the host, and open its door."""
        made = expected(await self._ask(HostPlace(None, policy, cohosts, keepers)), PlaceIs)
        given = dict(state or {}) if name is None else {NAME: name, **(state or {})}
        expected(await self._ask(Announce(made.deed.place, OPENED, assigned(given))), Announced)
        return self.by_id(made.deed.place)

    async def enter(
        self,
        where: str | TopicId | PlaceAddress,
        contacts: tuple[Contact | str, ...] = (),
        text: Value = b"",
        variables: Mapping[str, Value] | None = None,
        patience: float = 20.0,
        waits: bool = True,
    ) -> Place:
        """Enter by an address, a name such as ``music.alice``, or an id with somebody to ask; or enter again.

        `text` is what the host is told at the door. `BadText` says what is wrong with an address,
        `TurnedAway` why the host does not let us in, `Refused` what else stands against it: with
        `Reason.WAITING` the host decides and has not yet, and this node stays at its door. Without `waits`
        that is told at once.
        """
        found = await self.address_of(where)
        asked = tuple(parse_contact(each) if isinstance(each, str) else each for each in contacts)
        raw = text.encode() if isinstance(text, str) else text
        words = (transient(variables or {}), raw, patience, waits)
        result = await self._ask(EnterPlace(found.place, (*found.contacts, *asked), *words))
        if isinstance(result, Turned):
            raise TurnedAway(result)
        if isinstance(result, AtDoor):
            raise Refused(Reason.WAITING, AT_THE_DOOR)
        return self.by_id(expected(result, Entered).place)

    async def address_of(self, where: str | TopicId | PlaceAddress) -> PlaceAddress:
        """The place that is meant, and whom to ask there."""
        if isinstance(where, PlaceAddress):
            return where
        if isinstance(where, bytes):
            return PlaceAddress(TopicId(where), ())
        if is_address(where):
            return parse_address(where)
        if where.strip().lower().startswith(Sort.TOPIC):
            return PlaceAddress(TopicId(from_text(Sort.TOPIC, where)), ())
        if "." not in where:
            raise BadText(f"{where[:80]!r} is no address la1…, no id lt1… and no name such as music.alice")
        result = await self._ask(ResolveName(where.strip()))
        if isinstance(result, NotResolved):
            told = f"{result.detail}; see: linnet name resolve {where[:80]}"
            raise Refused(Reason.UNKNOWN, f"{where[:80]!r} leads nowhere: {result.fault}: {told}")
        resolved = expected(result, Resolved)
        return PlaceAddress(resolved.place, resolved.contacts)

    async def find(self, which: str | TopicId) -> Place:
        """A place of this node by its id, an unambiguous beginning of it, or its name."""
        if isinstance(which, bytes):
            return self.by_id(TopicId(which))
        wanted = which.strip()
        if is_address(wanted):
            return self.by_id(parse_address(wanted).place)
        listed = await self.names()
        found = [place for place, name in listed.items() if name == wanted]
        if not found and wanted.lower().startswith(Sort.TOPIC) and len(wanted) > len(Sort.TOPIC):
            found = [place for place in listed if to_text(Sort.TOPIC, place).startswith(wanted.lower())]
        if len(found) == 1:
            return self.by_id(found[0])
        shown = ", ".join(
            to_text(Sort.TOPIC, place)[:12] + "…" + (f" ({listed[place]!r})" if listed[place] else "")
            for place in (found or list(listed))[:SHOWN]
        )
        if found:
            raise BadText(f"{wanted!r} can be {len(found)} places; say which by the id: {shown}")
        raise BadText(f"there is no place {wanted[:80]!r} here; there are {shown or 'none'}")

    def by_id(self, place: TopicId) -> Place:
        """A place, without a look whether it is there."""
        return Place(place, self._contact(), self._ask, self._reading)

    async def statuses(self) -> tuple[PlaceIs, ...]:
        """How every place stands."""
        return expected(await self._ask(ListPlaces()), PlacesAre).places

    async def names(self) -> dict[TopicId, str | None]:
        """All places of this node, and what they are called."""
        listed: dict[TopicId, str | None] = {}
        for status in await self.statuses():
            found = await self.by_id(status.deed.place).look_at(NAME)
            listed[status.deed.place] = None if found is None else found[1].decode("utf-8", "replace")
        return listed
