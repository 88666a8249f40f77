"""Names for programs: our zone, our petnames, and the resolution of addresses.

::

    async with Node(home) as node:
        await node.names.publish("music", place)
        await node.names.set_petname("bob", bobs_key)
        found = await node.names.resolve("music.alice.bob")
        print(found.place, found.contacts, found.path)
"""

from __future__ import annotations

import asyncio

from linnet.api.name_commands import LookUpAddress, PublishLabel, WithdrawLabel
from linnet.core.errors import LocalError, Refused
from linnet.core.ids import AuthorId, Contact, TopicId
from linnet.core.reasons import Reason
from linnet.identity.addresses import parse_contact
from linnet.machine.commands import Ask
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
from linnet.node.answers import answers

TRIES = 3
"""How often a password is stretched anew if the address leads elsewhere meanwhile."""


class LeadsNowhere(LocalError):
    """An address leads to no place; `outcome` says how far it was followed, where it failed, and how."""

    def __init__(self, outcome: NotResolved) -> None:
        super().__init__(f"{outcome.address}: {outcome.fault}: {outcome.detail}")
        self.outcome = outcome


class NodeNames:
    """Names at one node. Each call raises `BadText` or `Refused` with the reason if it fails."""

    def __init__(self, ask: Ask) -> None:
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
        """Publish under a label of our zone where a place is, or the zone that continues there, or both.

        Without contacts the place is entered at this node. `lifetime` is in seconds; 0 removes the label.
        """
        given = tuple(parse_contact(each) if isinstance(each, str) else each for each in contacts)
        return await self._ask(PublishLabel(label, place, given, zone, lifetime, renew, password))

    async def withdraw(self, label: str, password: str | None = None) -> Published:
        """Withdraw a label of our zone; lookups are told so until it would have ended."""
        return await self._ask(WithdrawLabel(label, password))

    async def list(self) -> NamesAre:
        """Return the records of our zone that this device wrote, and the nodes that keep them."""
        return await self._ask(ListNames())

    async def resolve(self, address: str, password: str | None = None) -> Resolved:
        """Return the place that an address leads to, and by whose records; raises `LeadsNowhere` if none."""
        outcome = await self.look_up(address, password)
        if isinstance(outcome, NotResolved):
            raise LeadsNowhere(outcome)
        return outcome

    async def look_up(self, address: str, password: str | None = None) -> Resolved | NotResolved:
        """Do as `resolve`, but return a failure as a value: that also tells about the address."""
        return await self._ask(LookUpAddress(address, password))

    async def export(self) -> NamesFile:
        """Export our records as a file. Nodes that import it keep them, but read none without its name."""
        return await self._ask(ExportNames())

    async def take_in(self, data: bytes) -> TakenIn:
        """Import the records of such a file, as if a peer had given them."""
        return await self._ask(TakeInNames(data))

    async def set_petname(self, name: str, zone: AuthorId) -> PetnamesAre:
        """Set a petname for a person, on this device alone."""
        return await self._ask(SetPetname(read_name(name), zone))

    async def remove_petname(self, name: str) -> PetnamesAre:
        """Remove a petname."""
        return await self._ask(RemovePetname(read_name(name)))

    async def petnames(self) -> PetnamesAre:
        """Return the user's petnames."""
        return await self._ask(ListPetnames())


class NameAnswers:
    """The node's own answers about names: it stretches passwords in a thread, since that takes a while."""

    def __init__(self, zone: AuthorId, contact: Contact, ask: Ask) -> None:
        self._zone = zone
        self._contact = contact
        self._ask = ask

    @answers(PublishLabel)
    async def publish_label(self, command: PublishLabel) -> Published:
        """Publish a label, with its password stretched."""
        label = read_label(command.label)
        contacts = command.contacts
        if command.place is not None and not contacts:
            contacts = self._own_contact()
        stretched = await self._stretched(label, command.password)
        return await self._ask(
            PublishName(
                label, command.place, contacts, command.zone, command.lifetime, command.renew, stretched
            )
        )

    @answers(WithdrawLabel)
    async def withdraw_label(self, command: WithdrawLabel) -> Published:
        """Withdraw a label, with its password stretched."""
        label = read_label(command.label)
        return await self._ask(RemoveName(label, await self._stretched(label, command.password)))

    @answers(LookUpAddress)
    async def look_up_address(self, command: LookUpAddress) -> Resolved | NotResolved:
        """Follow an address; a password can be stretched only once the zone of its label is known."""
        address, password = command.address, command.password
        read_address(address)
        result = await self._ask(ResolveName(address, password is not None))
        for _ in range(TRIES):
            if not isinstance(result, WantsPassword) or password is None:
                break
            stretched = await asyncio.to_thread(stretch, Password(password), result.zone, result.label)
            result = await self._ask(ResolveName(address, True, stretched))
        if isinstance(result, WantsPassword):
            raise Refused(Reason.STALE, "the address leads elsewhere each time that it is looked up")
        return result

    async def _stretched(self, label: str, password: str | None) -> Stretched | None:
        if password is None:
            return None
        return await asyncio.to_thread(stretch, Password(password), self._zone, label)

    def _own_contact(self) -> tuple[Contact, ...]:
        if not self._contact.hints:
            raise Refused(
                Reason.UNREACHABLE, "this node does not listen: name a peer at which the place can be entered"
            )
        return (self._contact,)
