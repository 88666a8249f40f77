"""Where blocks are kept: what a store is, and the one that every node has.

A store cannot tell whose a block is. It keeps several under one lookup key, for each owner key the newest
one; who can open them tells which is right. What is there stays: somebody who knows a name can take the
free seats under it and no other.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, NamedTuple, Protocol

import msgspec
from msgspec import Meta, Struct

from linnet.core.errors import MalformedMessage, RemoteError, StoreError
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.names.block import LEEWAY, Block, check_block, is_early
from linnet.names.config import NamesConfig
from linnet.names.zone import LONGEST

SPACE = "names kept"
FILE_BYTES = 256 * 1024 * 1024
_TITLE = "linnet records 1"


class RecordStore(Protocol):
    """What keeps blocks here: in memory, in cells, later the local part of a hash table over the network."""

    def find(self, lookup: bytes) -> tuple[Block, ...]:
        """All that is kept under a key, ended ones included as long as they are kept."""

    def put(self, block: Block, giver: PeerId | None, now: float) -> Reason | None:
        """Keep a block that somebody gave, or we ourselves; None if it is kept now, or why not."""


class _Kept(NamedTuple):
    giver: bytes
    block: Block


class _File(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    title: Annotated[str, Meta(max_length=64)]
    blocks: tuple[Block, ...]


_encode = msgspec.msgpack.Encoder().encode
_kept_decoder = msgspec.msgpack.Decoder(_Kept)
_file_decoder = msgspec.msgpack.Decoder(_File)


class Shelf:
    """A bounded store in cells."""

    def __init__(self, cells: Cells, config: NamesConfig) -> None:
        self._cells = cells
        self._config = config
        self._kept: dict[bytes, dict[bytes, _Kept]] = {}
        self._count = 0
        self._given: dict[bytes, int] = {}
        """How many are kept for each giver."""
        for _, raw in cells.scan(SPACE):
            self._add(_read(raw))

    def __len__(self) -> int:
        return self._count

    def find(self, lookup: bytes) -> tuple[Block, ...]:
        """See `RecordStore.find`."""
        return tuple(each.block for each in self._kept.get(lookup, {}).values())

    def put(self, block: Block, giver: PeerId | None, now: float) -> Reason | None:
        """See `RecordStore.put`. What is our own has no bounds here but its own."""
        if block.expires <= now:
            return Reason.STALE
        if block.expires > now + LONGEST + LEEWAY or is_early(block, now):
            return Reason.FUTURE_TIME
        known = self._kept.get(block.lookup, {}).get(block.owner)
        # What our own clock let in while it was ahead gives way to what is true now.
        if known is not None and known.block.version >= block.version and not is_early(known.block, now):
            return None if known.block == block else Reason.STALE
        if giver is not None and known is None and (refusal := self._full(block.lookup, giver)) is not None:
            return refusal
        try:
            check_block(block)
        except RemoteError as error:
            return error.reason
        if known is not None:
            self._drop(known.block)
        self._add(_Kept(giver or b"", block))
        self._cells.put(SPACE, block.lookup + block.owner, _encode((giver or b"", block)))
        return None

    def sweep(self, now: float) -> int:
        """Forget what ended a while ago; how many."""
        grace = self._config.grace
        ended = [
            each.block
            for under in self._kept.values()
            for each in under.values()
            if each.block.expires + grace <= now
        ]
        for block in ended:
            self._drop(block)
        return len(ended)

    def export(self, now: float) -> bytes:
        """Everything that is good now, as a file: records can also be carried."""
        return records_file((each.block for under in self._kept.values() for each in under.values()), now)

    def take_in(self, data: bytes, now: float) -> list[Reason | None]:
        """What became of each block of a file; `MalformedMessage` if it is none. It is foreign, all of it."""
        if len(data) > FILE_BYTES:
            raise MalformedMessage(f"{len(data)} bytes, at most {FILE_BYTES} are read", Reason.TOO_LARGE)
        try:
            file = _file_decoder.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise MalformedMessage(f"no file of records: {error}") from error
        if file.title != _TITLE:
            raise MalformedMessage("no file of records, or one of another version")
        return [self.put(block, PeerId(b"a file"), now) for block in file.blocks]

    def _full(self, lookup: bytes, giver: PeerId) -> Reason | None:
        config = self._config
        under = self._kept.get(lookup, {})
        if len(under) >= config.candidates:
            return Reason.TOO_MANY
        if sum(each.giver == giver for each in under.values()) >= config.giver_candidates:
            return Reason.TOO_MANY
        is_full = self._count >= config.records or self._given.get(giver, 0) >= config.giver_records
        return Reason.QUOTA if is_full else None

    def _add(self, kept: _Kept) -> None:
        self._kept.setdefault(kept.block.lookup, {})[kept.block.owner] = kept
        self._count += 1
        self._given[kept.giver] = self._given.get(kept.giver, 0) + 1

    def _drop(self, block: Block) -> None:
        under = self._kept[block.lookup]
        giver = under.pop(block.owner).giver
        if not under:
            del self._kept[block.lookup]
        self._count -= 1
        self._given[giver] -= 1
        if not self._given[giver]:
            del self._given[giver]
        self._cells.delete(SPACE, block.lookup + block.owner)


def records_file(blocks: Iterable[Block], now: float) -> bytes:
    """Those of these blocks that are good now, as a file that `Shelf.take_in` reads."""
    return _encode(_File(_TITLE, tuple(block for block in blocks if block.expires > now)))


def _read(raw: bytes) -> _Kept:
    try:
        return _kept_decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise StoreError(f"a record of the store cannot be read: {error}") from error
