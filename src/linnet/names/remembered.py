"""Records of others that were resolved: for when nobody answers, and so that no older one is believed again.

They are not handed out: what we have looked up is nobody's business.
"""

from __future__ import annotations

import msgspec

from linnet.core.errors import StoreError
from linnet.core.stores import Cells
from linnet.names.block import Block

SPACE = "names seen"
_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(Block)


class Remembered:
    """The newest right block under each lookup key that we resolved; those unused for longest go first."""

    def __init__(self, cells: Cells, most: int) -> None:
        self._cells = cells
        self._most = most
        self._blocks: dict[bytes, Block] = {}
        for lookup, raw in cells.scan(SPACE):
            try:
                self._blocks[lookup] = _decoder.decode(raw)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise StoreError(f"a record that was resolved cannot be read: {error}") from error

    def find(self, lookup: bytes) -> Block | None:
        """The newest that was right, whether it has ended or not."""
        return self._blocks.get(lookup)

    def learn(self, block: Block) -> int:
        """Remember a right block; how many had to go for it."""
        known = self._blocks.pop(block.lookup, None)
        self._blocks[block.lookup] = block
        if known != block:
            self._cells.put(SPACE, block.lookup, _encode(block))
        gone = list(self._blocks)[: max(0, len(self._blocks) - self._most)]
        for lookup in gone:
            del self._blocks[lookup]
            self._cells.delete(SPACE, lookup)
        return len(gone)
