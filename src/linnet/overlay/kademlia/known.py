"""Whom a node knew when it was last up: to begin with after a restart, beside those of its configuration."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from linnet.core.errors import StoreError
from linnet.core.ids import Contact
from linnet.core.stores import Cells

SPACE, KEY = "kademlia", b"known"
MOST = 64
"""Contacts that are written down: of these some are still there after any pause."""

_encode = msgspec.msgpack.Encoder().encode
_decoder: msgspec.msgpack.Decoder[tuple[Contact, ...]] = msgspec.msgpack.Decoder(
    Annotated[tuple[Contact, ...], Meta(max_length=MOST)]
)


class Known:
    """Contacts of the table, in one cell."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells

    def load(self) -> tuple[Contact, ...]:
        """Whom we knew."""
        raw = self._cells.get(SPACE, KEY)
        if raw is None:
            return ()
        try:
            return _decoder.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise StoreError(f"the contacts of the hash table cannot be read: {error}") from error

    def save(self, contacts: tuple[Contact, ...]) -> None:
        """Write down whom we know: some of all distances, each alike."""
        step = max(1, -(-len(contacts) // MOST))
        raw = _encode(contacts[::step])
        if raw != self._cells.get(SPACE, KEY):
            self._cells.put(SPACE, KEY, raw)
