"""The state of a group as one device knows it, as one value; and that value as bytes for the store.

No function changes a state: each makes a new one. Mappings in it are never written to. The bytes are
canonical: equal states make equal bytes. Nothing of a state shows when it is printed.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final, TypeVar

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from linnet.core.errors import RemoteError, StoreError
from linnet.core.ids import EventId
from linnet.groups import membership, removal_cover
from linnet.groups.chains import MemberChains, SendingChain
from linnet.groups.labels import Device, MemberId
from linnet.groups.membership import History
from linnet.groups.prekeys import Prekeys
from linnet.groups.primitives import Hidden
from linnet.groups.removal_cover import Cover
from linnet.groups.two_party import Channel

VERSION: Final = 1
K = TypeVar("K", bound=bytes | int)
T = TypeVar("T")


class GroupConfig(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The limits of a group; `members` must be the same everywhere, since all judge additions by it."""

    members: int = 512
    """Members at most: further additions are refused, and ignored if they come."""
    one_time: int = 64
    """One-time prekeys of a bundle."""
    pending: int = 2_000
    """Operations whose member secrets are kept for members that have not acknowledged."""
    linger: float = 30 * 86_400.0
    """Seconds after all have seen a removal in which operations of the removed member still count."""
    ack_bytes: int = 131_072
    """Bytes of the acknowledgements in one operation, roughly; the others go into the next."""


