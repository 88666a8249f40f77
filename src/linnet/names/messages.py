"""The messages between nodes about names (tags 110 to 119). None of them holds a name, a zone or a place."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta

from linnet.core.ids import Count
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.names.records import Block, Key

CANDIDATES = 8
"""Most blocks under one lookup key in one answer."""


class PutRecord(Message, frozen=True, tag=110):
    """Asks a peer to keep a block."""

    request: Count
    block: Block


class PutAnswer(Message, frozen=True, tag=111):
    """Tells that a block is stored, or why it is not."""

    request: Count
    reason: Reason | None


class AskRecord(Message, frozen=True, tag=112):
    """Asks for the blocks that are stored under this key."""

    request: Count
    lookup: Key


class RecordIs(Message, frozen=True, tag=113):
    """The blocks that are stored under a key; only a reader who can open them can tell which is right."""

    request: Count
    lookup: Key
    blocks: Annotated[tuple[Block, ...], Meta(max_length=CANDIDATES)]
    reason: Reason | None
    """Why the request was refused; None if it was answered."""


NameMessage: TypeAlias = PutRecord | PutAnswer | AskRecord | RecordIs
