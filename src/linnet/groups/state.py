"""All that a device knows of one group, as one value; and that value as bytes for the store.

No function changes a state: each makes a new one. Mappings in it are never written to. The bytes are
canonical: equal states make equal bytes. Nothing of a state shows where it is printed.
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
from linnet.groups import healing, membership
from linnet.groups.chains import MemberChains, SendingChain
from linnet.groups.healing import Cover
from linnet.groups.ids import Device, MemberId
from linnet.groups.membership import History
from linnet.groups.prekeys import Prekeys
from linnet.groups.primitives import Hidden
from linnet.groups.two_party import Channel

VERSION: Final = 1
T = TypeVar("T")


class GroupConfig(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The limits of a group; `members` must be the same everywhere, since all judge additions by it."""

    members: int = 512
    """Additions beyond are refused, and ignored if they come."""
    one_time: int = 64
    """One-time prekeys of a bundle."""
    pending: int = 2_000
    """Operations whose member secrets are kept for those who have not acknowledged."""
    linger: float = 30 * 86_400.0
    """Seconds after all have seen a removal in which operations of the removed still count when they come."""
    ack_bytes: int = 131_072
    """Acknowledgements of one operation, roughly; what is owed beyond goes into the next."""


class Hardening(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What goes beyond the published protocol. Off only where a test shows what each is for."""

    withhold_from_outsiders: bool = True
    """No ratchet to a newcomer whose addition was undone by the removal of its adder."""
    inband_prekeys: bool = True
    """Every seed brings a new prekey of its sender, and channels begin anew where it was not heard."""
    heal_before_sending: bool = True
    """No message while removed members might follow our keys."""
    renewed_one_time: bool = True
    """New one-time prekeys after every own seed; with its in-band prekey goes none that is older."""

    @property
    def renews(self) -> bool:
        """Whether prekeys that are older than a seed are worth nothing after it."""
        return self.inband_prekeys and self.renewed_one_time


class Act(IntEnum):
    """What an operation was, as long as acknowledgements of it are outstanding."""

    SEED = 1
    ADD = 2


class Op(Hidden, frozen=True):
    """An operation that somebody has not acknowledged."""

    sender: MemberId
    cseq: int
    act: Act
    order: int
    """Grows with each operation that came here."""
    since: float
    newcomer: MemberId | None
    awaiting: dict[MemberId, bytes | None]
    """Who has not: with the secret that their ratchet takes then; empty: we do not know it; None: none."""
    late: tuple[MemberId, ...] = ()
    """Removed members who may have; nobody waits for them."""
    done: bool = False
    """All who are waited for have."""


class Owed(Hidden, frozen=True):
    """An acknowledgement of ours that is to be sent."""

    op: EventId
    is_add: bool
    secret: bytes | None
    to: tuple[MemberId, ...]
    """Who is told the secret or, for an addition, our ratchet."""


class Plain(Hidden, frozen=True):
    """What of a state is kept as it is."""

    group: bytes
    ours: Device
    config: GroupConfig
    hardening: Hardening
    prekeys: Prekeys
    published: int = 0
    """The newest of our bundles that is out."""
    stale: bool = False
    """Our identity was in the group and is no more: to be added again we need another."""
    me: MemberId | None = None
    """None: we are not in the group."""
    past: tuple[MemberId, ...] = ()
    """Who we were in it before."""
    desynced: str = ""
    cseq: int = 0
    count: int = 0
    """Operations that came here, for their order."""
    sending: SendingChain | None = None
    healed: float = 0.0
    """When our own newest seed was made."""
    owed: tuple[Owed, ...] = ()
    ops: dict[EventId, Op] = field(default_factory=dict)
    clock: dict[MemberId, int] = field(default_factory=dict)
    """The number of each member's newest operation."""
    last: dict[MemberId, EventId] = field(default_factory=dict)
    """That operation."""
    ratchets: dict[MemberId, bytes] = field(default_factory=dict)
    """Of every member that we can follow."""
    channels: dict[MemberId, Channel] = field(default_factory=dict)
    inband: dict[int, bytes] = field(default_factory=dict)
    """Secrets of the prekeys that our own operations of these numbers brought."""
    peer_inband: dict[MemberId, tuple[int, bytes]] = field(default_factory=dict)
    """The newest such prekey of each member."""
    wanted: tuple[EventId, ...] = ()
    """Operations that a present member has acknowledged and that are not here."""
    closed: dict[MemberId, float] = field(default_factory=dict)
    """Removed members whose removal all others have seen, since when."""
    forgotten: tuple[MemberId, ...] = ()
    """Those of whom nothing is kept any more, as many as are remembered."""
    leaving: tuple[MemberId, ...] = ()
    tended: float = 0.0


class GroupState(Plain, frozen=True):
    """All that a device knows of one group."""

    history: History = membership.EMPTY
    cover: Cover = healing.NONE
    chains: dict[MemberId, MemberChains] = field(default_factory=dict)


_PLAIN_FIELDS: Final = Plain.__struct_fields__
_encode = msgspec.msgpack.Encoder().encode
_Core = tuple[int, Plain, bytes, tuple[EventId, ...] | None]
_decode_core = msgspec.msgpack.Decoder(_Core)
_decode_chains = msgspec.msgpack.Decoder(MemberChains)
_decode_parts = msgspec.msgpack.Decoder(dict[bytes, bytes])


def encode_parts(state: GroupState) -> dict[bytes, bytes]:
    """A state in parts, so that only those that changed need to be written, in one transaction.

    The empty key has all but the keys of messages; these are under the id of their member.
    """
    plain = Plain(*(_in_order(getattr(state, name)) for name in _PLAIN_FIELDS))
    ops = {op: replace(plain.ops[op], awaiting=_in_order(plain.ops[op].awaiting)) for op in plain.ops}
    removes = state.cover.removes
    cover = None if removes is None else tuple(sorted(removes))
    parts = {b"": _encode((VERSION, replace(plain, ops=ops), membership.encode(state.history), cover))}
    for member in sorted(state.chains):
        parts[member] = _encode(state.chains[member])
    return parts


def decode_parts(parts: Mapping[bytes, bytes]) -> GroupState:
    """The state of these parts; `StoreError` if they are none."""
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
    """A state as one byte string."""
    return _encode(encode_parts(state))


def decode_state(data: bytes) -> GroupState:
    """The state of these bytes; `StoreError` if there is none."""
    parts = _read(_decode_parts, data)
    return decode_parts(parts)


def _in_order(value: T) -> T:
    """A mapping in the order of its keys, whatever the order in which it came to be."""
    return dict(sorted(value.items())) if isinstance(value, dict) else value  # type: ignore[return-value]


def _read(decoder: msgspec.msgpack.Decoder[T], data: bytes) -> T:
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        # The message alone: what could not be read is a secret.
        raise StoreError(f"a group's state cannot be read: {type(error).__name__}") from None
