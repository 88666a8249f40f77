"""The people in the rooms of a node: who they are by name, who was verified, and what to warn of."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property

from msgspec.structs import replace

from linnet.core.errors import LinnetError
from linnet.core.ids import AuthorId, DeviceId, TopicId
from linnet.core.stores import Store
from linnet.delivery.cards import kept_cards
from linnet.delivery.commands import Done
from linnet.delivery.items import Item
from linnet.event.event import Event
from linnet.node.answers import expected
from linnet.node.batching import Ask
from linnet.node.known_people import (
    KnownPerson,
    PersonWarning,
    Sighting,
    decode_person,
    encode_person,
    meet,
    tell,
    warnings,
)
from linnet.node.rooms import Rooms
from linnet.rooms.commands import NotePerson
from linnet.rooms.content import Membership
from linnet.rooms.room_store import notes

Watch = Callable[[Sequence[Item]], Awaitable[tuple[PersonWarning, ...]]]
"""Given what is about to be read, what is to be told beside it."""


class People:
    """Everyone whom one node has met in its rooms."""

    def __init__(
        self,
        own: AuthorId,
        store: Store,
        ask: Ask,
        rooms: Rooms,
        label_of: Callable[[AuthorId, DeviceId], str],
        clock: Callable[[], float],
    ) -> None:
        self._own = own
        self._store = store
        self._ask = ask
        self._rooms = rooms
        self._label_of = label_of
        self._clock = clock
        self._changing = asyncio.Lock()

    def find(self, person: AuthorId) -> KnownPerson | None:
        """What is kept of a person; None if nobody has met them here."""
        return self._known.get(person)

    def is_verified(self, person: AuthorId) -> bool:
        """Whether our user has compared safety numbers with this person."""
        known = self._known.get(person)
        return known is not None and known.verified_at is not None

    async def verify(self, person: AuthorId, verified: bool = True) -> KnownPerson:
        """Our user has compared safety numbers with a person, or takes that back; returns when it is kept.

        For ourselves it says that all devices that were seen are ours.
        """
        now = self._clock()
        async with self._changing:
            cards = kept_cards(self._store.cells, person)
            sightings = [Sighting(person, card.device, card.label) for card in cards]
            one = meet(self._known, sightings, now).get(person) or self.find(person) or KnownPerson(now)
            one = replace(one, verified_at=now if verified else None)
            await self._keep({person: one})
            return one

    async def look(self, room: TopicId) -> tuple[PersonWarning, ...]:
        """Meet everyone who is in a room; all that there is to say against them."""
        async with self._changing:
            return await self._look(room)

    async def news(self, room: TopicId) -> tuple[PersonWarning, ...]:
        """The same, without what was told before; from now on it counts as told."""
        async with self._changing:
            found = []
            for warning in await self._look(room):
                person = tell(self._known[warning.person], warning)
                if person is not None:
                    await self._keep({warning.person: person})
                    found.append(warning)
            return tuple(found)

    def watch(self, room: TopicId) -> Watch:
        """Look at a room while it is read: at first, and whenever a device speaks that has not before."""
        heard: set[tuple[AuthorId, DeviceId]] = set()
        is_first = True

        async def beside(items: Sequence[Item]) -> tuple[PersonWarning, ...]:
            nonlocal is_first
            speakers = {(item.author, item.device) for item in items if isinstance(item, Event)}
            if speakers <= heard and not is_first:
                return ()
            heard.update(speakers)
            is_first = False
            try:
                return await self.news(room)
            except LinnetError:
                return ()  # We are of the room no longer, or the node stops: the reader is told by the end.

        return beside

    @cached_property
    def _known(self) -> dict[AuthorId, KnownPerson]:
        return {person: decode_person(note) for person, note in notes(self._store.cells).items()}

    async def _look(self, room: TopicId) -> tuple[PersonWarning, ...]:
        sightings = await self._sightings(room)
        await self._keep(meet(self._known, sightings, self._clock()))
        return warnings(self._known, sightings, self._own)

    async def _sightings(self, room: TopicId) -> list[Sighting]:
        """Every device that was ever heard of, of those who are in the room."""
        members = await self._rooms.by_id(room).members()
        devices = {
            member.person: {*member.devices, *member.key_devices}
            for member in members
            if member.membership is Membership.JOIN and not member.relay
        }
        for head in self._store.log.heads(room):
            if head.author in devices:
                devices[head.author].add(head.device)
        return [
            Sighting(person, device, self._label_of(person, device))
            for person in sorted(devices)
            for device in sorted(devices[person])
        ]

    async def _keep(self, changed: dict[AuthorId, KnownPerson]) -> None:
        for person, one in changed.items():
            expected(await self._ask(NotePerson(person, encode_person(one))), Done)
            self._known[person] = one
