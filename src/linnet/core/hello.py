"""The greeting that two nodes exchange first on a link."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from linnet.core.ids import Hints

WIRE_VERSION = 1
"""Version of frames and of `Hello` itself. A node speaks a closed range of them."""

Name = Annotated[str, Meta(min_length=1, max_length=32)]


class Hello(Struct, frozen=True, array_like=True, tag=0):
    """The first frame on a link, in both directions."""

    oldest: Annotated[int, Meta(ge=1, le=255)]
    """Oldest wire version spoken."""
    newest: Annotated[int, Meta(ge=1, le=255)]
    """Newest wire version spoken."""
    protocols: Annotated[dict[Name, Annotated[int, Meta(ge=1, le=255)]], Meta(max_length=64)]
    """Protocols with their versions; the link uses none that the other side lacks."""
    roles: Annotated[tuple[Name, ...], Meta(max_length=16)] = ()
    """The services that this node offers: ``tracker``, ``storage``."""
    max_frame: Annotated[int, Meta(ge=65_536, le=2**31)] = 1 << 20
    """The largest frame that this node reads."""
    listens: Hints = ()
    """The addresses at which this node believes that it can be dialled."""
    agent: Annotated[str, Meta(max_length=64)] = ""
    """Program and version, for people."""

    def speaks(self, other: Hello) -> bool:
        """Return whether there is a wire version that both nodes speak."""
        return self.oldest <= other.newest and other.oldest <= self.newest
