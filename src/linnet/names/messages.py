"""What nodes tell each other about names (tags 110 to 119). None of them holds a name, a zone or a place."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta

from linnet.core.ids import Count
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.names.block import Block, Key

CANDIDATES = 8
"""Most blocks under one lookup key in one answer."""


class PutRecord(Message, frozen=True, tag=110):
    """Keep this, please."""

    request: Count
    block: Block


class PutAnswer(Message, frozen=True, tag=111):
    """It is written down, or why not."""

    request: Count
    reason: Reason | None


class AskRecord(Message, frozen=True, tag=112):
    """What is kept under this key?"""

    request: Count
    lookup: Key


class RecordIs(Message, frozen=True, tag=113):
    """All that is kept under that key; only who can open it can tell what is right."""

    request: Count
    lookup: Key
    blocks: Annotated[tuple[Block, ...], Meta(max_length=CANDIDATES)]
    reason: Reason | None
    """Why there is no answer."""


NameMessage: TypeAlias = PutRecord | PutAnswer | AskRecord | RecordIs
