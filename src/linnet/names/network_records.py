"""Records of names in the hash table over the network: a block as the body of a signed record, and back.

Whoever keeps it there sees what any store sees: a lookup key, an owner key, a version, an end and sealed
bytes. The owner of the record is the owner of the block, so that a newer one takes the place of an older.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from linnet.core.errors import RemoteError
from linnet.identity.keys import SigningKey
from linnet.names.block import Block, check_block
from linnet.names.derivation import owner_key
from linnet.overlay.kademlia.ids import NodeId, record_key
from linnet.overlay.kademlia.records import Stored, sign_record

SPACE = b"names"

_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(Block)


def network_key(lookup: bytes) -> NodeId:
    """Where the network keeps what is under a lookup key."""
    return record_key(SPACE, lookup)


def to_network(block: Block, device: SigningKey) -> Stored:
    """A block of this device's, as the network keeps it."""
    owner = owner_key(device, block.lookup)
    return sign_record(owner, network_key(block.lookup), block.version, block.expires, _encode(block))


def from_network(records: Iterable[Stored], lookup: bytes) -> tuple[tuple[Block, ...], int]:
    """The blocks of records that were found for a lookup key, and how many records are none."""
    blocks: dict[Block, None] = {}
    others = 0
    for record in records:
        block = _block_of(record, lookup)
        if block is None:
            others += 1
        else:
            blocks[block] = None
    return tuple(blocks), others


def _block_of(record: Stored, lookup: bytes) -> Block | None:
    try:
        block = _decoder.decode(record.body)
        check_block(block)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, RemoteError):
        return None
    same = (block.lookup, block.owner, block.version, block.expires)
    return block if same == (lookup, record.owner, record.version, record.expires) else None
