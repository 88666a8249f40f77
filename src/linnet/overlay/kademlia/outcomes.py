"""What other parts of a node may ask of Kademlia, and how lookups and placings end: each exactly once."""

from __future__ import annotations

from typing import TypeAlias

from linnet.core.ids import Contact, PeerId
from linnet.core.reasons import Reason
from linnet.machine.outbox import Notice
from linnet.overlay.kademlia.ids import NodeId
from linnet.overlay.kademlia.records import Stored


class SeekNodes(Notice, frozen=True):
    """Look for the nodes nearest to a key, as soon as this node has met others. Ends in `NodesFound`."""

    key: NodeId


class SeekRecords(Notice, frozen=True):
    """Look for what is kept under a key. Ends in `RecordsFound` of the same number."""

    number: int
    key: NodeId


class PlaceInNetwork(Notice, frozen=True):
    """Have the nodes nearest to its key keep a record. Nobody is told how that ends."""

    record: Stored


class NodesFound(Notice, frozen=True):
    """The nodes nearest to a key that answered, the nearest first."""

    number: int
    key: NodeId
    contacts: tuple[Contact, ...]
    hops: int
    asked: int


class RecordsFound(Notice, frozen=True):
    """What nodes near a key keep under it. All are signed by their owners, newest first."""

    number: int
    records: tuple[Stored, ...]
    hops: int
    asked: int
    answered: int


class Placed(Notice, frozen=True):
    """Who keeps a record now, and who does not, and why."""

    number: int
    kept: tuple[PeerId, ...]
    refused: tuple[tuple[PeerId, Reason], ...]


Outcome: TypeAlias = NodesFound | RecordsFound | Placed
