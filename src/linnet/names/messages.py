"""What nodes tell each other about names (tags 110 to 119). None of them holds a name, a zone or a place."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

from linnet.core.ids import Count
from linnet.core.reasons import Reason
from linnet.names.block import Block, Key

CANDIDATES = 8
"""Most blocks under one lookup key in one answer."""


class PutRecord(Struct, frozen=True, array_like=True, tag=110, gc=False):
    """Keep this, please."""

    request: Count
    block: Block


class PutAnswer(Struct, frozen=True, array_like=True, tag=111, gc=False):
    """It is written down, or why not."""

    request: Count
    reason: Reason | None


class AskRecord(Struct, frozen=True, array_like=True, tag=112, gc=False):
    """What is kept under this key?"""

    request: Count
    lookup: Key


class RecordIs(Struct, frozen=True, array_like=True, tag=113, gc=False):
    """All that is kept under that key; only who can open it can tell what is right."""

    request: Count
    lookup: Key
    blocks: Annotated[tuple[Block, ...], Meta(max_length=CANDIDATES)]
    reason: Reason | None
    """Why there is no answer."""


NameMessage: TypeAlias = PutRecord | PutAnswer | AskRecord | RecordIs
