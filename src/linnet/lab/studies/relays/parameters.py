"""What can be chosen about the study of relays."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from linnet.lab.relays.profile import Filters


class RelaysParameters(Struct, frozen=True, kw_only=True):
    """Where chats and presence come from, and how much of the protocol is run."""

    chats: Path
    """Folder with the table of messages."""
    sessions: Path | None = None
    """Folder with the table of phones' sessions; without it, presence comes from margins."""
    filters: Filters = Filters()
    sample: int = 200
    """Chats that also run through the protocol; 0 for none."""
    window: int = 300
    """Messages at most of such a chat."""
    work: int = 2_000
    """Messages times members at most of it, which is about what its run costs."""
    seed: int = 1
