"""From what rooms and people say about keys to what the control API says: ids become text."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from linnet.core.ids import AuthorId, DeviceId
from linnet.identity.safety import safety_number, safety_words
from linnet.identity.text import Sort, to_text
from linnet.node.control_types import WarningView
from linnet.node.control_views import topic_text
from linnet.node.known_people import KnownPerson, PersonWarning
from linnet.node.security_types import DeviceKeysView, PersonReply, SecurityReply, TheftView
from linnet.rooms.results import DeviceKeys, Hindrance, SecurityIs, Theft

WAITING = frozenset({Hindrance.NOT_LET_IN, Hindrance.OUT_OF_STEP, Hindrance.NEWCOMERS})
"""What makes a message wait; the rest is done before it, at once."""


def security_view(
    security: SecurityIs,
    warnings: Iterable[PersonWarning],
    label_of: Callable[[AuthorId, DeviceId], str],
    is_verified: Callable[[AuthorId], bool],
) -> SecurityReply:
    """How a room stands."""

    def device_view(keys: DeviceKeys) -> DeviceKeysView:
        return DeviceKeysView(
            _person(keys.person),
            label_of(keys.person, keys.device),
            keys.device.hex(),
            keys.standing,
            keys.age,
            keys.pending,
            keys.ours,
            is_verified(keys.person),
        )

    return SecurityReply(
        topic_text(security.room),
        security.newcomers is not None,
        security.newcomers,
        security.is_member,
        tuple(map(device_view, security.devices)),
        security.hindrances,
        not WAITING.isdisjoint(security.hindrances),
        Hindrance.HEAL in security.hindrances,
        security.renewal,
        {reason.value: count for reason, count in security.unread},
        None if security.theft is None else theft_view(security.theft),
        tuple(map(warning_view, warnings)),
    )


def theft_view(theft: Theft) -> TheftView:
    """What a thief could read."""
    return TheftView(theft.messages, theft.late_keys, theft.member_secrets, theft.shared_keys, theft.follows)


def warning_view(warning: PersonWarning) -> WarningView:
    """What there is to say against somebody."""
    return WarningView(
        warning.alarm,
        _person(warning.person),
        warning.label,
        None if warning.other is None else _person(warning.other),
        None if warning.device is None else warning.device.hex(),
    )


def person_view(own: AuthorId, person: AuthorId, known: KnownPerson | None) -> PersonReply:
    """A person, and what to compare with them."""
    known_labels = {} if known is None else known.labels
    known_devices = {} if known is None else known.devices
    return PersonReply(
        _person(person),
        tuple(sorted(known_labels, key=known_labels.__getitem__)),
        tuple(device.hex() for device in sorted(known_devices, key=known_devices.__getitem__)),
        None if known is None else known.first_seen,
        None if known is None else known.verified_at,
        None if person == own else safety_number(own, person),
        None if person == own else safety_words(own, person),
    )


def _person(person: AuthorId) -> str:
    return to_text(Sort.PERSON, person)
