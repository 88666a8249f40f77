"""What the control API is asked about keys and people and what it answers."""

from __future__ import annotations

from msgspec import Struct

from linnet.node.control_types import WarningView
from linnet.rooms.content import Newcomers
from linnet.rooms.results import Hindrance, KeyStanding


class VerifiedRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Whether the user has compared safety numbers with a person."""

    verified: bool


class DeviceKeysView(Struct, frozen=True):
    """A device that holds keys of a room, or should."""

    person: str
    label: str
    """What it calls itself; anyone may call themselves anything."""
    device: str
    """How events name it."""
    standing: KeyStanding
    """`holds` keys, or why not, or holds them and should not (`surplus`)."""
    key_age: float | None
    """Seconds since its present keys began."""
    pending: int
    """Changes of keys that it has not acknowledged."""
    this: bool
    verified: bool
    """Whether the user has compared safety numbers with its person."""


class TheftView(Struct, frozen=True):
    """What a thief of this device could read now."""

    messages: int
    """Messages that are kept here in the clear."""
    late_keys: int
    """Keys of messages that were sent and have not come here."""
    member_secrets: int
    """Secrets that others' next keys grow from, kept until those have acknowledged."""
    shared_keys: int
    """Keys of messages, kept to be shown to newcomers."""
    follows: int
    """Devices whose next messages could be read, until our keys are renewed or this device is removed."""


class SecurityReply(Struct, frozen=True):
    """Who holds the keys of a room, and what they protect."""

    room: str
    encrypted: bool
    """False: whoever carries the room can read it, and there is nothing else to tell."""
    newcomers: Newcomers | None
    """What those may read who join."""
    holds_keys: bool
    """Whether this device does."""
    devices: tuple[DeviceKeysView, ...]
    hindrances: tuple[Hindrance, ...]
    """What is done or waited for before the next message."""
    would_wait: bool
    """Whether the next message would have to wait."""
    heal_pending: bool
    """Whether our keys must be renewed first, since somebody who was removed might follow them."""
    renewal_in: float | None
    """Seconds until our own keys are renewed."""
    unread: dict[str, int]
    """How many messages cannot be read here, by why."""
    theft: TheftView | None
    warnings: tuple[WarningView, ...]
    """What there is to say against those who are in the room, told before or not."""


class PersonReply(Struct, frozen=True):
    """What this node knows of a person."""

    person: str
    labels: tuple[str, ...]
    """What their devices call or called themselves, the oldest first."""
    devices: tuple[str, ...]
    """How events name their devices, the oldest first."""
    first_seen: float | None
    verified_at: float | None
    """When the user said last that the safety numbers are equal."""
    safety_number: str | None
    """To be compared with them by voice or side by side; None for ourselves."""
    safety_words: str | None
    """The same in words."""
