"""A place as an application holds it, in the words of Toth 2013.

::

    place = await node.places.host(name="tea")
    print((await place.address()).text)             # hand this over
    await place.announce("Did it arrive?", state={"_topic": "tea"})

    place = await other.places.enter(address)
    await place.talk("One sugar, please.")
    async for message in place.listen():
        ...
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from linnet.core.errors import LocalError
from linnet.core.ids import AuthorId, Contact, TopicId
from linnet.delivery.commands import Done
from linnet.identity.text import Sort, short, to_text
from linnet.node.answers import expected
from linnet.node.batching import Ask
from linnet.node.place_items import PlaceItems
from linnet.node.place_messages import BODY_BYTES, Listening, Progress
from linnet.places.address import PlaceAddress
from linnet.places.channel.packet import ASSIGN, TRANSIENT, Modifier
from linnet.places.commands import (
    Admit,
    Announce,
    Announced,
    AnnounceMore,
    Eject,
    GuestsAre,
    HostPlace,
    LeavePlace,
    ListGuests,
    ListPlaces,
    ListReceipts,
    Look,
    ObjectsAre,
    PlaceIs,
    PlacesAre,
    ReceiptsAre,
    Reject,
    Talked,
    TalkTo,
    WatchPlace,
)
from linnet.places.deed import Policy
from linnet.places.items import Changed, Knocked
from linnet.places.multicast.fragmentation import PIECE_BYTES

MESSAGE = "_message"
REQUEST = "_request"
NAME = "_name"
"""The object that says what a place is called."""
CHUNK_BYTES = 8 * PIECE_BYTES
"""Bytes of a long body that are handed to the machine at once."""

Value: TypeAlias = bytes | str
Said: TypeAlias = bytes | str | Path | AsyncIterable[bytes]
"""A body: as it is, the file at a path, or pieces as they come."""
Reading: TypeAlias = Callable[[Callable[[int], WatchPlace]], PlaceItems]
"""Make a subscription from a command that is given its number."""


class Place:
    """A place of this node; made by `Places.host`, `Places.enter` and `Places.find`.

    Every method raises `Refused` with a reason if the place's rules, its host or a limit say no.
    """

    def __init__(self, id: TopicId, contact: Contact, ask: Ask, reading: Reading) -> None:
        self.id = id
        self._contact = contact
        self._ask = ask
        self._reading = reading

    def __repr__(self) -> str:
        return f"Place({short(Sort.TOPIC, self.id)})"

    @property
    def text(self) -> str:
        """The place's id as people type it."""
        return to_text(Sort.TOPIC, self.id)

    # The host.

    async def announce(
        self,
        body: Said = b"",
        method: str = MESSAGE,
        *,
        state: Mapping[str, Value | None] | None = None,
        variables: Mapping[str, Value] | None = None,
        modifiers: tuple[Modifier, ...] = (),
        reset: bool = False,
        progress: Progress | None = None,
    ) -> Announced:
        """Say something to all guests; durable here when this returns.

        `state` sets objects of the place (None: takes one away), `variables` are for this message only.
        A body that is a path or an async iterator is sent while it is read, other messages in between.
        """
        given = (*assigned(state or {}), *transient(variables or {}), *modifiers)
        if isinstance(body, bytes | str) and len(body) * 4 <= CHUNK_BYTES:
            return await self.say(_bytes(body), method, given, reset)
        first = await self.say(b"", method, given, reset, more=True)
        return await self.announce_more(first.message, body, progress)

    async def announce_more(
        self, message: int, body: Said, progress: Progress | None = None, skip: int = 0
    ) -> Announced:
        """The rest of the body of a message that is open, and its end; of a file, what follows `skip` bytes.

        A message that was open when the node stopped is open again after it: `say_more` tells how far it is.
        """
        total = body.stat().st_size if isinstance(body, Path) else len(body) if isinstance(body, bytes) else 0
        done = skip
        async for chunk in _chunks(body, skip):
            await self.say_more(message, chunk)
            done += len(chunk)
            if progress is not None:
                progress(done, max(total, done))
        return await self.say_more(message, b"", more=False)

    async def say(
        self,
        body: bytes,
        method: str = MESSAGE,
        modifiers: tuple[Modifier, ...] = (),
        reset: bool = False,
        more: bool = False,
    ) -> Announced:
        """Say something to all guests, and leave the message open if there is `more`."""
        return expected(await self._ask(Announce(self.id, method, modifiers, body, reset, more)), Announced)

    async def say_more(self, message: int, body: bytes, more: bool = True) -> Announced:
        """More of the body of a message that is open."""
        return expected(await self._ask(AnnounceMore(self.id, message, body, more)), Announced)

    async def admit(self, nym: AuthorId, since: int | None = None) -> Announced:
        """Let somebody in who waits at the door; `since` is the first message that is open to them."""
        return expected(await self._ask(Admit(self.id, nym, since)), Announced)

    async def reject(
        self,
        nym: AuthorId,
        text: Value = b"",
        method: str = "_failure_place_enter",
        elsewhere: PlaceAddress | None = None,
    ) -> None:
        """Turn somebody away who waits at the door, with a word, perhaps to another place."""
        raw = text.encode() if isinstance(text, str) else text
        told = () if elsewhere is None else (Modifier(TRANSIENT, "_place", elsewhere.text.encode()),)
        expected(await self._ask(Reject(self.id, nym, method, told, raw)), Done)

    async def eject(self, nym: AuthorId) -> Announced:
        """Put a guest out: what follows is closed to them."""
        return expected(await self._ask(Eject(self.id, nym)), Announced)

    async def change(
        self,
        policy: Policy | None = None,
        cohosts: tuple[AuthorId, ...] | None = None,
        keepers: tuple[Contact, ...] | None = None,
    ) -> PlaceIs:
        """Change the deed of a place that this device founded; None: as it was."""
        return expected(await self._ask(HostPlace(self.id, policy, cohosts, keepers)), PlaceIs)

    # The guest.

    async def talk(
        self,
        body: Value = b"",
        method: str = REQUEST,
        variables: Mapping[str, Value] | None = None,
        patience: float = 20.0,
    ) -> Talked:
        """Say something to the host alone; returns when its device has written it down."""
        raw = body.encode() if isinstance(body, str) else body
        words = (method, transient(variables or {}), raw, patience)
        return expected(await self._ask(TalkTo(self.id, *words)), Talked)

    async def leave(self) -> None:
        """Be a guest no longer: the host tells everyone."""
        expected(await self._ask(LeavePlace(self.id, for_good=True)), Talked)

    async def disconnect(self) -> None:
        """Not now: still a guest, who comes in again by `Places.enter` without being asked about."""
        expected(await self._ask(LeavePlace(self.id, for_good=False)), Done)

    # Everybody.

    async def look(self, prefix: str = "") -> dict[str, bytes]:
        """Objects whose names begin with these keywords, all with none; also when nobody can be reached."""
        return dict((await self.objects(prefix)).objects)

    async def look_at(self, name: str) -> tuple[str, bytes] | None:
        """The object that fits a name best: of that name, or of the closest that is less specific."""
        found = (await self.objects(name, best=True)).objects
        return found[0] if found else None

    async def objects(self, name: str = "", best: bool = False) -> ObjectsAre:
        """The same as a whole, with the message whose state it is."""
        return expected(await self._ask(Look(self.id, name, best)), ObjectsAre)

    async def watch(self, prefix: str = "", present: bool = False) -> AsyncGenerator[Changed, None]:
        """Changes of objects from now on; with `present` as they stand first."""
        watching = self._reading(
            lambda number: WatchPlace(number, self.id, methods=(), objects=prefix, door=False)
        )
        async with watching:
            if present:
                seen = await self.objects(prefix)
                for name, value in seen.objects:
                    yield Changed(self.id, seen.state, name, value)
            async for item in watching:
                if isinstance(item, Changed):
                    yield item

    async def door(self) -> AsyncGenerator[Knocked, None]:
        """Who knocks from now on, to be answered by `admit` or `reject`."""
        watching = self._reading(
            lambda number: WatchPlace(number, self.id, methods=(), objects=None, door=True)
        )
        async with watching:
            async for item in watching:
                if isinstance(item, Knocked):
                    yield item

    def listen(
        self,
        *methods: str,
        since: int | None = None,
        name: str | None = None,
        largest: int = BODY_BYTES,
        objects: str | None = None,
    ) -> Listening:
        """What is said, to be read by ``async for``: to all, and to the host by guests.

        With methods, several who listen share the place: each message goes to whoever named the most
        specific method that covers its own; an empty name is for what nobody else takes. `since` is the
        first message wanted, None: from now on. A `name` makes it durable: it goes on after the last message
        that was handled. Bodies of more than `largest` bytes are left in the store.
        """
        items = self.items(methods or None, since, name, objects)
        return Listening(items, self.body, largest)

    def history(
        self, first: int | None = None, last: int | None = None, largest: int = BODY_BYTES
    ) -> Listening:
        """Messages of the past in their order, from the first that is open to us on, or from another one; the
        last included. What is not here is asked for."""
        until = -1 if last is None else last
        items = self._reading(
            lambda number: WatchPlace(number, self.id, since=first, until=until, objects=None, door=False)
        )
        return Listening(items, self.body, largest)

    def items(
        self,
        methods: tuple[str, ...] | None = None,
        since: int | None = None,
        name: str | None = None,
        objects: str | None = "",
    ) -> PlaceItems:
        """All that is handed over, piece by piece as it comes; the caller closes it."""
        return self._reading(
            lambda number: WatchPlace(number, self.id, name, since, methods=methods, objects=objects)
        )

    def body(self, message: int, offset: int = 0) -> PlaceItems:
        """The body of one message from a byte on, piece by piece; the caller closes it."""
        return self._reading(
            lambda number: WatchPlace(
                number, self.id, None, message, message, offset, objects=None, door=False
            )
        )

    async def guests(self) -> GuestsAre:
        """Who is in, and who waits at the door."""
        return expected(await self._ask(ListGuests(self.id)), GuestsAre)

    async def receipts(self, message: int) -> ReceiptsAre:
        """Which guests have a message, by their signed receipts; for host and co-hosts."""
        return expected(await self._ask(ListReceipts(self.id, message)), ReceiptsAre)

    async def status(self) -> PlaceIs:
        """How it stands."""
        places = expected(await self._ask(ListPlaces()), PlacesAre).places
        found = next((each for each in places if each.deed.place == self.id), None)
        if found is None:
            raise LocalError(f"{self.text}: this node is not in that place; see: linnet place list")
        return found

    async def address(self) -> PlaceAddress:
        """What others enter by: the place, and where this node and others who are in may be dialled."""
        status = await self.status()
        known = (self._contact, *status.deed.keepers, *status.contacts)
        contacts = {each.peer: each for each in reversed(known) if each.hints}
        found = await self.look_at(NAME)
        name = None if found is None else found[1].decode("utf-8", "replace")
        return PlaceAddress(self.id, tuple(reversed(contacts.values())), name)


