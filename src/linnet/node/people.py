"""The people in the rooms of a node: their names, whether they were verified, and warnings about them.

This module also has the node's own answers about rooms: invitations as text, and people as its user knows
them.
"""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, TypeVar

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from linnet.api.items import Alarm as Alarm
from linnet.api.rooms import (
    AskToJoin,
    InviteToRoom,
    KeyHolder,
    KnownMember,
    ListMembers,
    LookUpPerson,
    MembersAre,
    PersonReport,
    ReportSecurity,
    SecurityReport,
    VerifyPerson,
)
from linnet.api.rooms import PersonWarning as PersonWarning
from linnet.core.errors import BadText, LinnetError, StoreError
from linnet.core.ids import AuthorId, DeviceId, TopicId
from linnet.core.stores import Store
from linnet.delivery.context import kept_cards
from linnet.delivery.items import Item
from linnet.event.event import Event
from linnet.identity.safety import safety_number, safety_words
from linnet.machine.commands import Ask
from linnet.node.answers import answers
from linnet.node.rooms import Rooms
from linnet.rooms.commands import (
    DeviceKeys,
    ExamineSecurity,
    ExamineState,
    Hindrance,
    JoinRoom,
    MakeTicket,
    NotePerson,
    RoomMade,
    RoomMember,
    SetMembership,
)
from linnet.rooms.event_types import Membership
from linnet.rooms.invitations import Invitation, parse_invitation
from linnet.rooms.room_store import notes

LABELS = 32
"""The most names that are remembered of one person; the newest are kept."""
DEVICES = 256
TOLD = 256
K = TypeVar("K")


class KnownPerson(Struct, frozen=True):
    """What is stored of a person."""

    first_seen: float
    labels: dict[str, float] = field(default_factory=dict)
    """The labels of their devices, and since when each is known."""
    devices: dict[DeviceId, float] = field(default_factory=dict)
    """Their devices, and when each was first seen."""
    verified_at: float | None = None
    """When this node's user last confirmed that the safety numbers are equal."""
    told: tuple[str, ...] = ()
    """Warnings about this person that were shown."""


class Sighting(NamedTuple):
    """A device of a person who is in a room, and its label."""

    person: AuthorId
    device: DeviceId
    label: str


def meet(
    known: Mapping[AuthorId, KnownPerson], sightings: Iterable[Sighting], now: float
) -> dict[AuthorId, KnownPerson]:
    """Return the people of whom something is new, as they are known from now on."""
    changed: dict[AuthorId, KnownPerson] = {}
    for person, device, label in sightings:
        one = changed.get(person) or known.get(person) or KnownPerson(now)
        labels = one.labels if not label or label in one.labels else {**one.labels, label: now}
        devices = one.devices if device in one.devices else {**one.devices, device: now}
        if person not in known or labels is not one.labels or devices is not one.devices:
            changed[person] = replace(one, labels=_newest(labels, LABELS), devices=_newest(devices, DEVICES))
    return changed


def warnings(
    known: Mapping[AuthorId, KnownPerson], sightings: Iterable[Sighting], own: AuthorId
) -> tuple[PersonWarning, ...]:
    """Return the warnings about people who are in a room; call `meet` before this."""
    found: dict[PersonWarning, None] = {}
    names = _names(known)
    for person, device, label in sightings:
        since = trusted_since(known[person], person == own)
        if since is not None:
            if known[person].devices.get(device, since) > since:
                alarm = Alarm.OWN_DEVICE if person == own else Alarm.NEW_DEVICE
                found[PersonWarning(alarm, person, _name(known[person]) or label, device=device)] = None
            continue
        if label:
            rivals = [other for other in names.get(folded(label), ()) if other != person]
            before = [other for other in rivals if _precedes(known, own, folded(label), other, person)]
            if before:
                first = min(before, key=lambda other: _rank(known, own, folded(label), other))
                found[PersonWarning(_alarm(known[first], first == own), person, label, first)] = None
    return tuple(found)


def trusted_since(person: KnownPerson, is_own: bool) -> float | None:
    """Return when this key was last verified; our own is trusted from the start."""
    if is_own and person.verified_at is None:
        return person.first_seen
    return person.verified_at


def folded(label: str) -> str:
    """Return a name without differences that eyes miss: case, width, blanks."""
    return " ".join(unicodedata.normalize("NFKC", label).casefold().split())


