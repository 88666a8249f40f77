"""How lookups and placings end, for whoever began them; each exactly once."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from linnet.core.ids import Contact, PeerId
from linnet.core.reasons import Reason
from linnet.overlay.kademlia.records import Stored


class NodesFound(Struct, frozen=True, gc=False):
    """The nodes nearest to a key that answered, the nearest first."""

    number: int
    contacts: tuple[Contact, ...]
    hops: int
    asked: int


class RecordsFound(Struct, frozen=True, gc=False):
    """What nodes near a key keep under it. All are signed by their owners, newest first."""

    number: int
    records: tuple[Stored, ...]
    hops: int
    asked: int
    answered: int


class Placed(Struct, frozen=True, gc=False):
    """Who keeps a record now, and who does not, and why."""

    number: int
    kept: tuple[PeerId, ...]
    refused: tuple[tuple[PeerId, Reason], ...]


Outcome: TypeAlias = NodesFound | RecordsFound | Placed
