"""Message keys: one hash chain per member and epoch, each key used once and then gone.

An epoch of a member begins with each operation that gave its ratchet a new output; the chain starts from that
output. A message key is derived, used and forgotten; the chain only ever goes forward, so a thief of the
state opens nothing that was opened before. Keys that are skipped are kept within a window, and old epochs for
a while, since messages may come late: both are a debt that `debt` counts.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from linnet.core.errors import RemoteError
from linnet.core.reasons import Reason
from linnet.groups.labels import MESSAGE, MemberId, fields, u32
from linnet.groups.primitives import Hidden, hkdf

AHEAD: Final = 1000
"""How far a message may be ahead of the last one: deriving more keys would be wasted work."""
BEHIND: Final = 100
"""How far behind the newest message a skipped key is kept."""
NO_TOTAL: Final = 2**32
"""Stands for an unknown number of messages: of the last epoch of a removed member."""
OLD_EPOCHS: Final = 3
OLD_SECONDS: Final = 7 * 86_400.0
MESSAGE_KEY_BYTES: Final = 44
"""A key of 32 bytes and a nonce of 12."""
_SALT: Final = bytes(32)


class SendingChain(Hidden, frozen=True):
    """Our own chain: the epoch, the number of messages so far, and the key that the next ones derive from."""

    epoch: int
    index: int
    key: bytes
    since: float


class ReceivingChain(Hidden, frozen=True):
    """A member's chain in one epoch."""

    epoch: int
    index: int
    """The index of the next message."""
    key: bytes
    skipped: dict[int, bytes]
    """Keys of messages before `index` that have not come."""
    since: float
    total: int = -1
    """How many messages the epoch has; -1 while it lasts."""
    ended: float = 0.0
    """When we learned that it had ended."""


class MemberChains(Hidden, frozen=True):
    """The chains of one member, oldest first, and the first epoch that we ever had of it."""

    first: int
    chains: tuple[ReceivingChain, ...]


def message_key(group: bytes, member: MemberId, epoch: int, index: int, key: bytes) -> tuple[bytes, bytes]:
    """Return key and nonce of one message as one string, and the chain's key after it."""
    info = fields(MESSAGE, group, member, u32(epoch), u32(index))
    out = hkdf(_SALT, key, info, MESSAGE_KEY_BYTES + 32)
    return out[:MESSAGE_KEY_BYTES], out[MESSAGE_KEY_BYTES:]


def start(chains: MemberChains | None, epoch: int, key: bytes, count: int, now: float) -> MemberChains:
    """Begin a new epoch of a member, and end the one before it, which had this many messages."""
    if chains is None:
        return MemberChains(epoch, (ReceivingChain(epoch, 0, key, {}, now),))
    ended = (*(end(chain, count, now) for chain in chains.chains), ReceivingChain(epoch, 0, key, {}, now))
    kept = tuple(chain for chain in ended if not is_complete(chain))
    return prune(replace(chains, chains=kept), now)


def end(chain: ReceivingChain, count: int, now: float) -> ReceivingChain:
    """Return the chain of an epoch that ends now, unless it had ended before."""
    return chain if chain.total >= 0 else replace(chain, total=count, ended=now)


def is_complete(chain: ReceivingChain) -> bool:
    """Return whether the epoch has ended and none of its messages are missing."""
    return 0 <= chain.total <= chain.index and not chain.skipped


def prune(chains: MemberChains, now: float) -> MemberChains:
    """Drop chains that are too old; return the very same value if there are none."""
    old = [chain for chain in chains.chains if chain.total >= 0]
    keep = {chain.epoch for chain in old[-OLD_EPOCHS:] if now <= chain.ended + OLD_SECONDS}
    if len(keep) == len(old):
        return chains
    kept = tuple(chain for chain in chains.chains if chain.total < 0 or chain.epoch in keep)
    return replace(chains, chains=kept)


def take(
    chains: MemberChains, group: bytes, member: MemberId, epoch: int, index: int
) -> tuple[MemberChains, bytes]:
    """Return the key of a message, and the chains without it; `RemoteError` if the key is not to be had."""
    chain = next((each for each in chains.chains if each.epoch == epoch), None)
    if chain is None:
        raise RemoteError(_why_not(chains, epoch), f"no keys of epoch {epoch}")
    after, key = _taken(chain, group, member, index)
    rest = tuple(after if each is chain else each for each in chains.chains)
    return replace(chains, chains=tuple(each for each in rest if not is_complete(each))), key


def _why_not(chains: MemberChains, epoch: int) -> Reason:
    if epoch < chains.first:
        return Reason.BEFORE_JOINING
    newest = chains.chains[-1].epoch if chains.chains else chains.first
    return Reason.WRONG_EPOCH if epoch > newest else Reason.KEY_SPENT


def _taken(chain: ReceivingChain, group: bytes, member: MemberId, index: int) -> tuple[ReceivingChain, bytes]:
    if index < chain.index:
        if index not in chain.skipped:
            raise RemoteError(Reason.KEY_SPENT, f"the key of message {index} is gone")
        skipped = dict(chain.skipped)
        return replace(chain, skipped=skipped), skipped.pop(index)
    if index >= chain.index + AHEAD:
        raise RemoteError(Reason.KEY_MISSING, f"message {index} is too far ahead")
    if 0 <= chain.total <= index:
        raise RemoteError(Reason.WRONG_EPOCH, f"the epoch ended before message {index}")
    skipped = {number: key for number, key in chain.skipped.items() if number >= index - BEHIND}
    key, number = chain.key, chain.index
    while True:
        found, key = message_key(group, member, chain.epoch, number, key)
        if number == index:
            return replace(chain, index=index + 1, key=key, skipped=skipped), found
        if number >= index - BEHIND:
            skipped[number] = found
        number += 1


def debt(chains: MemberChains) -> int:
    """Return how many keys of the past are kept: skipped ones, and chains of epochs that ended."""
    return sum(len(chain.skipped) + (chain.total >= 0) for chain in chains.chains)