def tell(person: KnownPerson, warning: PersonWarning) -> KnownPerson | None:
    """Return the person with this warning marked as shown; None if it was shown before."""
    key = _told_key(warning)
    if key in person.told:
        return None
    return replace(person, told=(*person.told, key)[-TOLD:])


def _told_key(warning: PersonWarning) -> str:
    """Return a key that is equal for warnings that need not be shown twice."""
    parts = (warning.alarm.value, (warning.other or b"").hex(), (warning.device or b"").hex())
    return " ".join((*parts, folded(warning.label) if warning.device is None else ""))


def encode_person(person: KnownPerson) -> bytes:
    """Encode a person for the store."""
    return _encode(person)


def decode_person(note: bytes) -> KnownPerson:
    """Decode a stored person; raises `StoreError` if the note is invalid."""
    try:
        return _decode(note)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StoreError(f"what is noted of a person cannot be read: {error}") from error


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(KnownPerson).decode


def _names(known: Mapping[AuthorId, KnownPerson]) -> dict[str, list[AuthorId]]:
    names: dict[str, list[AuthorId]] = {}
    for person, one in known.items():
        for label in {folded(label) for label in one.labels}:
            names.setdefault(label, []).append(person)
    return names


def _name(person: KnownPerson) -> str:
    """Return the name by which a person has been known longest."""
    return min(person.labels, key=person.labels.__getitem__, default="")


def _rank(
    known: Mapping[AuthorId, KnownPerson], own: AuthorId, label: str, person: AuthorId
) -> tuple[bool, bool, float, bytes]:
    """Return the rank of a person's claim to a name: ours, a verified person's, the first holder's."""
    one = known[person]
    since = min(at for name, at in one.labels.items() if folded(name) == label)
    return (person != own, one.verified_at is None, since, person)


def _precedes(
    known: Mapping[AuthorId, KnownPerson], own: AuthorId, label: str, other: AuthorId, person: AuthorId
) -> bool:
    return _rank(known, own, label, other) < _rank(known, own, label, person)


def _alarm(other: KnownPerson, is_own: bool) -> Alarm:
    if is_own:
        return Alarm.OWN_NAME
    return Alarm.SAME_NAME if other.verified_at is None else Alarm.VERIFIED_NAME


def _newest(times: dict[K, float], most: int) -> dict[K, float]:
    if len(times) <= most:
        return times
    return dict(sorted(times.items(), key=lambda item: item[1])[-most:])


Watch = Callable[[Sequence[Item]], Awaitable[tuple[PersonWarning, ...]]]
"""Given the items that are about to be read, returns the warnings to show beside them."""


class People:
    """All people whom one node has met in its rooms."""

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
        """Return what is stored of a person; None if nobody here has met them."""
        return self._known.get(person)

    def is_verified(self, person: AuthorId) -> bool:
        """Return whether our user has compared safety numbers with this person."""
        known = self._known.get(person)
        return known is not None and known.verified_at is not None

    async def verify(self, person: AuthorId, verified: bool = True) -> KnownPerson:
        """Store whether our user has compared safety numbers with a person; returns when it is stored.

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
        """Meet everyone who is in a room; return all warnings about them."""
        async with self._changing:
            return await self._look(room)

    async def news(self, room: TopicId) -> tuple[PersonWarning, ...]:
        """Do as `look`, but return only warnings that were not shown before, and mark them as shown."""
        async with self._changing:
            found = []
            for warning in await self._look(room):
                person = tell(self._known[warning.person], warning)
                if person is not None:
                    await self._keep({warning.person: person})
                    found.append(warning)
            return tuple(found)

    def watch(self, room: TopicId) -> Watch:
        """Watch a room while it is read: check it first, and whenever a new device speaks."""
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
        """Return every device of the room's members that was ever heard of."""
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
            await self._ask(NotePerson(person, encode_person(one)))
            self._known[person] = one


LabelOf = Callable[[AuthorId, DeviceId], str]
"""Returns the label of a device; empty if it is not known."""

WAITING = frozenset({Hindrance.NOT_LET_IN, Hindrance.OUT_OF_STEP, Hindrance.NEWCOMERS})
"""Hindrances that make a message wait; the others are dealt with at once, before the message."""


