"""The stores of blocks: the shelf of this node, the network, and a cache of resolved blocks.

A store cannot tell to whom a block belongs. It keeps several under one lookup key, the newest one for each
owner key; a reader who can open them tells which is right.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from linnet.core.errors import MalformedMessage, RemoteError, StoreError
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.identity.keys import SigningKey
from linnet.machine.shelf import Kept, Shelf, ShelfCells, ShelfLimits
from linnet.names.config import NamesConfig
from linnet.names.derivation import owner_key
from linnet.names.records import LEEWAY, Block, check_block, is_early
from linnet.names.zone import LONGEST
from linnet.overlay.kademlia.routing_table import NodeId, record_key
from linnet.overlay.kademlia.value_records import Stored, sign_record

SPACE = "names kept"
FILE_BYTES = 256 * 1024 * 1024
_TITLE = "linnet records 1"


class _File(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    title: Annotated[str, Meta(max_length=64)]
    blocks: tuple[Block, ...]


_encode = msgspec.msgpack.Encoder().encode
_row_decoder = msgspec.msgpack.Decoder(tuple[bytes, Block])
_file_decoder = msgspec.msgpack.Decoder(_File)


class BlockShelf(Shelf[Block]):
    """Blocks of others, and our own. They stay for a while past their end, to show that they have ended."""

    def __init__(self, cells: Cells, config: NamesConfig) -> None:
        self._grace = config.grace
        limits = ShelfLimits(config.records, config.candidates, config.giver_records, config.giver_candidates)
        super().__init__(limits, ShelfCells(cells, SPACE, _encode_row, self._decode_row))

    def put(self, block: Block, giver: PeerId | None, now: float) -> Reason | None:
        """Keep a block of a giver, or our own, without a quota; return why it is not kept, or None."""
        if block.expires <= now:
            return Reason.STALE
        if block.expires > now + LONGEST + LEEWAY or is_early(block, now):
            return Reason.FUTURE_TIME
        known = self.find_known(block)
        # A block that was accepted while our clock was ahead gives way to one that is timely now.
        if known is not None and known.version >= block.version and not is_early(known, now):
            return None if known == block else Reason.STALE
        if giver is not None and known is None and (limit := self.find_limit(block.key, giver)) is not None:
            return limit
        try:
            check_block(block)
        except RemoteError as error:
            return error.reason
        self.keep(Kept(giver or b"", block.expires + self._grace, block))
        return None

    def take_file(self, data: bytes, now: float) -> list[Reason | None]:
        """Put the blocks of a file, which are not trusted; `MalformedMessage` if it is no such file."""
        if len(data) > FILE_BYTES:
            raise MalformedMessage(f"{len(data)} bytes, at most {FILE_BYTES} are read", Reason.TOO_LARGE)
        try:
            file = _file_decoder.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise MalformedMessage(f"no file of records: {error}") from error
        if file.title != _TITLE:
            raise MalformedMessage("no file of records, or one of another version")
        return [self.put(block, PeerId(b"a file"), now) for block in file.blocks]

    def _decode_row(self, raw: bytes) -> Kept[Block]:
        giver, block = _row_decoder.decode(raw)
        return Kept(giver, block.expires + self._grace, block)


def _encode_row(kept: Kept[Block]) -> bytes:
    return _encode((kept.giver, kept.record))


def make_file(blocks: Iterable[Block], now: float) -> bytes:
    """Make a file of the blocks that are valid now, so that records can be carried by hand."""
    return _encode(_File(_TITLE, tuple(block for block in blocks if block.expires > now)))


RESOLVED_SPACE = "names seen"
_decoder = msgspec.msgpack.Decoder(Block)


class ResolvedCache:
    """The newest right block under each lookup key that we resolved; evicts the least recently used.

    It is used when no peer answers, and to reject older blocks. Its content is never told to anyone: our
    lookups are private.
    """

    def __init__(self, cells: Cells, most: int) -> None:
        self._cells = cells
        self._most = most
        self._blocks: dict[bytes, Block] = {}
        for lookup, raw in cells.scan(RESOLVED_SPACE):
            try:
                self._blocks[lookup] = _decoder.decode(raw)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise StoreError(f"a record that was resolved cannot be read: {error}") from error

    def find(self, lookup: bytes) -> Block | None:
        """Return the newest right block, whether it has ended or not."""
        return self._blocks.get(lookup)

    def put(self, block: Block) -> int:
        """Store a right block; return the number of blocks that were evicted for it."""
        known = self._blocks.pop(block.lookup, None)
        self._blocks[block.lookup] = block
        if known != block:
            self._cells.put(RESOLVED_SPACE, block.lookup, _encode(block))
        gone = list(self._blocks)[: max(0, len(self._blocks) - self._most)]
        for lookup in gone:
            del self._blocks[lookup]
            self._cells.delete(RESOLVED_SPACE, lookup)
        return len(gone)


NETWORK_SPACE = b"names"


def network_key(lookup: bytes) -> NodeId:
    """Return the key under which the network stores the blocks of a lookup key."""
    return record_key(NETWORK_SPACE, lookup)


def to_network(block: Block, device: SigningKey) -> Stored:
    """Make the network's record of a block of this device.

    A node that keeps it learns no more than any store. The owner of the record is the owner of the block, so
    that a newer one replaces an older one.
    """
    owner = owner_key(device, block.lookup)
    return sign_record(owner, network_key(block.lookup), block.version, block.expires, _encode(block))


def from_network(records: Iterable[Stored], lookup: bytes) -> tuple[tuple[Block, ...], int]:
    """Return the blocks in records that were found for a lookup key, and how many records hold none."""
    found = [_block_of(record, lookup) for record in records]
    blocks = dict.fromkeys(block for block in found if block is not None)
    return tuple(blocks), found.count(None)


def _block_of(record: Stored, lookup: bytes) -> Block | None:
    try:
        block = _decoder.decode(record.body)
        check_block(block)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, RemoteError):
        return None
    same = (block.lookup, block.owner, block.version, block.expires)
    return block if same == (lookup, record.owner, record.version, record.expires) else None
