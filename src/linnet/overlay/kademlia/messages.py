"""What nodes ask each other in Kademlia (tags 120 to 127).

Every message travels on a link that is authenticated to a device key, from which the id follows: nobody can
speak from where another stands.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta

from linnet.core.ids import Contact, Count
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.overlay.kademlia.config import MOST_K
from linnet.overlay.kademlia.ids import NodeId
from linnet.overlay.kademlia.records import Stored

CANDIDATES = 8
"""Most records under one key in one answer."""

WireId = Annotated[NodeId, Meta(min_length=32, max_length=32)]
Contacts = Annotated[tuple[Contact, ...], Meta(max_length=MOST_K)]


class PingNode(Message, frozen=True, tag=120):
    """Are you still there?"""

    request: Count


class NodeIsHere(Message, frozen=True, tag=121):
    """Yes."""

    request: Count


class FindNode(Message, frozen=True, tag=122):
    """Whom do you know that is nearest to this?"""

    request: Count
    target: WireId


class NodesAre(Message, frozen=True, tag=123):
    """These, or why nobody is told."""

    request: Count
    contacts: Contacts
    reason: Reason | None


class FindRecord(Message, frozen=True, tag=124):
    """What is kept under this key, and whom do you know that is nearest to it?"""

    request: Count
    key: WireId


class RecordsAre(Message, frozen=True, tag=125):
    """All that is kept under that key, and whom we know near it."""

    request: Count
    records: Annotated[tuple[Stored, ...], Meta(max_length=CANDIDATES)]
    contacts: Contacts
    reason: Reason | None


class KeepRecord(Message, frozen=True, tag=126):
    """Keep this, please."""

    request: Count
    record: Stored


class RecordKept(Message, frozen=True, tag=127):
    """It is written down, or why not."""

    request: Count
    reason: Reason | None


KademliaQuestion: TypeAlias = PingNode | FindNode | FindRecord | KeepRecord
KademliaAnswer: TypeAlias = NodeIsHere | NodesAre | RecordsAre | RecordKept
KademliaMessage: TypeAlias = KademliaQuestion | KademliaAnswer
