"""The places of a node as an application holds them, in the words of Toth 2013.

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
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from linnet.api.errors import TurnedAway as TurnedAway
from linnet.api.places import INLINE_BYTES, AskToEnter, ExaminePlace, OpenPlace, PlaceReport
from linnet.core.errors import BadText, Refused
from linnet.core.ids import AuthorId, Contact, TopicId
from linnet.core.reasons import Reason
from linnet.identity.addresses import parse_contact
from linnet.identity.lookup import Candidate, find_meant, list_candidates
from linnet.identity.text import Sort, from_text, short, to_text, topic_text
from linnet.machine.commands import Ask
from linnet.names.commands import NotResolved, ResolveName, WantsPassword
from linnet.node.answers import answers
from linnet.node.place_messages import Listening, PlaceItems, Progress
from linnet.places.address import PlaceAddress, is_address, parse_address
from linnet.places.channel.packet import Modifier
from linnet.places.commands import (
    ANNOUNCEMENT,
    NAME,
    REFUSAL,
    REQUEST,
    Admit,
    Announce,
    Announced,
    AnnounceMore,
    AtDoor,
    ChangePlace,
    Eject,
    Entered,
    EnterPlace,
    GuestsAre,
    HostPlace,
    LeavePlace,
    ListGuests,
    ListPlaces,
    ListReceipts,
    Look,
    ObjectsAre,
    PlaceIs,
    ReceiptsAre,
    Reject,
    Talked,
    TalkTo,
    Turned,
    WatchPlace,
    as_bytes,
    assigned,
    transient,
)
from linnet.places.deed import Policy
from linnet.places.entry import AT_THE_DOOR
from linnet.places.items import Changed, Knocked
from linnet.places.multicast.fragmentation import PIECE_BYTES

CHUNK_BYTES = 8 * PIECE_BYTES
"""Bytes of a long body that are given to the machine at once."""

Value: TypeAlias = bytes | str
Said: TypeAlias = bytes | str | Path | AsyncIterable[bytes]
"""A body: the value itself, the file at a path, or pieces from an iterator."""
Reading: TypeAlias = Callable[[Callable[[int], WatchPlace]], PlaceItems]
"""Makes a subscription from a command that is given its number."""


class Place:
    """A place of this node; made by `Places.host`, `Places.enter` and `Places.find`.

    Every method raises `Refused` with a reason if the place's rules, its host or a limit forbid it.
    """

    def __init__(self, id: TopicId, ask: Ask, reading: Reading) -> None:
        self.id = id
        self._ask = ask
        self._reading = reading

    def __repr__(self) -> str:
        return f"Place({short(Sort.TOPIC, self.id)})"

    @property
    def text(self) -> str:
        """The place's id as users type it."""
        return to_text(Sort.TOPIC, self.id)

    # The host.

    async def announce(
        self,
        body: Said = b"",
        method: str = ANNOUNCEMENT,
        *,
        state: Mapping[str, Value | None] | None = None,
        variables: Mapping[str, Value] | None = None,
        modifiers: tuple[Modifier, ...] = (),
        reset: bool = False,
        progress: Progress | None = None,
    ) -> Announced:
        """Announce a message to all guests; durable here when this returns.

        `state` sets objects of the place (None removes one), `variables` are for this message only. A body
        that is a path or an async iterator is sent while it is read, with other messages in between.
        """
        given = (*assigned(state or {}), *transient(variables or {}), *modifiers)
        if isinstance(body, bytes | str) and len(body) * 4 <= CHUNK_BYTES:
            return await self.say(as_bytes(body), method, given, reset)
        first = await self.say(b"", method, given, reset, more=True)
        return await self.announce_more(first.message, body, progress)

    async def announce_more(
        self, message: int, body: Said, progress: Progress | None = None, skip: int = 0
    ) -> Announced:
        """Send the rest of an open message's body, and close it; of a file, the part after `skip` bytes.

        A message that was open when the node stopped is open again after the start: `say_more` returns how
        much of it was sent.
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
        method: str = ANNOUNCEMENT,
        modifiers: tuple[Modifier, ...] = (),
        reset: bool = False,
        more: bool = False,
    ) -> Announced:
        """Announce a message to all guests, and leave it open if there is `more`."""
        return await self._ask(Announce(self.id, method, modifiers, body, reset, more))

    async def say_more(self, message: int, body: bytes, more: bool = True) -> Announced:
        """Send more of the body of an open message."""
        return await self._ask(AnnounceMore(self.id, message, body, more))

    async def admit(self, nym: AuthorId, since: int | None = None) -> Announced:
        """Admit a person who waits at the door; `since` is the first message that they may read."""
        return await self._ask(Admit(self.id, nym, since))

    async def reject(
        self,
        nym: AuthorId,
        text: Value = b"",
        method: str = REFUSAL,
        elsewhere: PlaceAddress | None = None,
    ) -> None:
        """Turn away a person who waits at the door, with a message, perhaps to another place."""
        await self._ask(Reject(self.id, nym, method, body=as_bytes(text), elsewhere=elsewhere))

    async def eject(self, nym: AuthorId) -> Announced:
        """Eject a guest, who cannot read later messages."""
        return await self._ask(Eject(self.id, nym))

    async def change(
        self,
        policy: Policy | None = None,
        cohosts: tuple[AuthorId, ...] | None = None,
        keepers: tuple[Contact, ...] | None = None,
    ) -> PlaceIs:
        """Change the deed of a place that this device founded; None leaves a value as it is."""
        return await self._ask(ChangePlace(self.id, policy, cohosts, keepers))

    # The guest.

    async def talk(
        self,
        body: Value = b"",
        method: str = REQUEST,
        variables: Mapping[str, Value] | None = None,
        patience: float = 20.0,
    ) -> Talked:
        """Send a message to the host alone; returns when the host's device has stored it."""
        modifiers = transient(variables or {})
        return await self._ask(TalkTo(self.id, method, modifiers, as_bytes(body), patience))

    async def leave(self) -> None:
        """Stop being a guest; the host tells everyone."""
        await self._ask(LeavePlace(self.id, for_good=True))

    async def disconnect(self) -> None:
        """Stop taking part for now; still a guest, who can return by `Places.enter` without a check."""
        await self._ask(LeavePlace(self.id, for_good=False))

    # Everybody.

    async def look(self, prefix: str = "") -> dict[str, bytes]:
        """Return objects whose names begin with this prefix (empty: all); also when nobody is linked."""
        return {each.name: each.value for each in (await self.objects(prefix)).objects}

    async def look_at(self, name: str) -> tuple[str, bytes] | None:
        """Return the object that fits a name best: its own, or that of the closest less specific name."""
        found = (await self.objects(name, best=True)).objects
        return found[0] if found else None

    async def objects(self, name: str = "", best: bool = False) -> ObjectsAre:
        """Return objects as `look` does, with the message whose state they are."""
        return await self._ask(Look(self.id, name, best))

    async def watch(self, prefix: str = "", present: bool = False) -> AsyncGenerator[Changed, None]:
        """Yield changes of objects from now on; with `present`, first the objects as they are."""
        watching = self._reading(
            lambda number: WatchPlace(number, self.id, objects=prefix, door=False, messages=False)
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
        """Yield the people who knock from now on, to be answered by `admit` or `reject`."""
        watching = self._reading(lambda number: WatchPlace(number, self.id, messages=False))
        async with watching:
            async for item in watching:
                if isinstance(item, Knocked):
                    yield item

    def listen(
        self,
        *methods: str,
        since: int | None = None,
        name: str | None = None,
        largest: int = INLINE_BYTES,
        objects: str | None = None,
    ) -> Listening:
        """Read messages by ``async for``: those to all guests and, at the host, those of guests.

        With methods, several listeners share the place: each message goes to the one that named the most
        specific method that covers its own; an empty name takes messages that no other listener takes.
        `since` is the first message wanted, None: from now on. A `name` makes it durable: it resumes after
        the last message that was handled. Bodies of more than `largest` bytes are left in the store.
        """
        items = self.items(methods or None, since, name, objects)
        return Listening(items, self.body, largest)

    def history(
        self, first: int | None = None, last: int | None = None, largest: int = INLINE_BYTES
    ) -> Listening:
        """Read past messages in order, from `first` (None: the first open to us), to `last` inclusive.

        Messages that are not here are requested from others.
        """
        until = -1 if last is None else last
        items = self._reading(
            lambda number: WatchPlace(number, self.id, since=first, until=until, door=False)
        )
        return Listening(items, self.body, largest)

    def items(
        self,
        methods: tuple[str, ...] | None = None,
        since: int | None = None,
        name: str | None = None,
        objects: str | None = "",
    ) -> PlaceItems:
        """Read all items, piece by piece as they arrive; the caller must close it."""
        return self._reading(
            lambda number: WatchPlace(number, self.id, name, since, methods=methods, objects=objects)
        )

    def body(self, message: int, offset: int = 0) -> PlaceItems:
        """Read the body of one message from a byte on, piece by piece; the caller must close it."""
        return self._reading(
            lambda number: WatchPlace(number, self.id, None, message, message, offset, door=False)
        )

    async def guests(self) -> GuestsAre:
        """Return the guests, and the people who wait at the door."""
        return await self._ask(ListGuests(self.id))

    async def receipts(self, message: int) -> ReceiptsAre:
        """Return which guests have a message, by their signed receipts; for host and co-hosts."""
        return await self._ask(ListReceipts(self.id, message))

    async def status(self) -> PlaceIs:
        """Return the state of the place."""
        return (await self._ask(ExaminePlace(self.id))).place

    async def address(self) -> PlaceAddress:
        """Return the address by which others enter: the place, and where members can be dialled."""
        return (await self._ask(ExaminePlace(self.id))).address


async def _chunks(body: Said, skip: int = 0) -> AsyncIterator[bytes]:
    """Yield a body in chunks of a bounded size; those of an iterator as they arrive."""
    if isinstance(body, Path):
        with body.open("rb") as file:
            file.seek(skip)
            while chunk := await asyncio.to_thread(file.read, CHUNK_BYTES):
                yield chunk
        return
    if isinstance(body, bytes | str):
        raw = as_bytes(body)
        for at in range(skip, len(raw), CHUNK_BYTES):
            yield raw[at : at + CHUNK_BYTES]
        return
    async for given in body:
        for at in range(0, len(given), CHUNK_BYTES):
            yield given[at : at + CHUNK_BYTES]


OPENED = "_notice_place_open"
"""The first message in a place, which gives it a voice and a door."""


class Places:
    """All places of one node."""

    def __init__(self, ask: Ask, reading: Reading) -> None:
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
        """Found a place with us as the host, and open its door."""
        made = await self._ask(OpenPlace(policy, name, cohosts, keepers, assigned(state or {})))
        return self.by_id(made.place.place)

    async def enter(
        self,
        where: str | TopicId | PlaceAddress,
        contacts: tuple[Contact | str, ...] = (),
        text: Value = b"",
        variables: Mapping[str, Value] | None = None,
        patience: float = 20.0,
        waits: bool = True,
    ) -> Place:
        """Enter by an address, a name such as ``music.alice``, or an id with contacts; or enter again.

        `text` is shown to the host at the door. Raises `BadText` if the address is wrong, `TurnedAway` if the
        host does not let us in, `Refused` for other reasons: with `Reason.WAITING` the host has not decided
        yet, and this node stays at its door. Without `waits` that is raised at once.
        """
        asked = tuple(parse_contact(each) if isinstance(each, str) else each for each in contacts)
        if isinstance(where, PlaceAddress):
            asked = (*where.contacts, *asked)
            where = where.place
        typed = where if isinstance(where, str) else topic_text(where)
        words = (patience, waits, transient(variables or {}), as_bytes(text))
        result = await self._ask(AskToEnter(typed, asked, "", *words))
        if isinstance(result, Turned):
            raise TurnedAway(result)
        if isinstance(result, AtDoor):
            raise Refused(Reason.WAITING, AT_THE_DOOR)
        return self.by_id(result.place)

    async def find(self, which: str | TopicId) -> Place:
        """Find a place of this node by its id, an unambiguous beginning of it, or its name."""
        if isinstance(which, bytes):
            return self.by_id(TopicId(which))
        wanted = which.strip()
        if is_address(wanted):
            return self.by_id(parse_address(wanted).place)
        return self.by_id(choose_place(wanted, await self.statuses()).place)

    def by_id(self, place: TopicId) -> Place:
        """Return a place without checking that it exists."""
        return Place(place, self._ask, self._reading)

    async def statuses(self) -> tuple[PlaceIs, ...]:
        """Return the state of every place."""
        return (await self._ask(ListPlaces())).places


def choose_place(text: str, places: Sequence[PlaceIs]) -> PlaceIs:
    """Return the only place with this name or beginning of its id; `BadText` lists the candidates."""
    wanted = text.strip()
    candidates = [Candidate(place, topic_text(place.place), place.name) for place in places]
    found = find_meant(wanted, Sort.TOPIC, candidates)
    if len(found) == 1:
        return found[0].thing
    listed = list_candidates(found or candidates)
    if found:
        raise BadText(f"{wanted!r} can be {len(found)} places; say which by the id: {listed}")
    raise BadText(
        f"there is no place {wanted[:80]!r} here; there are {listed or 'none'}; look at: linnet place list"
    )


class PlaceAnswers:
    """The node's own answers about places, before or after its machine is asked."""

    def __init__(self, contact: Callable[[], Contact], ask: Ask) -> None:
        self._contact = contact
        self._ask = ask

    @answers(OpenPlace)
    async def open_place(self, command: OpenPlace) -> PlaceReport:
        """Found a place, and announce its first message."""
        made = await self._ask(HostPlace(command.policy, command.cohosts, command.keepers))
        named = {} if command.name is None else {NAME: command.name}
        await self._ask(Announce(made.place, OPENED, (*assigned(named), *command.modifiers)))
        return await self._report(made.place)

    @answers(ExaminePlace)
    async def examine_place(self, command: ExaminePlace) -> PlaceReport:
        """Report the state of a place, and the address by which others enter it."""
        return await self._report(command.place)

    async def _report(self, place: TopicId) -> PlaceReport:
        found = next((each for each in (await self._ask(ListPlaces())).places if each.place == place), None)
        if found is None:
            detail = f"{topic_text(place)}: this node is not in that place; see: linnet place list"
            raise Refused(Reason.NOT_JOINED, detail)
        known = (self._contact(), *found.deed.keepers, *found.contacts)
        contacts = {each.peer: each for each in reversed(known) if each.hints}
        return PlaceReport(found, PlaceAddress(place, tuple(reversed(contacts.values())), found.name))

    @answers(AskToEnter)
    async def ask_to_enter(self, command: AskToEnter) -> Entered | AtDoor | Turned:
        """Enter the place that an address, a name or an id stands for."""
        if command.text and command.body:
            raise BadText("give a text or a body, one of them")
        found = await self._address(command.where)
        contacts = (*found.contacts, *command.contacts)
        words = (command.modifiers, command.body or command.text.encode(), command.patience, command.waits)
        return await self._ask(EnterPlace(found.place, contacts, *words))

    async def _address(self, where: str) -> PlaceAddress:
        """Return the place that is meant, and the contacts to ask there."""
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
        if isinstance(result, WantsPassword):
            raise Refused(
                Reason.UNKNOWN, f"{where[:80]!r} has a password; see: linnet name resolve --password"
            )
        return PlaceAddress(result.place, result.contacts)