def assigned(state: Mapping[str, Value | None]) -> tuple[Modifier, ...]:
    """Modifiers that set objects, or take them away."""
    return tuple(Modifier(ASSIGN, name, _bytes(value or b"")) for name, value in state.items())


def operated(operator: str, variables: Mapping[str, Value]) -> tuple[Modifier, ...]:
    """Modifiers that add to objects (`+`), or take away from them (`-`)."""
    return tuple(Modifier(operator, name, _bytes(value)) for name, value in variables.items())


def transient(variables: Mapping[str, Value]) -> tuple[Modifier, ...]:
    """Modifiers that are for one message."""
    return tuple(Modifier(TRANSIENT, name, _bytes(value)) for name, value in variables.items())


def _bytes(value: Value) -> bytes:
    return value.encode() if isinstance(value, str) else value


async def _chunks(body: Said, skip: int = 0) -> AsyncIterator[bytes]:
    """A body in chunks of a bounded size, those of an iterator as they come."""
    if isinstance(body, Path):
        with body.open("rb") as file:
            file.seek(skip)
            while chunk := await asyncio.to_thread(file.read, CHUNK_BYTES):
                yield chunk
        return
    if isinstance(body, bytes | str):
        raw = _bytes(body)
        for at in range(skip, len(raw), CHUNK_BYTES):
            yield raw[at : at + CHUNK_BYTES]
        return
    async for given in body:
        for at in range(0, len(given), CHUNK_BYTES):
            yield given[at : at + CHUNK_BYTES]
