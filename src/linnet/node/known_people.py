"""Whom this node knows: by which names, with which devices, and whether their user compared keys with them.

People are keys here, so nobody's key can change. What can happen is that another key comes along under a
name that is known, or that somebody who was verified has a device that was never seen: both are told.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple, TypeVar

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from linnet.core.errors import StoreError
from linnet.core.ids import AuthorId, DeviceId

LABELS = 32
"""Names that are remembered of one person, the newest."""
DEVICES = 256
TOLD = 256
K = TypeVar("K")


class KnownPerson(Struct, frozen=True):
    """What is kept of a person."""

    first_seen: float
    labels: dict[str, float] = field(default_factory=dict)
    """What their devices call themselves, and since when that is known."""
    devices: dict[DeviceId, float] = field(default_factory=dict)
    """Their devices, and when each was first seen."""
    verified_at: float | None = None
    """When this node's user said last that the safety numbers are equal."""
    told: tuple[str, ...] = ()
    """Warnings about this person that were told."""


class Sighting(NamedTuple):
    """A device of somebody who is in a room, and what it calls itself."""

    person: AuthorId
    device: DeviceId
    label: str


class Alarm(StrEnum):
    """What is told about a person."""

    SAME_NAME = "same_name"
    """Somebody has a name by which another person was known before."""
    VERIFIED_NAME = "verified_name"
    """The same, and that other person was verified."""
    OWN_NAME = "own_name"
    """The same, and that other person is ourselves."""
    NEW_DEVICE = "new_device"
    """Somebody who was verified has a device that was not there then."""
    OWN_DEVICE = "own_device"
    """The same of ourselves."""


class PersonWarning(Struct, frozen=True):
    """Something that the user should look at."""

    alarm: Alarm
    person: AuthorId
    """Whom it is about."""
    label: str
    other: AuthorId | None = None
    """Who was known by this name before."""
    device: DeviceId | None = None

    @property
    def key(self) -> str:
        """Equal for what need not be told twice."""
        parts = (self.alarm.value, (self.other or b"").hex(), (self.device or b"").hex())
        return " ".join((*parts, folded(self.label) if self.device is None else ""))


def meet(
    known: Mapping[AuthorId, KnownPerson], sightings: Iterable[Sighting], now: float
) -> dict[AuthorId, KnownPerson]:
    """Those of whom something is new, as they are known from now on."""
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
    """What there is to say against those who are in a room; `meet` comes before this."""
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
    """When this key was last said to be whose it should be; our own is so from the start."""
    if is_own and person.verified_at is None:
        return person.first_seen
    return person.verified_at


def folded(label: str) -> str:
    """A name without what eyes do not tell apart: case, width, blanks."""
    return " ".join(unicodedata.normalize("NFKC", label).casefold().split())


def tell(person: KnownPerson, warning: PersonWarning) -> KnownPerson | None:
    """The person with this warning told; None if it was before."""
    if warning.key in person.told:
        return None
    return replace(person, told=(*person.told, warning.key)[-TOLD:])


def encode_person(person: KnownPerson) -> bytes:
    """A person as they are kept."""
    return _encode(person)


def decode_person(note: bytes) -> KnownPerson:
    """The person of this note; `StoreError` if it is none."""
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
    """The name by which a person is known longest."""
    return min(person.labels, key=person.labels.__getitem__, default="")


def _rank(
    known: Mapping[AuthorId, KnownPerson], own: AuthorId, label: str, person: AuthorId
) -> tuple[bool, bool, float, bytes]:
    """Whose name it is: ours, that of who was verified, that of who had it first."""
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