class RoomAnswers:
    """The node's own answers about rooms, before or after its machine is asked."""

    def __init__(
        self, person: AuthorId, people: People, label_of: LabelOf, clock: Callable[[], float], ask: Ask
    ) -> None:
        self._person = person
        self._people = people
        self._label_of = label_of
        self._clock = clock
        self._ask = ask

    @answers(AskToJoin)
    async def ask_to_join(self, command: AskToJoin) -> RoomMade:
        """Join by an invitation, or by the id of a room."""
        if (command.invitation is None) == (command.room is None):
            raise BadText("give an invitation or a room, one of them")
        contacts, patience, knock = command.contacts, command.patience, command.knock
        if command.room is not None:
            return await self._ask(JoinRoom(command.room, None, contacts, patience, knock))
        invitation = parse_invitation(command.invitation or "", self._clock())
        ticket = invitation.ticket
        if ticket.person is not None and ticket.person != self._person:
            raise BadText("this invitation is for another person; ask its sender for one of your own")
        asked = (*invitation.contacts, *contacts)
        return await self._ask(JoinRoom(invitation.room, ticket, asked, patience, knock, invitation.name))

    @answers(InviteToRoom)
    async def invite_to_room(self, command: InviteToRoom) -> Invitation:
        """Make a ticket, and announce it in the room if requested."""
        if command.announce:
            if command.person is None:
                raise BadText("to announce an invitation, say for which person it is")
            await self._ask(SetMembership(command.room, command.person, Membership.INVITE))
        expires_ms = int((self._clock() + command.lifetime) * 1000)
        made = await self._ask(MakeTicket(command.room, expires_ms, command.person))
        return Invitation(made.ticket, made.contacts, made.name)

    @answers(ListMembers)
    async def list_members(self, command: ListMembers) -> MembersAre:
        """List the members of a room, with the labels of their devices."""
        state = await self._ask(ExamineState(command.room))
        return MembersAre(command.room, tuple(map(self._known, state.members)))

    def _known(self, member: RoomMember) -> KnownMember:
        devices = (*member.devices, *member.key_devices)
        labels = (self._label_of(member.person, device) for device in devices)
        return KnownMember(
            member.person,
            next(filter(None, labels), ""),
            member.membership,
            member.level,
            member.online,
            member.devices,
            member.relay,
            member.key_devices,
            self._people.is_verified(member.person),
        )

    @answers(ReportSecurity)
    async def report_security(self, command: ReportSecurity) -> SecurityReport:
        """Report the security of a room, and the warnings about its members."""
        found = await self._ask(ExamineSecurity(command.room))
        return SecurityReport(
            found.room,
            found.newcomers is not None,
            found.newcomers,
            found.is_member,
            tuple(map(self._holder, found.devices)),
            found.hindrances,
            not WAITING.isdisjoint(found.hindrances),
            Hindrance.HEAL in found.hindrances,
            found.renewal,
            {reason.value: count for reason, count in found.unread},
            found.theft,
            await self._people.look(command.room),
        )

    def _holder(self, keys: DeviceKeys) -> KeyHolder:
        return KeyHolder(
            keys.person,
            self._label_of(keys.person, keys.device),
            keys.device,
            keys.standing,
            keys.age,
            keys.pending,
            keys.ours,
            self._people.is_verified(keys.person),
        )

    @answers(LookUpPerson)
    async def look_up_person(self, command: LookUpPerson) -> PersonReport:
        """Return what is stored of a person."""
        return self._report(command.person, self._people.find(command.person))

    @answers(VerifyPerson)
    async def verify_person(self, command: VerifyPerson) -> PersonReport:
        """Store that safety numbers were compared, or that this is taken back."""
        known = await self._people.verify(command.person, command.is_verified)
        return self._report(command.person, known)

    def _report(self, person: AuthorId, known: KnownPerson | None) -> PersonReport:
        labels = {} if known is None else known.labels
        devices = {} if known is None else known.devices
        is_own = person == self._person
        return PersonReport(
            person,
            tuple(sorted(labels, key=labels.__getitem__)),
            tuple(sorted(devices, key=devices.__getitem__)),
            None if known is None else known.first_seen,
            None if known is None else known.verified_at,
            None if is_own else safety_number(self._person, person),
            None if is_own else safety_words(self._person, person),
        )