class Hardening(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Measures beyond the published protocol. Tests switch each off to show what it is for."""

    withhold_from_outsiders: bool = True
    """A newcomer is told no ratchet if its addition was undone by the removal of its adder."""
    inband_prekeys: bool = True
    """Every seed brings a new prekey of its sender; a member that was not sent it begins its channel anew."""
    heal_before_sending: bool = True
    """No message is sent while removed members might follow our keys."""
    renewed_one_time: bool = True
    """New one-time prekeys follow every seed of our own; no older one goes with its in-band prekey."""

    @property
    def renews(self) -> bool:
        """Whether prekeys that are older than a seed are worthless after it."""
        return self.inband_prekeys and self.renewed_one_time


class Act(IntEnum):
    """The kind of an operation whose acknowledgements are outstanding."""

    SEED = 1
    ADD = 2


class Op(Hidden, frozen=True):
    """An operation that some member has not acknowledged."""

    sender: MemberId
    cseq: int
    act: Act
    order: int
    """The operation's number in the order of arrival here."""
    since: float
    newcomer: MemberId | None
    awaiting: dict[MemberId, bytes | None]
    """The members that have not acknowledged, each with the secret that its ratchet takes then.

    Empty: we do not know the secret; None: it takes none.
    """
    late: tuple[MemberId, ...] = ()
    """Removed members that may have acknowledged; they are not waited for."""
    done: bool = False
    """Whether all members that are waited for have acknowledged."""


class Owed(Hidden, frozen=True):
    """An acknowledgement that we owe."""

    op: EventId
    is_add: bool
    secret: bytes | None
    to: tuple[MemberId, ...]
    """The members that are told the secret or, for an addition, our ratchet."""


class Plain(Hidden, frozen=True):
    """The fields of a state that are encoded as they are."""

    group: bytes
    ours: Device
    config: GroupConfig
    hardening: Hardening
    prekeys: Prekeys
    published: int = 0
    """The generation of our newest bundle that was published."""
    stale: bool = False
    """Whether our identity was in the group and is no more: to be added again we need another."""
    me: MemberId | None = None
    """Our id in the group; None: we are not in it."""
    past: tuple[MemberId, ...] = ()
    """Our ids in former stays."""
    desynced: str = ""
    cseq: int = 0
    count: int = 0
    """The number of operations that came here: it gives them their order."""
    sending: SendingChain | None = None
    healed: float = 0.0
    """The time at which our own newest seed was made."""
    owed: tuple[Owed, ...] = ()
    ops: dict[EventId, Op] = field(default_factory=dict)
    clock: dict[MemberId, int] = field(default_factory=dict)
    """The number of each member's newest operation."""
    last: dict[MemberId, EventId] = field(default_factory=dict)
    """Each member's newest operation."""
    ratchets: dict[MemberId, bytes] = field(default_factory=dict)
    """The ratchets of all members that we can follow."""
    channels: dict[MemberId, Channel] = field(default_factory=dict)
    inband: dict[int, bytes] = field(default_factory=dict)
    """Secrets of our in-band prekeys, by the number of the operation that brought each."""
    peer_inband: dict[MemberId, tuple[int, bytes]] = field(default_factory=dict)
    """The newest in-band prekey of each member, after the number of its operation."""
    wanted: tuple[EventId, ...] = ()
    """Operations that a present member has acknowledged and that are not here."""
    closed: dict[MemberId, float] = field(default_factory=dict)
    """Removed members whose removal all others have seen, and since when."""
    forgotten: tuple[MemberId, ...] = ()
    """The latest removed members that nothing but the id is kept of."""
    leaving: tuple[MemberId, ...] = ()
    tended: float = 0.0


class GroupState(Plain, frozen=True):
    """The state of one group, as one device knows it."""

    history: History = membership.EMPTY
    cover: Cover = removal_cover.NO_COVER
    chains: dict[MemberId, MemberChains] = field(default_factory=dict)


_PLAIN_FIELDS: Final = Plain.__struct_fields__
_encode = msgspec.msgpack.Encoder().encode
_Core = tuple[int, Plain, bytes, tuple[EventId, ...] | None]
_decode_core = msgspec.msgpack.Decoder(_Core)
_decode_chains = msgspec.msgpack.Decoder(MemberChains)
_decode_parts = msgspec.msgpack.Decoder(dict[bytes, bytes])


def encode_parts(state: GroupState) -> dict[bytes, bytes]:
    """Return a state in parts, so that only the changed ones need to be written, in one transaction.

    The part of the empty key has all but the keys of messages; these are under the ids of their members.
    """
    values = {name: getattr(state, name) for name in _PLAIN_FIELDS}
    ordered = {name: _in_order(value) for name, value in values.items() if isinstance(value, dict)}
    plain = Plain(**{**values, **ordered})
    ops = {op: replace(plain.ops[op], awaiting=_in_order(plain.ops[op].awaiting)) for op in plain.ops}
    removes = state.cover.removes
    cover = None if removes is None else tuple(sorted(removes))
    parts = {b"": _encode((VERSION, replace(plain, ops=ops), membership.encode(state.history), cover))}
    for member in sorted(state.chains):
        parts[member] = _encode(state.chains[member])
    return parts


def decode_parts(parts: Mapping[bytes, bytes]) -> GroupState:
    """Return the state of these parts; `StoreError` if they are invalid."""
    version, plain, recorded, removes = _read(_decode_core, parts.get(b"", b""))
    if version != VERSION:
        raise StoreError(f"a group's state of version {version}")
    try:
        history = membership.decode(recorded)
    except RemoteError as error:
        raise StoreError(f"a group's history cannot be read: {error.detail}") from None
    cover = Cover(None if removes is None else frozenset(removes))
    chains = {MemberId(key): _read(_decode_chains, parts[key]) for key in sorted(parts) if key}
    values = {name: getattr(plain, name) for name in _PLAIN_FIELDS}
    return GroupState(**values, history=history, cover=cover, chains=chains)


def encode_state(state: GroupState) -> bytes:
    """Return a state as one byte string."""
    return _encode(encode_parts(state))


def decode_state(data: bytes) -> GroupState:
    """Return the state of these bytes; `StoreError` if they are invalid."""
    parts = _read(_decode_parts, data)
    return decode_parts(parts)


def _in_order(mapping: dict[K, T]) -> dict[K, T]:
    """Return a mapping in the order of its keys, whatever order it was filled in."""
    return dict(sorted(mapping.items()))


def _read(decoder: msgspec.msgpack.Decoder[T], data: bytes) -> T:
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        # The type of the error alone: its text may show parts of the state, which are secret.
        raise StoreError(f"a group's state cannot be read: {type(error).__name__}") from None
