"""Names, as a program uses them: our zone, our petnames, and where an address leads.

::

    async with Node(home) as node:
        await node.names.publish("music", place)
        await node.names.set_petname("bob", bobs_key)
        found = await node.names.resolve("music.alice.bob")
        print(found.place, found.contacts, found.path)
"""

from __future__ import annotations

import asyncio

from linnet.core.errors import LocalError, Refused
from linnet.core.ids import AuthorId, Contact, TopicId
from linnet.core.reasons import Reason
from linnet.names.address import read_address, read_label, read_name
from linnet.names.commands import (
    ExportNames,
    ListNames,
    ListPetnames,
    NamesAre,
    NamesFile,
    NotResolved,
    PetnamesAre,
    Published,
    PublishName,
    RemoveName,
    RemovePetname,
    Resolved,
    ResolveName,
    SetPetname,
    TakeInNames,
    TakenIn,
    WantsPassword,
)
from linnet.names.derivation import Password, Stretched, stretch
from linnet.node.addresses import parse_contact
from linnet.node.answers import expected
from linnet.node.batching import Ask

TRIES = 3
"""Times that a password is made ready for where an address leads, if it leads elsewhere meanwhile."""


class LeadsNowhere(LocalError):
    """An address leads to no place; `outcome` says how far it came, where it failed, and how."""

    def __init__(self, outcome: NotResolved) -> None:
        super().__init__(f"{outcome.address}: {outcome.fault}: {outcome.detail}")
        self.outcome = outcome


class NodeNames:
    """Names at one node. Everything raises `BadText` or `Refused` with why it cannot be.

    A password is stretched in a thread: it takes a while, and the node goes on meanwhile.
    """

    def __init__(self, zone: AuthorId, contact: Contact, ask: Ask) -> None:
        self.zone = zone
        """The key of our zone: that of our person."""
        self._contact = contact
        self._ask = ask

    async def publish(
        self,
        label: str,
        place: TopicId | None = None,
        contacts: tuple[Contact | str, ...] = (),
        zone: AuthorId | None = None,
        lifetime: float | None = None,
        renew: bool = True,
        password: str | None = None,
    ) -> Published:
        """Say under a label of our zone where a place is, or whose zone goes on from there, or both.

        Without contacts the place is entered at this node. `lifetime` is in seconds; 0 removes the label.
        """
        name = read_label(label)
        given = tuple(parse_contact(each) if isinstance(each, str) else each for each in contacts)
        if place is not None and not given:
            given = self._own_contact()
        stretched = await self._stretched(name, password)
        command = PublishName(name, place, given, zone, lifetime, renew, stretched)
        return expected(await self._ask(command), Published)

    async def withdraw(self, label: str, password: str | None = None) -> Published:
        """Take back what our zone says under a label; whoever asks is told so until it would have ended."""
        name = read_label(label)
        stretched = await self._stretched(name, password)
        return expected(await self._ask(RemoveName(name, stretched)), Published)

    async def list(self) -> NamesAre:
        """What our zone says, as far as this device wrote it, and who keeps it."""
        return expected(await self._ask(ListNames()), NamesAre)

    async def resolve(self, address: str, password: str | None = None) -> Resolved:
        """The place that an address leads to, and by whose word; `LeadsNowhere` says how it failed."""
        outcome = await self.look_up(address, password)
        if isinstance(outcome, NotResolved):
            raise LeadsNowhere(outcome)
        return outcome

    async def look_up(self, address: str, password: str | None = None) -> Resolved | NotResolved:
        """As `resolve`, with a failure as a value: that is an answer about the address as well."""
        read_address(address)
        result = await self._ask(ResolveName(address, password is not None))
        for _ in range(TRIES):
            if not isinstance(result, WantsPassword) or password is None:
                break
            stretched = await asyncio.to_thread(stretch, Password(password), result.zone, result.label)
            result = await self._ask(ResolveName(address, True, stretched))
        if isinstance(result, WantsPassword):
            raise Refused(Reason.STALE, "the address leads elsewhere each time that it is looked up")
        return result if isinstance(result, NotResolved) else expected(result, Resolved)

    async def export(self) -> NamesFile:
        """Our own records as a file: whoever takes it in keeps them, and can read none without the name."""
        return expected(await self._ask(ExportNames()), NamesFile)

    async def take_in(self, data: bytes) -> TakenIn:
        """Keep the records of such a file, as if a peer had given them."""
        return expected(await self._ask(TakeInNames(data)), TakenIn)

    async def set_petname(self, name: str, zone: AuthorId) -> PetnamesAre:
        """Know somebody by this name, on this device alone."""
        return expected(await self._ask(SetPetname(read_name(name), zone)), PetnamesAre)

    async def remove_petname(self, name: str) -> PetnamesAre:
        """Know nobody by this name any more."""
        return expected(await self._ask(RemovePetname(read_name(name))), PetnamesAre)

    async def petnames(self) -> PetnamesAre:
        """Whom the user knows by which name."""
        return expected(await self._ask(ListPetnames()), PetnamesAre)

    async def _stretched(self, label: str, password: str | None) -> Stretched | None:
        if password is None:
            return None
        return await asyncio.to_thread(stretch, Password(password), self.zone, label)

    def _own_contact(self) -> tuple[Contact, ...]:
        if not self._contact.hints:
            raise Refused(
                Reason.UNREACHABLE, "this node does not listen: name a peer at which the place can be entered"
            )
        return (self._contact,)
